"""The techniques to use, as cards: what helps the chosen model on its device first, what cannot apply last.

Experiments are folded; one that is used stays in sight.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from paretone.errors import PlainError
from paretone.techniques.base import Technique
from paretone_app.features.setup.cards import TechniqueCard
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import NEAR
from paretone_app.state.app_state import AppState
from paretone_app.state.availability import Fit
from paretone_app.widgets import build
from paretone_app.widgets.layouts import VBoxLayout

LITTLE_GAIN = 1.05
"""A technique that was measured to gain less than this comes late."""


class TechniqueList(QWidget):
    """All techniques that apply to the chosen model's family. Shows :class:`AppState` and changes it.

    Cards keep their order until a model is loaded or chosen, so that none moves under the pointer.
    """

    problem = Signal(str)
    """A sentence about a value that cannot be."""
    training_wanted = Signal(str, object)
    """The user wants something trained for this technique, with these knobs."""
    rebuilt = Signal()
    """There are other widgets, or they have another order."""

    def __init__(self, state: AppState, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self._colours = colours
        self.groups: dict[str, TechniqueCard] = {}
        """Cards by the names of their techniques; each is made when it is first shown."""
        self._order: tuple[str, ...] = ()
        """Names of those that are shown, in order."""
        self.experiments = QPushButton(self)
        self.experiments.hide()
        self.experiments.setCheckable(True)
        self.experiments.setProperty("look", "fold")
        self.experiments.toggled.connect(self._fold)
        self._column = VBoxLayout(self)
        self._column.setContentsMargins(0, NEAR, 0, 0)
        self._column.setSpacing(NEAR)
        heading = build.label("Techniques", "title")
        heading.setContentsMargins(NEAR, 0, 0, 0)  # As the headings of the groups are.
        self._column.addWidget(heading)

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        """The widgets in Tab order."""
        found: list[QWidget] = []
        for name in self._order:
            if self.groups[name].technique.experimental and self.experiments not in found:
                found.append(self.experiments)
            found += self.groups[name].reachable
        hidden = (one for name, group in self.groups.items() if name not in self._order for one in group.reachable)
        return *found, *hidden

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        for group in self.groups.values():
            group.grid.set_colours(colours)

    def show_techniques(self) -> None:
        """Have a card for each technique of the family, show those only, and bring them into order."""
        techniques = self._state.selection.techniques
        for one in techniques:
            if one.name not in self.groups:
                self._add(one)
        order = tuple(one.name for one in sorted(techniques, key=self._rank))
        if order != self._order:
            self._order = order
            self._arrange()
        self._show_folded()

    def show_selection(self) -> None:
        """Show what is used, and the knobs; :meth:`show_reasons` shows the rest."""
        for name in self._order:
            self.groups[name].show_selection(self._state)
        self._show_folded()

    @Slot()
    def show_reasons(self) -> None:
        """Show remarks, what was gained, what forbids running, and offers of training."""
        for name in self._order:
            self.groups[name].show_reason(self._state)

    def _rank(self, one: Technique) -> int:
        """Position of a technique; sorting keeps the declared order of those that have the same."""
        info, gain = self._state.selection.info, self._state.gains.of(one.name)
        if self._state.availability.applicability(one.name).fit is Fit.IMPOSSIBLE:
            return 3
        if one.experimental:
            return 2
        ready = info is not None and self._state.selection.ready
        little = bool(ready and info is not None and one.little(info))
        return int(gain.ratio < LITTLE_GAIN if gain is not None else little)

    def _arrange(self) -> None:
        """Put the cards into their order."""
        for group in self.groups.values():
            group.setVisible(group.technique.name in self._order)
        place = 1  # Below the heading.
        folded = [name for name in self._order if self.groups[name].technique.experimental]
        for name in self._order:
            if folded and name == folded[0]:
                self._column.insertWidget(place, self.experiments)
                place += 1
            self._column.insertWidget(place, self.groups[name])
            place += 1
        self.experiments.setVisible(bool(folded))
        self.rebuilt.emit()

    @Slot(bool)
    def _fold(self, open_: bool) -> None:
        """Show the experiments, or those that are used only; go to the first that was folded."""
        before = self._folded
        self._show_folded()
        if open_ and before and self.experiments.hasFocus():
            before[0].setFocus(Qt.FocusReason.TabFocusReason)

    @property
    def _folded(self) -> Sequence[TechniqueCard]:
        """Experiments that are not shown."""
        cards = (self.groups[name] for name in self._order)
        return [one for one in cards if one.technique.experimental and one.isHidden()]

    def _show_folded(self) -> None:
        experiments = [self.groups[name] for name in self._order if self.groups[name].technique.experimental]
        open_ = self.experiments.isChecked()
        for one in experiments:
            one.setVisible(open_ or self._state.selection.is_used(one.technique.name))
        count = len(experiments)
        self.experiments.setText(f"{'▾' if open_ else '▸'} E&xperiments ({count})")
        many = "1 technique" if count == 1 else f"{count} techniques"
        self.experiments.setAccessibleName(f"Experiments: {many}, {'shown' if open_ else 'folded'}")
        self.experiments.setToolTip("Techniques that nobody has published for such models")

    def _add(self, one: Technique) -> None:
        group = TechniqueCard(one, self._colours)
        group.controls.rebuilt.connect(self.rebuilt)
        group.controls.changed.connect(lambda knob, value: self._set_knob(one.name, knob, value))
        group.toggled.connect(lambda on: self._state.editing.switch(one.name, on))
        group.training_wanted.connect(self.training_wanted)
        group.weights_chosen.connect(lambda fingerprint: self._state.editing.choose_weights(one.name, fingerprint))
        self._column.addWidget(group)
        self.groups[one.name] = group

    def _set_knob(self, name: str, knob: str, value: object) -> None:
        try:
            self._state.editing.set_knob(name, knob, value)
        except PlainError as error:
            self.problem.emit(str(error))
            self.groups[name].show_selection(self._state)
