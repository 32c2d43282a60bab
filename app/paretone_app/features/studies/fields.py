"""Fields of the dialog for a new study: parameters to vary, goals of a search, judges."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QWidget

from paretone.measure.evaluation.judges import JUDGES
from paretone.measure.metrics import HIGHER, METRICS, NEITHER, metric
from paretone.models import catalogue
from paretone.setting.knobs import Choice, Knob, Switch
from paretone.techniques import applying_to, techniques
from paretone_app.features.studies.forms import KINDS, Bound, Goals, Varied, example, objectives
from paretone_app.numbers import localised
from paretone_app.shell.regions import insert_after, insert_before
from paretone_app.shell.theme import GAP
from paretone_app.state.machine import Installing
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox, DoubleSpinBox, SpinBox
from paretone_app.widgets.build import cross_button
from paretone_app.widgets.layouts import Flow, FormLayout, GridLayout, HBoxLayout, VBoxLayout
from paretone_app.widgets.panel_parts import InstallOffer

_USUAL = (
    Bound("word_error_rate", "above_baseline", 0.01),
    Bound("naturalness", "below_baseline", 0.1),
    Bound("voice_similarity", "below_baseline", 0.03),
    Bound("pitch_range", "below_baseline", 0.02),
    Bound("speaker_similarity", "below_baseline", 0.02),
)
"""Default bounds for "as good as the baseline", for installed judges."""


class _BoundLine(QWidget):
    changed = Signal()
    removed = Signal()

    def __init__(self, bound: Bound) -> None:
        super().__init__()
        bounded = ((one.title, one.name) for one in METRICS if one.better != NEITHER)
        self.metric_box = build.combo("Bounded figure", bounded)
        self.metric_box.setCurrentIndex(self.metric_box.findData(bound.metric))
        self.kind = build.combo("Kind of bound", ((title, name) for name, title in KINDS.items()))
        self.kind.setCurrentIndex(self.kind.findData(bound.kind))
        self.bound = build.named(
            DoubleSpinBox(decimals=4, minimum=-1e6, maximum=1e6, singleStep=0.01, value=bound.bound),
            "Bound",
            "Type shares as fractions: one point of word error rate is 0.01",
        )
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
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.goals = [build.combo("Goal"), build.combo("Second goal", (("nothing else", ""),))]
        for combo in self.goals:
            for one in objectives():
                combo.addItem(f"{'highest' if one.better == HIGHER else 'lowest'} {one.title}", one.name)
            combo.currentIndexChanged.connect(self.changed)
        self.goals[0].setCurrentIndex(self.goals[0].findData("speed_up"))
        self.goals[1].setToolTip("With two goals the answer is a Pareto front: settings that no other beats in both")
        trials = SpinBox(minimum=1, maximum=10_000, value=40)
        self.trials = build.named(
            trials, "Number of settings to try", "Search budget; each setting speaks all sentences"
        )
        self.trials.valueChanged.connect(self.changed)
        self.bounds: list[_BoundLine] = []
        self._column = build.fill(VBoxLayout(), ())
        self.add_button = build.button(
            "Add &bound", lambda: self.add(Bound("log_mel_distance", "at_most", 0.5)).metric_box.setFocus()
        )
        form = FormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.addRow(build.title_of("&Goal", self.goals[0]), build.row(*((one, 1) for one in self.goals)))
        form.addRow("whose", self._column)
        form.addRow("", self.add_button)
        form.addRow("Tr&ials", self.trials)

    def add(self, bound: Bound) -> _BoundLine:
        line = _BoundLine(bound)
        self.bounds.append(line)
        self._column.addWidget(line)
        insert_before(self.add_button, (line.metric_box, line.kind, line.bound, line.remove))
        line.changed.connect(self.changed)
        line.removed.connect(lambda: self._remove(line))
        self.changed.emit()
        return line

    def replace(self, bounds: Sequence[Bound]) -> None:
        for line in tuple(self.bounds):
            self._remove(line)
        for bound in bounds:
            self.add(bound)

    def add_usual(self, judges: set[str]) -> None:
        """Add the default bounds of the available ``judges``."""
        for bound in _USUAL:
            if metric(bound.metric).judge in judges:
                self.add(bound)

    @property
    def filled_in(self) -> Goals:
        names = tuple(combo.currentData() for combo in self.goals if combo.currentData())
        return Goals(names, tuple(line.filled_in for line in self.bounds), self.trials.value())

    def _remove(self, line: _BoundLine) -> None:
        self.bounds.remove(line)
        self._column.removeWidget(line)
        line.hide()
        line.deleteLater()
        self.add_button.setFocus()
        self.changed.emit()


USUAL_JUDGES = ("words", "naturalness", "voice", "melody")
"""Ticked by default if installed."""


class JudgeBoxes(QWidget):
    """One box per judge; unavailable ones give the reason."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.boxes: dict[str, QCheckBox] = {}
        for one in JUDGES:
            box = self.boxes[one.name] = QCheckBox(one.title)
            box.toggled.connect(self.changed)
        self.install = InstallOffer()
        build.fill(VBoxLayout(self), [*self.boxes.values(), self.install])
        self.show_missing()

    def follow(self, installing: Installing) -> None:
        """Offer to install packages that the usual judges lack."""
        self.install.follow(installing)
        self.show_missing()

    def show_missing(self) -> None:
        """Enable the judges now available."""
        lacking = ""
        for one in JUDGES:
            reason = one.problem()
            self.boxes[one.name].setEnabled(not reason)
            self.boxes[one.name].setToolTip(localised(reason) or f"Adds {', '.join(one.metrics)}")
            lacking = lacking or (reason if one.name in USUAL_JUDGES else "")
        self.install.offer(lacking)


