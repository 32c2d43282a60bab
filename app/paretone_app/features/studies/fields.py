"""Fields of the dialog for a new study: parameters to vary, goals of a search, judges."""

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QWidget

from paretone.measure.evaluation.judges import JUDGES
from paretone.measure.metrics import HIGHER, METRICS, NEITHER, metric
from paretone.models import catalogue
from paretone.serving.records import TYPICAL
from paretone.setting.knobs import Choice, Knob, Switch
from paretone.studies.servers import TOKEN
from paretone.techniques import applying_to, technique
from paretone.wording import per_one
from paretone_app.features.studies.forms import KINDS, Bound, Goals, Server, Varied, example
from paretone_app.numbers import localised
from paretone_app.shell.regions import insert_after, insert_before
from paretone_app.shell.theme import GAP
from paretone_app.state.machine import Machine
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox, DoubleSpinBox, SpinBox
from paretone_app.widgets.build import cross_button
from paretone_app.widgets.layouts import Flow, FormLayout, HBoxLayout, VBoxLayout
from paretone_app.widgets.panel_parts import InstallOffer

_USUAL = (
    Bound("word_error_rate", "above_baseline", 0.01),
    Bound("naturalness", "below_baseline", 0.1),
    Bound("voice_similarity", "below_baseline", 0.03),
    Bound("pitch_range", "below_baseline", 0.02),
    Bound("speaker_similarity", "below_baseline", 0.02),
)
"""Default bounds for "as good as the baseline", for installed judges."""


class _Entry(QWidget):
    changed = Signal()
    removed = Signal()

    def __init__(self, what: str) -> None:
        super().__init__()
        self.remove = cross_button(f"Remove the {what}", f"Remove this {what}")
        self.remove.clicked.connect(self.removed)

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        """Its controls, in the Tab order."""
        raise NotImplementedError


class _Entries(QWidget):
    changed = Signal()

    def __init__(self, text: str, tip: str, entry: Callable[[Any], _Entry]) -> None:
        """``entry`` makes one, filled in from a content unless that is ``None``."""
        super().__init__()
        self._entry = entry
        self.lines: list[Any] = []
        self._column = build.fill(VBoxLayout(), ())
        self.add_button = build.button(text, lambda: self.add().reachable[0].setFocus(), tip)
        build.fill(VBoxLayout(self), (self._column, self.add_button))

    def add(self, content: Any = None) -> Any:
        line = self._entry(content)
        self.lines.append(line)
        self._column.addWidget(line)
        line.changed.connect(self.changed)
        line.removed.connect(lambda: self._remove(line))
        insert_before(self.add_button, line.reachable)
        self.changed.emit()
        return line

    def replace(self, contents: Sequence[Any]) -> None:
        for line in tuple(self.lines):
            self._remove(line)
        for content in contents:
            self.add(content)

    def _remove(self, line: _Entry) -> None:
        place = self.lines.index(line)
        self.lines.remove(line)
        self._column.removeWidget(line)
        line.hide()
        line.deleteLater()
        (self.lines[min(place, len(self.lines) - 1)].reachable[0] if self.lines else self.add_button).setFocus()
        self.changed.emit()


class _BoundLine(_Entry):
    def __init__(self, bound: Bound) -> None:
        super().__init__("bound")
        bounded = ((one.title, one.name) for one in METRICS if one.better != NEITHER)
        self.metric_box = build.combo("Bounded figure", bounded)
        self.kind = build.combo("Kind of bound", ((title, name) for name, title in KINDS.items()))
        for combo, chosen in ((self.metric_box, bound.metric), (self.kind, bound.kind)):
            combo.setCurrentIndex(combo.findData(chosen))
            combo.currentIndexChanged.connect(self.changed)
        self.bound = build.named(DoubleSpinBox(decimals=4, minimum=-1e6, maximum=1e6, singleStep=0.01), "Bound")
        self.bound.setValue(bound.bound * per_one(self._unit))
        self.bound.setSuffix(f" {self._unit}".rstrip())
        self.metric_box.currentIndexChanged.connect(lambda: self.bound.setSuffix(f" {self._unit}".rstrip()))
        self.bound.valueChanged.connect(self.changed)
        build.fill(HBoxLayout(self), ((self.metric_box, 3), (self.kind, 3), (self.bound, 2), self.remove))

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        return self.metric_box, self.kind, self.bound, self.remove

    @property
    def _unit(self) -> str:
        return metric(self.metric_box.currentData()).unit

    @property
    def filled_in(self) -> Bound:
        return Bound(self.metric_box.currentData(), self.kind.currentData(), self.bound.value() / per_one(self._unit))


