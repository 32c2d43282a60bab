"""Training: weights that need no guidance, from the user's own recordings, with the curves of how it goes.

The panel knows neither the application's state nor the engine: methods in, signals out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.panels.training_curves import TrainingCurves
from app.theme import Colours, set_look
from engine.knobs import Number
from engine.messages import TrainingDone, TrainingProgress
from engine.techniques import guidance_free

METHODS = (
    ("model-guidance", "Model guidance (papers)", "The target moves with the model's own guided velocity."),
    ("distillation", "Distillation (ours)", "The target is the guided velocity of the frozen model."),
)
CHECKPOINT = "checkpoint.pt"
"""What a run leaves in its work folder, and what it goes on from."""
_LEAST_MINUTES, _MOST_MINUTES = 0.1, 100_000.0


@dataclass(frozen=True)
class Plan:
    """What the user wants trained."""

    manifest: str
    work: str
    weight: float
    method: str
    minutes: float
    half_precision: bool
    resume: bool


class TrainingPanel(QWidget):
    """Left: on what, how, and for how long. Right: loss and validation."""

    start_wanted = Signal(object)
    """The user wants this :class:`Plan` carried out."""
    cancel_wanted = Signal()
    manifest_wanted = Signal()
    """The user wants to choose a manifest."""
    work_wanted = Signal()
    """The user wants to choose a work folder."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._reason = ""
        self._said, self._look = "", "muted"
        self._running = False
        self._build(colours)
        self._show()

    def _build(self, colours: Colours) -> None:
        em = self.fontMetrics().height()
        knob = next(one for one in guidance_free.TECHNIQUE.knobs if isinstance(one, Number))
        intro = _words("muted")
        intro.setText(
            "Trains classifier-free guidance into weights of the loaded model, so that one branch runs instead of two. "
            "A manifest is a CSV file with the columns audio and text."
        )
        self.manifest, choose_manifest = self._path_row("Manifest", "manifest.csv", self.manifest_wanted)
        self.work, choose_work = self._path_row("Work folder", "for checkpoints and the log", self.work_wanted)
        self.weight = QDoubleSpinBox(decimals=2, singleStep=knob.step, keyboardTracking=False)
        self.weight.setRange(knob.minimum, knob.maximum)
        self.weight.setValue(float(knob.default))
        self.weight.setAccessibleName("Guidance weight w")
        self.weight.setToolTip(knob.meaning)
        self.equivalent = _words("muted")
        self.method = QComboBox()
        self.method.setAccessibleName("Method")
        for name, title, meaning in METHODS:
            self.method.addItem(title, name)
            self.method.setItemData(self.method.count() - 1, meaning, Qt.ItemDataRole.ToolTipRole)
        self.minutes = QDoubleSpinBox(decimals=1, suffix=" min", keyboardTracking=False)
        self.minutes.setRange(_LEAST_MINUTES, _MOST_MINUTES)
        self.minutes.setValue(15)
        self.minutes.setAccessibleName("Minutes to train for")
        self.minutes.setToolTip(
            "Processor minutes, so that a busy machine does not spoil the schedule; minutes on a GPU."
        )
        self.estimate = _words("muted")
        self.half = QCheckBox("&bfloat16 where it pays")
        self.half.setToolTip("Faster on GPUs and on processors with AMX; losses are summed in float32.")
        for spin in (self.weight, self.minutes):
            spin.setAlignment(Qt.AlignmentFlag.AlignRight)
            spin.valueChanged.connect(self._show)
        for edit in (self.manifest, self.work):
            edit.textChanged.connect(self._show)
        self._inputs = (
            self.manifest,
            choose_manifest,
            self.work,
            choose_work,
            self.weight,
            self.method,
            self.minutes,
            self.half,
        )
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, editor, button in (
            ("&Manifest", self.manifest, choose_manifest),
            ("Wor&k folder", self.work, choose_work),
        ):
            row = QHBoxLayout()
            row.addWidget(editor, 1)
            row.addWidget(button)
            form.addRow(title, row)
            form.labelForField(row).setBuddy(editor)
        form.addRow("Weight &w", self.weight)
        form.addRow(self.equivalent)
        form.addRow("M&ethod", self.method)
        form.addRow("&Time", self.minutes)
        form.addRow(self.estimate)
        form.addRow(self.half)
        self.start_button = QPushButton("&Start")
        self.start_button.setProperty("look", "primary")
        self.start_button.clicked.connect(lambda: self.start_wanted.emit(self.plan(resume=False)))
        self.resume_button = QPushButton("&Resume")
        self.resume_button.clicked.connect(lambda: self.start_wanted.emit(self.plan(resume=True)))
        self.cancel_button = QPushButton("Cance&l")
        self.cancel_button.clicked.connect(self.cancel_wanted)
        buttons = QHBoxLayout()
        for one in (self.start_button, self.resume_button, self.cancel_button):
            buttons.addWidget(one, 1)
        self.progress = QProgressBar()
        self.progress.setAccessibleName("Progress of the training")
        self._state = _words("muted")
        self._state.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(2, 2, em // 2, 2)
        column.addWidget(intro)
        column.addWidget(self._state)
        column.addLayout(form)
        column.addStretch(1)
        self._area = QScrollArea(widgetResizable=True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area.setWidget(content)
        left = QWidget()
        left.setMinimumWidth(19 * em)
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._area, 1)
        column.addLayout(buttons)
        column.addWidget(self.progress)
        self.curves = TrainingCurves(colours)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(left)
        splitter.addWidget(self.curves)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([22 * em, 40 * em])
        outer = QVBoxLayout(self)
        outer.addWidget(splitter)
        self.setFocusProxy(self.manifest)

    @staticmethod
    def _path_row(name: str, placeholder: str, wanted: Signal) -> tuple[QLineEdit, QPushButton]:
        edit = QLineEdit(placeholderText=placeholder)
        edit.setAccessibleName(name)
        browse = QPushButton("…")
        browse.setAccessibleName(f"Choose the {name.lower()}")
        browse.setToolTip(f"Choose the {name.lower()}")
        browse.clicked.connect(wanted)
        return edit, browse

    # --- Methods in --------------------------------------------------------------------------------------------------
    def set_reason(self, reason: str) -> None:
        """Why nothing can be trained now, as a sentence, or ``""``."""
        self._reason = reason
        self._show()

    def propose(self, weight: float, minutes: float, work: str) -> None:
        """Fill in what is wanted, ready to start but for the manifest."""
        self.weight.setValue(weight)
        self.minutes.setValue(minutes)
        self.work.setText(work)

    def set_estimate(self, text: str) -> None:
        """How long such a training takes."""
        self.estimate.setText(text)

    def begin(self, resume: bool) -> None:
        """A training begins; a resumed one goes on with its curves."""
        self._running = True
        self._say("")
        self.progress.setRange(0, 0)
        if not resume:
            self.curves.clear()
        self._show()

    def show_progress(self, event: TrainingProgress) -> None:
        """A step or a validation is done."""
        if not self._running:
            return
        self.curves.add(event)
        self.progress.setRange(0, 1000)
        self.progress.setValue(round(1000 * event.share))
        left = "" if event.seconds_left is None else f", {_duration(event.seconds_left)} left"
        self.progress.setFormat(f"Step {event.step}: {event.share:.0%}{left}")
        if event.validation:
            self._say(f"At step {event.step} one branch has taken on {event.validation['learnt']:.0%} of the guidance.")

    def show_result(self, event: TrainingDone) -> None:
        """The weights are there."""
        self._say(f"Done in {event.steps} steps: {event.summary} The weights are in {event.checkpoint}.", "good")

    def end(self, sentence: str = "", failed: bool = False) -> None:
        """The training ended; ``sentence`` says why early."""
        self._running = False
        if sentence:
            self._say(sentence, "warning" if failed else "muted")
        self._show()

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self.curves.set_colours(colours)

    def plan(self, resume: bool) -> Plan:
        """What is filled in."""
        return Plan(
            self.manifest.text().strip(),
            self.work.text().strip(),
            self.weight.value(),
            self.method.currentData(),
            self.minutes.value(),
            self.half.isChecked(),
            resume,
        )

    @property
    def state(self) -> str:
        """The sentence above the form."""
        return self._state.text()

    # --- Showing -----------------------------------------------------------------------------------------------------
    def _show(self) -> None:
        weight = self.weight.value()
        self.equivalent.setText(f"Stands for guidance s = w / (1 − w) = {weight / (1 - weight):.2f}.")
        plan = self.plan(resume=False)
        earlier = bool(plan.work) and (Path(plan.work) / CHECKPOINT).is_file()
        missing = ""
        if not plan.manifest:
            missing = "Choose a manifest: a CSV file that lists recordings and their texts."
        elif not plan.work:
            missing = "Choose a folder for checkpoints and the log."
        reason = self._reason or missing
        for one in self._inputs:
            one.setEnabled(not self._running)
        may = not self._running and not reason
        held = "The work folder holds an earlier run: resume it, or choose another folder."
        self.start_button.setEnabled(may and not earlier)
        self.start_button.setToolTip(reason or (held if earlier else "Train from the model's own weights"))
        self.resume_button.setEnabled(may and earlier)
        self.resume_button.setToolTip(reason or ("Go on from the checkpoint" if earlier else "No run to go on with."))
        self.cancel_button.setEnabled(self._running)
        self.cancel_button.setToolTip("Stop; a checkpoint is left to go on from")
        self.progress.setVisible(self._running)
        idle = "" if self._running else reason or (held if earlier else "")
        self._state.setText(self._said or idle)
        set_look(self._state, self._look if self._said else "muted")

    def _say(self, text: str, look: str = "muted") -> None:
        self._said, self._look = text, look
        self._show()
        if text:
            self._area.ensureWidgetVisible(self._state)


def _words(look: str) -> QLabel:
    label = QLabel(wordWrap=True)
    label.setProperty("look", look)
    return label


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
