"""Setting a listening test up: method, what is compared, how often, and who listens."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import (
    QFormLayout,
    QLabel,
    QPushButton,
    QWidget,
)

from paretone.listening.trials import ABX, MUSHRA
from paretone_app.listening.planning import (
    DEFAULT_LENGTH,
    DEFAULT_PRACTICE,
    EXPLANATIONS,
    LONGEST,
    LONGEST_PRACTICE,
    TITLES,
    ListeningPlan,
)
from paretone_app.listening.stimuli import Condition
from paretone_app.numbers import counted
from paretone_app.shell.theme import BROAD, set_look
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox, SpinBox
from paretone_app.widgets.layouts import FormLayout, HBoxLayout, Scrolled, VBoxLayout
from paretone_app.widgets.panel_parts import TickList

COMPARED, LIBRARY = "compared", "library"
_SOURCES = {
    COMPARED: "A and B of Listen",
    LIBRARY: "All takes: sentences common to the ticked settings",
}


@dataclass(frozen=True)
class LabChoice:
    """The user's choice."""

    method: str
    source: str
    ticked: tuple[str, ...]
    """Keys of conditions."""
    length: int
    listener: str
    """``""`` for a new listener."""
    practice: int
    """Trials that come first and count for nothing."""


_WIDEST, _HIGHEST, _BOX = 60, 26, 11
"""Heights of the font: width and height from which on the controls do not grow with the window; width of a box."""


