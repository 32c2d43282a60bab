"""A technique as a card, built from its declaration: what it does, whether it applies here, and what it gained.

Ticking the card switches the technique on and opens its knobs, their meaning, and why it cannot be used.
"""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QMouseEvent
from PySide6.QtWidgets import QComboBox, QGroupBox, QLabel, QSizePolicy, QWidget

from paretone.techniques.base import Technique
from paretone.training.forms import TrainingOffer
from paretone_app.features.setup.card_words import fit_words, gain_details, gain_words
from paretone_app.features.setup.step_grid import StepGrid
from paretone_app.numbers import localised
from paretone_app.shell.colours import Colours
from paretone_app.shell.metrics import GAP, NEAR, TIGHT, text_font
from paretone_app.shell.theme import set_look
from paretone_app.state.app_state import AppState
from paretone_app.state.availability import Applicability, Fit
from paretone_app.state.weight_labels import weights_title
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.knob_controls import KnobControls
from paretone_app.widgets.layouts import VBoxLayout

_GRID = {"steps", "spacing", "sway"}
"""Knobs that make a step grid."""


class TechniqueCard(QGroupBox):
    """One technique. Ticking the card, or a click on its head, switches it on."""

    training_wanted = Signal(str, object)
    """The user wants something trained for this technique, with these knobs."""
    weights_chosen = Signal(str)
    """The user wants the weights with this fingerprint used."""

    def __init__(self, technique: Technique, colours: Colours) -> None:
        # What a title says in brackets goes below it, for the panel is narrow.
        title, _, credit = technique.title.partition(" (")
        super().__init__(title, checkable=True)
        self.technique = technique
        self.setProperty("look", "card")
        self._fit = Applicability(Fit.APPLIES)
        self._pressed = False
        self._offer: TrainingOffer | None = None
        paper = f"<i>{technique.paper.title}</i>, {technique.paper.reference}"
        self.setToolTip(f"<b>{technique.title}</b><br>{technique.summary}<br>{paper}")
        self.setAccessibleName(f"Use {technique.title}")
        # As plain as in a chosen card, though Qt disables what an unticked one has.
        self.benefit = build.words("plain")
        self.benefit.setText(technique.benefit or technique.summary)
        self.state = build.words("muted")
        """Whether the technique applies, and what it gained."""
        summary = build.words("muted")
        origin = ", ".join(filter(None, (credit.rstrip(")"), technique.paper.reference)))
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
        self._head = build.column(self.benefit, self.state)
        self._head.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._body = QWidget()
        column = VBoxLayout(self._body)
        column.setContentsMargins(0, NEAR, 0, TIGHT)
        said = (self.meaning, self.remarks, self.reason, self.estimate)
        for one in (summary, self.controls, self.weights, self.grid, *said, self.train):
            column.addWidget(one)
        build.fill(VBoxLayout(self), [self._head, self._body]).setContentsMargins(GAP, 0, GAP, NEAR)

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        """The widgets in Tab order."""
        return self, *self.controls.reachable, self.weights, self.train

    def minimumSizeHint(self) -> QSize:
        """Wide enough for the title, which is bold."""
        bold = text_font(self.font(), strong=True)
        title = QFontMetrics(bold).horizontalAdvance(self.title()) + 2 * self.fontMetrics().height()
        return super().minimumSizeHint().expandedTo(QSize(title, 0))

    def show_selection(self, state: AppState) -> None:
        """Show whether the technique is in use, and its knobs; :meth:`show_reason` shows the rest."""
        name, used = self.technique.name, state.selection.is_used(self.technique.name)
        with QSignalBlocker(self):
            self.setChecked(used)
        self._body.setVisible(used)
        set_look(self, "chosen-card" if used else "card")
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

    @property
    def fit(self) -> Applicability:
        """Whether the technique applies, as last shown."""
        return self._fit

    def show_reason(self, state: AppState) -> None:
        """Show whether the technique applies, what it gained, and what forbids running it."""
        name = self.technique.name
        self._show_state(state)
        _say(self.remarks, " ".join(state.availability.technique_remarks(name)))
        _say(self.reason, state.availability.technique_problem(name))
        self._offer = state.availability.training_offer(name)
        self.train.setVisible(self._offer is not None)
        if self._offer is not None:
            self.train.setText(self._offer.text)
            self.train.setToolTip(self._offer.tip)
        _say(self.estimate, self._offer.estimate if self._offer is not None else "")

    def _show_state(self, state: AppState) -> None:
        """Show whether the technique applies, and what it gained; once used, what forbids it is said below."""
        name, info = self.technique.name, state.selection.info
        self._fit = state.availability.applicability(name)
        little = self.technique.little(info) if info is not None and state.selection.ready else ""
        fits = fit_words(self.technique, self._fit, little)
        gain = state.gains.of(name)
        used = state.selection.is_used(name)
        parts = (
            "Experiment" if self.technique.experimental else "",
            "" if used and self._fit.why else fits,
            "" if self._fit.fit is Fit.IMPOSSIBLE and gain is None else gain_words(gain),
        )
        said = " · ".join(filter(None, parts))
        _say(self.state, said[:1].upper() + said[1:])
        self.state.setToolTip(localised(" ".join(filter(None, (self._fit.why, gain_details(gain))))))
        self.setAccessibleDescription(
            localised(f"{self.benefit.text()}. {said[:1].upper()}{said[1:]}. {self.technique.summary}")
        )

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        self._pressed = self._on_head(event)
        if self._pressed:
            event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if self._pressed and self._on_head(event):
            self.setFocus(Qt.FocusReason.MouseFocusReason)
            self.setChecked(not self.isChecked())
        self._pressed = False

    def _on_head(self, event: QMouseEvent) -> bool:
        """Whether the left button is on what stands below the title of every card."""
        left = event.button() == Qt.MouseButton.LeftButton
        return left and self._head.geometry().contains(event.position().toPoint())

    def _ask_for_training(self) -> None:
        if self._offer is not None:
            self.training_wanted.emit(self.technique.name, dict(self._offer.knobs))


def _say(label: QLabel, text: str) -> None:
    label.setText(localised(text))
    label.setVisible(bool(text))


def _sentence(words: str) -> str:
    """``words`` as a sentence; a symbol at its beginning stays as it is."""
    symbol = words.partition(" ")[2].startswith("=")
    return f"{words if symbol else words[0].upper() + words[1:]}." if words else ""
