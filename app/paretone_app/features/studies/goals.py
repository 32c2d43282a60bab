"""Goals of a search: objectives, bounds, and the number of settings to try."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QLabel,
    QWidget,
)

from paretone.measure.metrics import HIGHER, METRICS, NEITHER, metric
from paretone_app.features.studies.forms import KINDS, Bound, Goals, objectives
from paretone_app.shell.regions import insert_before
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox, DoubleSpinBox, SpinBox
from paretone_app.widgets.build import cross_button
from paretone_app.widgets.layouts import FormLayout, HBoxLayout, VBoxLayout

_USUAL = (
    Bound("word_error_rate", "above_baseline", 0.01),
    Bound("naturalness", "below_baseline", 0.1),
    Bound("voice_similarity", "below_baseline", 0.03),
    Bound("pitch_range", "below_baseline", 0.02),
    Bound("speaker_similarity", "below_baseline", 0.02),
)
"""Default bounds for "as good as the baseline", for installed judges."""


class _BoundLine(QWidget):
    """One constraint."""

    changed = Signal()
    removed = Signal()

    def __init__(self, bound: Bound) -> None:
        super().__init__()
        bounded = ((one.title, one.name) for one in METRICS if one.better != NEITHER)
        self.metric_box = build.combo("Bounded figure", bounded)
        self.metric_box.setCurrentIndex(self.metric_box.findData(bound.metric))
        self.kind = build.combo("Kind of bound", ((title, name) for name, title in KINDS.items()))
        self.kind.setCurrentIndex(self.kind.findData(bound.kind))
        self.bound = DoubleSpinBox(decimals=4, minimum=-1e6, maximum=1e6, singleStep=0.01, value=bound.bound)
        self.bound.setAccessibleName("Bound")
        self.bound.setToolTip("Type shares as fractions: one point of word error rate is 0.01")
        self.remove = cross_button("Remove the bound", "Remove this bound")
        build.fill(HBoxLayout(self), ((self.metric_box, 3), (self.kind, 3), (self.bound, 2), self.remove))
        self.metric_box.currentIndexChanged.connect(self.changed)
        self.kind.currentIndexChanged.connect(self.changed)
        self.bound.valueChanged.connect(self.changed)
        self.remove.clicked.connect(self.removed)

    @property
    def filled_in(self) -> Bound:
        return Bound(self.metric_box.currentData(), self.kind.currentData(), self.bound.value())


class GoalsEditor(QWidget):
    """Methods in, signals out."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.goals = [ComboBox(), ComboBox()]
        self.goals[1].addItem("nothing else", "")
        for combo, name in zip(self.goals, ("Goal", "Second goal"), strict=True):
            combo.setAccessibleName(name)
            for one in objectives():
                combo.addItem(f"{'highest' if one.better == HIGHER else 'lowest'} {one.title}", one.name)
            combo.currentIndexChanged.connect(self.changed)
        self.goals[0].setCurrentIndex(self.goals[0].findData("speed_up"))
        self.goals[1].setToolTip("With two goals the answer is a Pareto front: settings that no other beats in both")
        self.trials = SpinBox(minimum=1, maximum=10_000, value=40)
        self.trials.setAccessibleName("Number of settings to try")
        self.trials.setToolTip("Search budget; each setting speaks all sentences")
        self.trials.valueChanged.connect(self.changed)
        self.bounds: list[_BoundLine] = []
        self._column = VBoxLayout()
        self._column.setContentsMargins(0, 0, 0, 0)
        self.add_button = build.button(
            "Add &bound", lambda: self.add(Bound("log_mel_distance", "at_most", 0.5)).metric_box.setFocus()
        )
        form = FormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        goals = HBoxLayout()
        for combo in self.goals:
            goals.addWidget(combo, 1)
        label = QLabel("&Goal")
        label.setBuddy(self.goals[0])
        form.addRow(label, goals)
        form.addRow("whose", self._column)
        form.addRow("", self.add_button)
        form.addRow("Tr&ials", self.trials)

    def add(self, bound: Bound) -> _BoundLine:
        """Add a bound."""
        line = _BoundLine(bound)
        self.bounds.append(line)
        self._column.addWidget(line)
        insert_before(self.add_button, (line.metric_box, line.kind, line.bound, line.remove))
        line.changed.connect(self.changed)
        line.removed.connect(lambda: self._remove(line))
        self.changed.emit()
        return line

    def replace(self, bounds: Sequence[Bound]) -> None:
        """Have these bounds and no others."""
        for line in tuple(self.bounds):
            self._remove(line)
        for bound in bounds:
            self.add(bound)

    def add_usual(self, judges: set[str]) -> None:
        """As good as the baseline, by those of the usual ``judges`` that are there."""
        for bound in _USUAL:
            if metric(bound.metric).judge in judges:
                self.add(bound)

    @property
    def filled_in(self) -> Goals:
        """The entered values."""
        names = tuple(combo.currentData() for combo in self.goals if combo.currentData())
        return Goals(names, tuple(line.filled_in for line in self.bounds), self.trials.value())

    def _remove(self, line: _BoundLine) -> None:
        self.bounds.remove(line)
        self._column.removeWidget(line)
        line.hide()
        line.deleteLater()
        self.add_button.setFocus()
        self.changed.emit()