class GoalsEditor(QWidget):
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        known = [(one.title, one.name, one.better == HIGHER) for one in METRICS if one.better != NEITHER]
        goals = [(f"{'highest' if highest else 'lowest'} {title}", name) for title, name, highest in known]
        tip = "With two goals the answer is a Pareto front: settings that no other beats in both"
        self.goals = [build.combo("Goal", goals), build.combo("Second goal", [("nothing else", ""), *goals], tip)]
        self.goals[0].setCurrentIndex(self.goals[0].findData("speed_up"))
        for combo in self.goals:
            combo.currentIndexChanged.connect(self.changed)
        trials, tip = SpinBox(minimum=1, maximum=10_000, value=40), "Search budget; each setting speaks all sentences"
        self.trials = build.named(trials, "Number of settings to try", tip)
        self.trials.valueChanged.connect(self.changed)
        usual = Bound("log_mel_distance", "at_most", 0.5)
        tip = "Add a limit that settings must keep"
        self.bounds = _Entries("Add &bound", tip, lambda content: _BoundLine(content or usual))
        self.bounds.changed.connect(self.changed)
        form = FormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.addRow(build.title_of("&Goal", self.goals[0]), build.row(*((one, 1) for one in self.goals)))
        form.addRow("whose", self.bounds)
        form.addRow("Tr&ials", self.trials)

    def add_usual(self, judges: set[str]) -> None:
        for bound in _USUAL:
            if metric(bound.metric).judge in judges:
                self.bounds.add(bound)

    @property
    def filled_in(self) -> Goals:
        names = tuple(combo.currentData() for combo in self.goals if combo.currentData())
        return Goals(names, tuple(line.filled_in for line in self.bounds.lines), self.trials.value())


USUAL_JUDGES = ("words", "naturalness", "voice", "melody")
"""Ticked by default if installed."""


class JudgeBoxes(QWidget):
    """One box per judge; unavailable ones give the reason."""

    changed = Signal()

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine
        self.boxes: dict[str, QCheckBox] = {}
        for one in JUDGES:
            box = self.boxes[one.name] = QCheckBox(one.title)
            box.toggled.connect(self.changed)
        self.install = InstallOffer()
        build.fill(VBoxLayout(self), [*self.boxes.values(), self.install])

    def show_missing(self) -> None:
        lacking = ""
        for one in JUDGES:
            reason = self._machine.problem_of(one.name)
            self.boxes[one.name].setEnabled(not reason)
            self.boxes[one.name].setToolTip(localised(reason) or f"Adds {', '.join(one.metrics)}")
            lacking = lacking or (reason if one.name in USUAL_JUDGES else "")
        self.install.offer(lacking)


