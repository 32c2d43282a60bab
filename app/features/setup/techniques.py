"""The techniques to engage: built from their declarations, each with its knobs, their meaning, and why it cannot be
used.

A technique that is not engaged takes one line.
"""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QComboBox, QGroupBox, QLabel, QVBoxLayout, QWidget

from app.features.setup.step_grid import StepGrid
from app.shell.theme import Colours, set_look
from app.state.app_state import AppState
from app.state.availability import TrainingOffer
from app.state.weight_labels import weights_title
from app.widgets import build
from app.widgets.boxes import ComboBox
from app.widgets.knob_controls import KnobControls
from engine.errors import PlainError
from engine.techniques.base import Technique

_GRID = {"steps", "spacing", "sway"}
"""Knobs that make a step grid."""


class TechniqueGroup(QGroupBox):
    """One technique. Ticking the group engages it."""

    training_wanted = Signal(str, object)
    """The user wants something trained for this technique, with these knobs."""
    weights_chosen = Signal(str)
    """The user wants the weights with this fingerprint engaged."""

    def __init__(self, technique: Technique, colours: Colours) -> None:
        # What a title says in brackets goes below it, for the panel is narrow.
        title, _, credit = technique.title.partition(" (")
        experiment = credit == "experiment)"  # That is to be known before it is engaged.
        super().__init__(technique.title if experiment else title, checkable=True)
        self.technique = technique
        self._offer: TrainingOffer | None = None
        paper = f"<i>{technique.paper.title}</i>, {technique.paper.reference}"
        self.setToolTip(f"<b>{technique.title}</b><br>{technique.summary}<br>{paper}")
        self.setAccessibleName(f"Engage {technique.title}")
        self.setAccessibleDescription(technique.summary)
        summary = build.words("muted")
        origin = ", ".join(filter(None, ("" if experiment else credit.rstrip(")"), technique.paper.reference)))
        summary.setText(f"{technique.summary} ({origin})")
        self.controls = KnobControls(technique.title)
        self.weights = ComboBox(sizeAdjustPolicy=QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.weights.setAccessibleName(f"Weights of {technique.title}")
        self.weights.setToolTip("Several trained weight sets fit these knobs: choose one")
        self.weights.activated.connect(lambda _: self.weights_chosen.emit(self.weights.currentData()))
        self.grid = StepGrid(colours)
        self._has_grid = {knob.name for knob in technique.knobs} >= _GRID
        self.meaning, self.remarks, self.reason = build.words("muted"), build.words("muted"), build.words("warning")
        self.estimate = build.words("muted")
        self.train = build.button("&Train…", self._ask_for_training)
        self._body = QWidget()
        column = QVBoxLayout(self._body)
        column.setContentsMargins(8, 6, 8, 8)
        said = (self.meaning, self.remarks, self.reason, self.estimate)
        for one in (summary, self.controls, self.weights, self.grid, *said, self.train):
            column.addWidget(one)
        build.fill(QVBoxLayout(self), [self._body])

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        """The widgets in Tab order."""
        return self, *self.controls.reachable, self.weights, self.train

    def minimumSizeHint(self) -> QSize:
        """Wide enough for the title, which is bold."""
        bold = QFont(self.font())
        bold.setBold(True)
        title = QFontMetrics(bold).horizontalAdvance(self.title()) + 2 * self.fontMetrics().height()
        return super().minimumSizeHint().expandedTo(QSize(title, 0))

    def show_selection(self, state: AppState) -> None:
        """Show whether the technique is engaged, and its knobs; :meth:`show_reason` shows the rest."""
        name, engaged = self.technique.name, state.selection.is_engaged(self.technique.name)
        with QSignalBlocker(self):
            self.setChecked(engaged)
        self._body.setVisible(engaged)
        set_look(self, "" if engaged else "folded")
        knobs = state.selection.knobs(name)
        self.controls.set_knobs(self.technique.knobs, knobs)
        self._show_weights(state)
        if self._has_grid:
            self.grid.show_options(state.selection.options_in_force, state.selection.options)
        else:
            self.grid.hide()
        _say(self.meaning, _sentence(self.technique.describe(knobs)))

    def _show_weights(self, state: AppState) -> None:
        """Offer the trained weights where several fit."""
        there, name = state.selection.fitting_weights(self.technique.name), self.technique.name
        with QSignalBlocker(self.weights):
            self.weights.clear()
            for one in there:
                self.weights.addItem(weights_title(one), one.fingerprint)
                self.weights.setItemData(self.weights.count() - 1, one.path, Qt.ItemDataRole.ToolTipRole)
            self.weights.setCurrentIndex(max(0, self.weights.findData(state.selection.chosen_weights(name))))
        self.weights.setVisible(len(there) > 1)

    def show_reason(self, state: AppState) -> None:
        """Show what is to be known before running, and what forbids it."""
        name = self.technique.name
        _say(self.remarks, " ".join(state.availability.technique_remarks(name)))
        _say(self.reason, state.availability.technique_problem(name))
        self._offer = state.availability.training_offer(name)
        self.train.setVisible(self._offer is not None)
        if self._offer is not None:
            self.train.setText(self._offer.text)
            self.train.setToolTip(self._offer.tip)
        _say(self.estimate, self._offer.estimate if self._offer is not None else "")

    def _ask_for_training(self) -> None:
        if self._offer is not None:
            self.training_wanted.emit(self.technique.name, dict(self._offer.knobs))


class TechniqueList(QWidget):
    """All techniques that apply to the chosen model's family. Shows :class:`AppState` and changes it."""

    problem = Signal(str)
    """A sentence about a value that cannot be."""
    training_wanted = Signal(str, object)
    """The user wants something trained for this technique, with these knobs."""
    rebuilt = Signal()
    """As :attr:`KnobControls.rebuilt`."""

    def __init__(self, state: AppState, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._colours = colours
        self.groups: dict[str, TechniqueGroup] = {}
        """Groups by the names of their techniques; each is made when it is first shown."""
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        """The widgets in Tab order."""
        return tuple(one for group in self.groups.values() for one in group.reachable)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        for group in self.groups.values():
            group.grid.set_colours(colours)

    def show_techniques(self) -> None:
        """Have a group for each technique of the family, and show those only."""
        for one in self._state.selection.techniques:
            if one.name not in self.groups:
                self._add(one)
        wanted = {one.name for one in self._state.selection.techniques}
        for name, group in self.groups.items():
            group.setVisible(name in wanted)

    def show_selection(self) -> None:
        """Show what is engaged, and the knobs; :meth:`show_reasons` shows the rest."""
        for group in self.groups.values():
            group.show_selection(self._state)

    def show_reasons(self) -> None:
        """Show remarks, what forbids running, and offers of training."""
        for group in self.groups.values():
            group.show_reason(self._state)

    def _add(self, one: Technique) -> None:
        group = TechniqueGroup(one, self._colours)
        group.controls.rebuilt.connect(self.rebuilt)
        group.controls.changed.connect(lambda knob, value: self._set_knob(one.name, knob, value))
        group.toggled.connect(lambda on: self._state.selection.engage(one.name, on))
        group.training_wanted.connect(self.training_wanted)
        group.weights_chosen.connect(lambda fingerprint: self._state.selection.choose_weights(one.name, fingerprint))
        self._column.addWidget(group)
        self.groups[one.name] = group

    def _set_knob(self, name: str, knob: str, value: object) -> None:
        try:
            self._state.selection.set_knob(name, knob, value)
        except PlainError as error:
            self.problem.emit(str(error))
            self.groups[name].show_selection(self._state)


def _say(label: QLabel, text: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))


def _sentence(words: str) -> str:
    """``words`` as a sentence; a symbol at its beginning stays as it is."""
    symbol = words.partition(" ")[2].startswith("=")
    return f"{words if symbol else words[0].upper() + words[1:]}." if words else ""