class LabSetup(QWidget):
    """The first page of the lab. Methods in, signals out."""

    choice_changed = Signal()
    begin_wanted = Signal()
    export_wanted = Signal()
    """The test is wanted as files for webMUSHRA."""
    results_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._listeners: tuple[str, ...] = ()
        self._conditions: tuple[Condition, ...] = ()
        self.method = build.combo("Method", ((title, method) for method, title in TITLES.items()))
        self.explanation = build.words("muted")
        self.source = build.combo("What to compare", ((title, source) for source, title in _SOURCES.items()))
        self.ticks = TickList("Settings to compare")
        self.length = build.named(SpinBox(minimum=1, maximum=LONGEST), "Number of trials")
        self.practice = SpinBox(minimum=0, maximum=LONGEST_PRACTICE)
        self.practice.setAccessibleName("Practice trials")
        self.practice.setToolTip("Practice trials: answer shown, not scored")
        self.listener = build.named(ComboBox(), "Listener", "A random name, not linked to a person")
        self.listener.addItem("New listener", "")
        self.plan = build.words(name="The test")
        self.remarks = build.words("muted")
        self.begin_button = build.button("Be&gin the test", look="primary")
        self.export_button = build.button(
            "E&xport for webMUSHRA…", tip="Save the whole test with its sounds, for listeners elsewhere"
        )
        self.results_button = QPushButton("Resul&ts…")
        self.begin_button.clicked.connect(self.begin_wanted)
        self.export_button.clicked.connect(self.export_wanted)
        self.results_button.clicked.connect(self.results_wanted)
        self.method.currentIndexChanged.connect(self._method_changed)
        self.source.currentIndexChanged.connect(self._source_changed)
        self.ticks.itemChanged.connect(lambda _: self.choice_changed.emit())
        self.length.valueChanged.connect(lambda _: self.choice_changed.emit())
        self.practice.valueChanged.connect(lambda _: self.choice_changed.emit())
        self.listener.currentIndexChanged.connect(lambda _: self.choice_changed.emit())
        self._lay_out()
        self.setFocusProxy(self.method)
        self._method_changed()
        self._source_changed()

    def _lay_out(self) -> None:
        form = FormLayout()
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapAllRows)
        form.addRow("Meth&od", self.method)
        form.addRow(self.explanation)
        form.addRow("&What to compare", self.source)
        left = VBoxLayout()
        left.addLayout(form)
        self._ticks_label = QLabel("Setti&ngs")
        self._ticks_label.setBuddy(self.ticks)
        left.addWidget(self._ticks_label)
        left.addWidget(self.ticks, 1)
        left.addStretch(0)
        numbers = FormLayout()
        numbers.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.FieldsStayAtSizeHint)
        em = self.fontMetrics().height()
        for box in (self.length, self.practice, self.listener):
            box.setMinimumWidth(_BOX * em)
        self._length_label = QLabel()
        self._length_label.setBuddy(self.length)
        numbers.addRow(self._length_label, self.length)
        numbers.addRow("Pr&actice trials", self.practice)
        numbers.addRow("&Listener", self.listener)
        right = VBoxLayout()
        right.addLayout(numbers)
        right.addWidget(self._said(), 1)
        buttons = HBoxLayout()
        for button in (self.begin_button, self.export_button, self.results_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        right.addLayout(buttons)
        held = QWidget()
        layout = build.fill(HBoxLayout(held), ())
        layout.addLayout(left, 1)
        layout.addSpacing(BROAD)
        layout.addLayout(right, 1)
        # In a large window, controls would be as wide as sentences, and the buttons far from what they begin.
        held.setMaximumWidth(_WIDEST * em)
        across = QWidget(maximumHeight=_HIGHEST * em)
        build.fill(HBoxLayout(across), [(held, 1)]).addStretch(0)
        build.fill(VBoxLayout(self), [(across, 1)]).addStretch(0)

    def _said(self) -> QWidget:
        """The size of the test, which is long where many settings are rated."""
        content = QWidget()
        column = VBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.plan)
        column.addWidget(self.remarks)
        column.addStretch(1)
        area = Scrolled(content)
        area.setAccessibleName("The test")
        # Users without a mouse scroll by the arrow keys, where there is something to scroll.
        area.verticalScrollBar().rangeChanged.connect(lambda _, last: area.let_keys_scroll(last > 0))
        return area

    # --- Methods in --------------------------------------------------------------------------------------------------
    def show_conditions(self, found: Sequence[Condition]) -> None:
        """The settings there are takes of; what was ticked stays so."""
        found = tuple(found)
        if found == self._conditions:
            return
        ticked = set(self.ticks.ticked)
        self._conditions = found
        self.ticks.offer((one.title, one.key, one.key in ticked) for one in found)

    def show_listeners(self, listeners: Sequence[str]) -> None:
        """Everybody who listened before, the latest last."""
        listeners = tuple(listeners)
        if listeners == self._listeners:
            return
        self._listeners = listeners
        chosen = self.listener.currentData()
        with QSignalBlocker(self.listener):
            self.listener.clear()
            self.listener.addItem("New listener", "")
            for one in reversed(listeners):
                self.listener.addItem(f"Listener {one}", one)
            self.listener.setCurrentIndex(max(0, self.listener.findData(chosen)))

    def choose_short_test(self, trials: int) -> None:
        """An ABX test of A and B with this many trials, without practice."""
        self.method.setCurrentIndex(self.method.findData(ABX))
        self.source.setCurrentIndex(self.source.findData(COMPARED))
        self.length.setValue(trials)
        self.practice.setValue(0)

    def choose(self, method: str, keys: Collection[str]) -> None:
        """A test by ``method`` of the settings with these keys."""
        self.method.setCurrentIndex(self.method.findData(method))
        self.source.setCurrentIndex(self.source.findData(LIBRARY))
        self.ticks.offer((one.title, one.key, one.key in keys) for one in self._conditions)
        self.choice_changed.emit()

    def choose_listener(self, listener: str) -> None:
        """The same listener again."""
        self.listener.setCurrentIndex(max(0, self.listener.findData(listener)))

    def show_plan(self, plan: ListeningPlan, reason: str, cannot_export: str, warning: str) -> None:
        """Summary of the choice; why it cannot begin or be exported, or ``""``; what to be careful about."""
        sentences = len(plan.items)
        if plan.why_not():
            self.plan.setText("")
        else:
            names = [f"{role}: {one.title}" for role, one in zip(plan.roles, plan.conditions, strict=True)]
            used = f", of which {len(plan.used)} are used" if len(plan.used) < sentences else ""
            self.plan.setText("\n".join([*names, f"{counted(sentences, 'sentence', 'sentences')} in common{used}"]))
        remarks = [] if reason else list(plan.remarks())
        self.remarks.setText("\n".join([reason, *remarks, warning]).strip())
        set_look(self.remarks, "warning" if reason or warning else "muted")
        for button, why, tip in (
            (self.begin_button, reason, "The score is hidden until the end"),
            (self.export_button, cannot_export, "Save the whole test with its sounds, for listeners elsewhere"),
        ):
            build.allow(button, why, tip)

    @property
    def choice(self) -> LabChoice:
        """The current choice."""
        return LabChoice(
            self.method.currentData(),
            self.source.currentData(),
            self.ticks.ticked,
            self.length.value(),
            self.listener.currentData() or "",
            self.practice.value(),
        )

    # --- Inside ------------------------------------------------------------------------------------------------------
    def _method_changed(self) -> None:
        method = self.method.currentData()
        self.explanation.setText(EXPLANATIONS[method])
        with QSignalBlocker(self.length), QSignalBlocker(self.practice):
            self.length.setValue(DEFAULT_LENGTH[method])
            self.practice.setValue(DEFAULT_PRACTICE[method])
        self._length_label.setText("&Pages at most" if method == MUSHRA else "Tr&ials")
        self.choice_changed.emit()

    def _source_changed(self) -> None:
        shown = self.source.currentData() == LIBRARY
        self.ticks.setVisible(shown)
        self._ticks_label.setVisible(shown)
        self.choice_changed.emit()