class _Line(_Entry):
    def __init__(self, model: str, content: Varied | None) -> None:
        super().__init__("line")
        self._model = ""
        self._knobs: tuple[Knob, ...] = ()  # Of the chosen technique, or the model's options.
        self.owner = build.narrow(build.named(ComboBox(), "Technique or model"), 10)
        self.knob = build.narrow(build.named(ComboBox(), "Parameter"), 10)
        self.values = build.named(build.clearable(QLineEdit()), "Values")
        self.choices = Flow(GAP)
        self._boxes: dict[tuple[str, str], tuple[tuple[str, QCheckBox], ...]] = {}
        """For each knob with named values, by owner and name: (value in the study, its box)."""
        self.without = build.named(QCheckBox("Include “off”"), tip="Also compare without the technique")
        line = (self.owner, 3), (self.knob, 3), (self.values, 4), self.without, self.remove
        build.fill(VBoxLayout(self), (build.fill(HBoxLayout(), line), self.choices))
        self.owner.currentIndexChanged.connect(self._change_owner)
        self.knob.currentIndexChanged.connect(self._change_knob)
        self.values.textChanged.connect(self.changed)
        self.without.toggled.connect(self.changed)
        self.offer(model)
        if content is not None:
            self.choose(content)

    def offer(self, model: str) -> None:
        """Offer the options of ``model`` and the knobs of techniques for its family; keep the choice if possible."""
        if model == self._model:
            return
        self._model, chosen = model, (self.owner.currentData(), self.knob.currentData())
        entry = catalogue.entry(model)
        owners = [(one.title, one.name) for one in applying_to(entry.family, entry.options, entry.mel_flow)]
        build.offer(self.owner, [*owners, (f"{entry.title} (model)", "")], chosen[0])
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
        owner, knob = self._key
        typed = ", ".join(value for value, box in self.boxes if box.isChecked()) if self.boxes else self.values.text()
        return Varied(owner, knob, typed if knob else "", self.without.isChecked() and bool(owner))

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        boxes = (box for one in self._boxes.values() for _, box in one)
        return self.owner, self.knob, *boxes, self.values, self.without, self.remove

    @property
    def boxes(self) -> tuple[tuple[str, QCheckBox], ...]:
        """The named values of the chosen knob, each with its box; empty for typed values."""
        return self._boxes.get(self._key, ())

    @property
    def _key(self) -> tuple[str, str]:
        return self.owner.currentData(), self.knob.currentData()

    def _show_boxes(self, knob: Knob | None) -> None:
        """Boxes for the values of a switch or choice: (value in the study, title) each."""
        named: list[tuple[str, str]] = []
        if isinstance(knob, Switch):
            named = [("yes", "on"), ("no", "off")]
        elif isinstance(knob, Choice):
            named = list(zip(knob.values, knob.titles or knob.values, strict=True))
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

    def _change_owner(self) -> None:
        owner = self.owner.currentData()
        self._knobs = technique(owner).knobs if owner else catalogue.entry(self._model).options
        knobs = [(" ".join(filter(None, (one.title, one.symbol))), one.name) for one in self._knobs]
        build.offer(self.knob, [*knobs, ("default settings", "")] if owner else knobs, None)
        self.without.setEnabled(bool(owner))
        self.owner.setToolTip(technique(owner).summary if owner else "An option of the model")
        self._change_knob()

    def _change_knob(self) -> None:
        one = next((one for one in self._knobs if one.name == self.knob.currentData()), None)
        self._show_boxes(one)
        self.values.setEnabled(one is not None)
        self.values.setPlaceholderText(example(one) if one is not None else "")
        self.values.setToolTip(f"{one.meaning}\nFor example: {example(one)}" if one is not None else "")
        self.knob.setToolTip(one.meaning if one is not None else "The technique with all its knobs at their defaults")
        self.changed.emit()


class AxesEditor(_Entries):
    def __init__(self, model: str) -> None:
        tip = "Add an option of the model or a knob of a technique"
        super().__init__("Add p&arameter", tip, lambda content: _Line(self._model, content))
        self._model = model

    def offer(self, model: str) -> None:
        self._model = model
        for line in self.lines:
            line.offer(model)
        self.changed.emit()

    @property
    def varied(self) -> tuple[Varied, ...]:
        return tuple(line.varied for line in self.lines)


class _ServerLine(_Entry):
    def __init__(self) -> None:
        super().__init__("server")
        tip = "Measured next to the settings, with the study's sentences, seeds and judges"
        self.url = build.named(QLineEdit(placeholderText="http://127.0.0.1:8880"), "Address of the server", tip)
        tip = "One load after another: clients at once, 1 8, or requests a second at random times, 0.5/s"
        self.loads = build.named(QLineEdit(f"{TYPICAL}"), "Loads", tip)
        self.request = build.named(
            QLineEdit(placeholderText="speed = 1.0; steps = 8, 16"),
            "Fields of each request",
            "Further fields; those with several values are varied, in every combination",
        )
        tip = f"Taken from the environment variable {TOKEN}: studies are passed on"
        self.token = build.named(QCheckBox("Token"), "Needs a token", tip)
        tip = "Send the recording of each voice, as ref_audio and ref_text: for servers that clone"
        self.clones = build.named(QCheckBox("Clones"), "Clones the voices", tip)
        for box in (self.token, self.clones):
            box.toggled.connect(self.changed)
        for one in (self.url, self.loads, self.request):
            one.textChanged.connect(self.changed)
        boxes = self.token, self.clones, self.remove
        build.fill(HBoxLayout(self), ((self.url, 4), (self.loads, 2), (self.request, 4), *boxes))

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        return self.url, self.loads, self.request, self.token, self.clones, self.remove

    @property
    def filled_in(self) -> Server:
        url, loads, request = (one.text() for one in (self.url, self.loads, self.request))
        return Server(url, loads, request, self.token.isChecked(), self.clones.isChecked())


class ServersEditor(_Entries):
    def __init__(self) -> None:
        super().__init__("Add ser&ver", "Measure a speech server by its address as well", lambda _: _ServerLine())

    @property
    def filled_in(self) -> tuple[Server, ...]:
        return tuple(line.filled_in for line in self.lines)