_MODEL = ""
"""Stands for the model among the owners of knobs."""


class _Line(QWidget):
    changed = Signal()
    removed = Signal()

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = ""
        self.owner = build.named(ComboBox(), "Technique or model")
        self.knob = build.named(ComboBox(), "Parameter")
        self.values = build.named(QLineEdit(clearButtonEnabled=True), "Values")
        self.choices = Flow(GAP)
        self._boxes: dict[str, tuple[tuple[str, QCheckBox], ...]] = {}
        """For each knob with named values, by owner and name: (value in the study, its box)."""
        self.without = build.named(QCheckBox("Include “off”"), tip="Also compare without the technique")
        self.remove = cross_button("Remove the line", "Do not vary this")
        grid = GridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        for column, one in enumerate((self.owner, self.knob, self.values, self.without, self.remove)):
            grid.addWidget(one, 0, column)
        grid.addWidget(self.choices, 1, 0, 1, grid.columnCount())
        for column, stretch in ((0, 3), (1, 3), (2, 4)):
            grid.setColumnStretch(column, stretch)
        for combo in (self.owner, self.knob):
            combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            combo.setMinimumContentsLength(10)
        self.owner.currentIndexChanged.connect(self._change_owner)
        self.knob.currentIndexChanged.connect(self._change_knob)
        self.values.textChanged.connect(self.changed)
        self.without.toggled.connect(self.changed)
        self.remove.clicked.connect(self.removed)
        self.offer(model)

    def offer(self, model: str) -> None:
        """Offer the options of ``model`` and the knobs of techniques for its family; keep the choice if possible."""
        if model == self._model:
            return
        self._model, chosen = model, (self.owner.currentData(), self.knob.currentData())
        entry = catalogue.entry(model)
        owners = [(one.title, one.name) for one in applying_to(entry.family, entry.options, entry.mel_steps)]
        build.offer(self.owner, [*owners, (f"{entry.title} (model)", _MODEL)], chosen[0])
        self._change_owner()
        self.knob.setCurrentIndex(max(0, self.knob.findData(chosen[1])))

    def choose(self, line: Varied) -> None:
        self.owner.setCurrentIndex(max(0, self.owner.findData(line.technique)))
        self.knob.setCurrentIndex(max(0, self.knob.findData(line.knob)))
        self.values.setText(line.text)
        self.values.setCursorPosition(0)
        ticked = [one.strip() for one in line.text.split(",")]
        for value, box in self.boxes:
            box.setChecked(value in ticked)
        self.without.setChecked(line.without)

    @property
    def varied(self) -> Varied:
        owner = self.owner.currentData()
        knob, without = self.knob.currentData(), self.without.isChecked() and owner != _MODEL
        typed = ", ".join(value for value, box in self.boxes if box.isChecked()) if self.boxes else self.values.text()
        return Varied(owner, knob, typed if knob else "", without)

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        boxes = (box for one in self._boxes.values() for _, box in one)
        return self.owner, self.knob, *boxes, self.values, self.without, self.remove

    @property
    def boxes(self) -> tuple[tuple[str, QCheckBox], ...]:
        """The named values of the chosen knob, each with its box; empty for typed values."""
        return self._boxes.get(self._key, ())

    @property
    def _key(self) -> str:
        return f"{self.owner.currentData()}.{self.knob.currentData()}"

    def _show_boxes(self, knob: Knob | None) -> None:
        """Show a box for each named value of ``knob``."""
        named = _named_values(knob)
        if named and self._key not in self._boxes:
            self._boxes[self._key] = tuple((value, QCheckBox(title)) for value, title in named)
            for _, box in self.boxes:
                box.setAccessibleName(f"Values: {box.text()}")
                box.setToolTip(knob.meaning if knob is not None else "")
                box.toggled.connect(self.changed)
                self.choices.add(box)
            insert_after(self.knob, [box for _, box in self.boxes])
        for key, boxes in self._boxes.items():
            for _, box in boxes:
                box.setVisible(key == self._key)
        self.choices.setVisible(bool(named))
        self.values.setVisible(not named)
        self.choices.arrange()

    def _knobs(self) -> tuple[Knob, ...]:
        owner = self.owner.currentData()
        if owner == _MODEL:
            return catalogue.entry(self._model).options
        return next((one.knobs for one in techniques() if one.name == owner), ())

    def _change_owner(self) -> None:
        owner = self.owner.currentData()
        knobs = [(" ".join(filter(None, (one.title, one.symbol))), one.name) for one in self._knobs()]
        build.offer(self.knob, knobs if owner == _MODEL else [*knobs, ("default settings", "")], None)
        self.without.setEnabled(owner != _MODEL)
        self.owner.setToolTip(
            next((one.summary for one in techniques() if one.name == owner), "An option of the model")
        )
        self._change_knob()

    def _change_knob(self) -> None:
        one = next((one for one in self._knobs() if one.name == self.knob.currentData()), None)
        self._show_boxes(one)
        self.values.setEnabled(one is not None)
        self.values.setPlaceholderText(example(one) if one is not None else "")
        self.values.setToolTip(f"{one.meaning}\nFor example: {example(one)}" if one is not None else "")
        self.knob.setToolTip(one.meaning if one is not None else "The technique with all its knobs at their defaults")
        self.changed.emit()


def _named_values(knob: Knob | None) -> list[tuple[str, str]]:
    """(value in the study, title) for each value of a switch or choice."""
    if isinstance(knob, Switch):
        return [("yes", "on"), ("no", "off")]
    if isinstance(knob, Choice):
        return list(zip(knob.values, knob.titles or knob.values, strict=True))
    return []


class AxesEditor(QWidget):
    changed = Signal()

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model
        self.lines: list[_Line] = []
        self._column = build.fill(VBoxLayout(), ())
        self.add_button = build.button(
            "Add p&arameter", lambda: self.add().owner.setFocus(), "Add an option of the model or a knob of a technique"
        )
        build.fill(VBoxLayout(self), (self._column, self.add_button))

    def add(self, varied: Varied | None = None) -> _Line:
        """Add a line, filled in from ``varied`` if given."""
        line = _Line(self._model)
        if varied is not None:
            line.choose(varied)
        self.lines.append(line)
        self._column.addWidget(line)
        line.changed.connect(self.changed)
        line.removed.connect(lambda: self._remove(line))
        insert_before(self.add_button, line.reachable)
        self.changed.emit()
        return line

    def replace(self, lines: Sequence[Varied]) -> None:
        for one in tuple(self.lines):
            self._remove(one)
        for varied in lines:
            self.add(varied)

    def offer(self, model: str) -> None:
        """Offer what ``model`` can vary."""
        self._model = model
        for line in self.lines:
            line.offer(model)
        self.changed.emit()

    @property
    def varied(self) -> tuple[Varied, ...]:
        return tuple(line.varied for line in self.lines)

    def _remove(self, line: _Line) -> None:
        place = self.lines.index(line)
        self.lines.remove(line)
        self._column.removeWidget(line)
        line.hide()
        line.deleteLater()
        (self.lines[min(place, len(self.lines) - 1)].owner if self.lines else self.add_button).setFocus()
        self.changed.emit()
