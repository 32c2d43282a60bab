"""Training: weights, drafts and students of the loaded model, with loss and validation curves."""

from collections.abc import Callable, Mapping

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QWidget

from paretone.errors import SettingError
from paretone.figures.scatter import Dimension, Scale
from paretone.models.base import MelFlow
from paretone.setting.knobs import Values, checked, defaults
from paretone.training.forms import Figure, TrainingForm, TrainingPlan, forms_for, training_forms
from paretone.training.requests import Trained, TrainingProgress, has_run
from paretone.wording import part_of
from paretone_app.numbers import counted, general, grouped, localised, percent, rough_duration, significant
from paretone_app.plotting.curves import DASHES, CurveChart, Series, series_colour, shape_of
from paretone_app.shell.colours import Colours
from paretone_app.shell.regions import insert_after
from paretone_app.shell.theme import GAP, TIGHT, set_look
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import ComboBox, DoubleSpinBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.knob_controls import KnobControls
from paretone_app.widgets.layouts import FormLayout, HBoxLayout, Scrolled, VBoxLayout
from paretone_app.widgets.panel_parts import InstallOffer, JobProgress, ShownPanel

_SMOOTHING = 25
"""Window of the running mean of thick loss curves, in steps: single batches differ more than training changes."""


def figure_wording(figure: Figure, value: float) -> str:
    return localised(part_of(value)) if figure.share else significant(value)


class TrainingCurves(QWidget):
    """Loss above, validation below; both over a logarithmic axis of steps."""

    drawn = Signal()

    def __init__(self, colours: Colours, when_seen: Callable[[Callable[[], object]], None]) -> None:
        super().__init__()
        self.steps: list[int] = []
        self.terms: dict[str, list[float]] = {}
        self.validated: list[int] = []
        self.found: dict[str, list[float]] = {}
        self._figures: tuple[Figure, ...] = ()
        self._colours = colours
        self._redraw = QTimer(self, singleShot=True, interval=100)
        self._redraw.timeout.connect(lambda: when_seen(self._draw))
        step = Dimension("step")
        self.loss = CurveChart("Loss of every step", step, Dimension("loss"), colours)
        self.validation = CurveChart("Validation", step, Dimension("share"), colours)
        self.losses, self.legend = build.words(rich=True), build.words(rich=True)
        build.fill(VBoxLayout(self), (self.losses, (self.loss, 1), self.legend, (self.validation, 1)))
        self._draw()

    def show_figures(self, figures: tuple[Figure, ...]) -> None:
        """Set the validation figures to draw; other figures than before clear the curves."""
        if figures != self._figures:
            self._figures = figures
            self.clear()

    def clear(self) -> None:
        for one in (self.steps, self.terms, self.validated, self.found):
            one.clear()
        self._draw()

    def add(self, event: TrainingProgress) -> None:
        if event.losses:
            _append(self.steps, self.terms, event.step, event.losses)
        if event.validation:
            # A logarithmic axis has no 0: figures from before the first step are drawn at 1.
            _append(self.validated, self.found, max(event.step, 1), event.validation)
        if not self._redraw.isActive():
            self._redraw.start()

    @property
    def has_any(self) -> bool:
        return bool(self.steps or self.validated)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self._draw()

    def _draw(self) -> None:
        self._say()
        colours, steps, validated = self._colours, np.array(self.steps, float), np.array(self.validated, float)
        inks = [series_colour(colours, index) for index in range(max(len(self.terms), len(self._figures)))]
        across = Scale.of(np.array([1.0, max([10, *self.steps[-1:], *self.validated[-1:]])]), True)
        means = [
            Series(name, steps, np.array(_running_mean(values)), ink, style=DASHES[index // 5])
            for index, (ink, (name, values)) in enumerate(zip(inks, self.terms.items(), strict=False))
        ]
        # Several terms of a loss differ by orders of magnitude, and their curves of every step would hide each other.
        each = [Series("each step", steps, np.array(values), colours.disabled, 1.0) for values in self.terms.values()]
        each = each if len(each) == 1 else []
        drawn = np.concatenate([np.empty(0), *(one.y for one in (*each, *means))])
        up = Scale.of(drawn, logarithmic=len(self.terms) > 1)
        self.loss.show_series([*each, *means], across, up, summary=self.losses.text())
        found = [
            Series(one.title, validated, values, ink, mark=shape_of(index))
            for index, (ink, one) in enumerate(zip(inks, self._figures, strict=False))
            if len(values := np.array(self._drawn(one)))
        ]
        every = [value for one in found for value in one.y.tolist()]
        up = Scale(min([0.0, *every]), 1.05 * max([1.0, *every]))
        self.validation.show_series(found, across, up, summary=self.legend.text())
        self.drawn.emit()

    def _drawn(self, one: Figure) -> list[float]:
        """Values of a figure as drawn: shares as they are, others divided by the first value."""
        values = self.found.get(one.name, [])
        return list(values) if one.share else [value / (values[0] or 1.0) for value in values]

    def _say(self) -> None:
        colours = self._colours
        said = [
            f"{_mark('━', series_colour(colours, index))}&nbsp;{name.replace('_', '&nbsp;')}&nbsp;"
            f"{significant(_running_mean(values)[-1])}"
            for index, (name, values) in enumerate(self.terms.items())
        ]
        mean = f" (mean of {min(len(self.steps), _SMOOTHING)} steps)" if said else "–"
        self.losses.setText(f"Loss: {' &nbsp; '.join(said)}{mean}")
        legend = []
        for index, one in enumerate(self._figures):
            values = self.found.get(one.name)
            value = figure_wording(one, values[-1]) if values else "–"
            title = one.title if one.share else f"{one.title} (drawn as a share of the first)"
            legend.append(f"{_mark('●', series_colour(colours, index))}&nbsp;{title}: {value}")
        self.legend.setText(" &nbsp; ".join(legend))


def _append(steps: list[int], series: dict[str, list[float]], step: int, values: Mapping[str, float]) -> None:
    """Add ``values`` by name at ``step``, replacing entries at that step or later."""
    while steps and steps[-1] >= step:
        steps.pop()
        for one in series.values():
            one.pop()
    for name, value in values.items():
        series.setdefault(name, [float("nan")] * len(steps)).append(float(value))
    steps.append(step)
    for one in series.values():
        if len(one) < len(steps):
            one.append(float("nan"))


def _mark(sign: str, colour: str) -> str:
    return f'<span style="color:{colour}">{sign}</span>'


def _running_mean(values: list[float]) -> list[float]:
    """Running mean over the last steps, without the steps that lack the term."""
    taken = np.isfinite(values)
    sums, counts = np.cumsum(np.where(taken, values, 0.0)), np.cumsum(taken)
    sums[_SMOOTHING:] -= sums[:-_SMOOTHING].copy()
    counts[_SMOOTHING:] -= counts[:-_SMOOTHING].copy()
    return list(np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0))


_PREPARING = "Preparing the training. Its curves begin with the first steps."
_HELD = "The work folder contains an earlier run: resume it, or choose another folder."


class TrainingPanel(ShownPanel):
    """Left: the training, its data, knobs and time. Right: loss and validation."""

    training_chosen = Signal(str)
    """The training of this name was chosen: propose its usual time and folder."""

    def __init__(self, colours: Colours, can: Mapping[str, Action]) -> None:
        super().__init__()
        self.can = can
        self._said, self._look = "", "muted"
        self._running = ""
        self.elsewhere = False
        self._spoken = False
        self._estimated = ""
        self.forms = {one.name: one for one in training_forms()}
        self._values: dict[str, Values] = {name: defaults(one.knobs) for name, one in self.forms.items()}
        self._build(colours)
        self.offer("flow")

    def _build(self, colours: Colours) -> None:
        em = self.fontMetrics().height()
        self.chooser = build.named(ComboBox(), "Training")
        self.chooser.currentIndexChanged.connect(self._choose)
        self._intro = build.words("muted")
        can = self.can
        self.manifest = build.named(QLineEdit(placeholderText="manifest.csv"), "Manifest")
        choose_manifest = ActionButton(can["choose_manifest"], name=can["choose_manifest"].tip)
        tip = "List of an evaluation set whose recordings validate the training"
        self.validation = build.named(QLineEdit(placeholderText="some of the speech"), "Validation set", tip)
        choose_validation = ActionButton(can["choose_validation"], name=can["choose_validation"].tip)
        recordings = QLineEdit(placeholderText="LibriSpeech/dev-clean")
        self.recordings = build.named(recordings, "Folder of recordings", "Of LibriSpeech, for its list")
        self.work = build.named(QLineEdit(placeholderText="for checkpoints and the log"), "Work folder")
        self._choose_work = ActionButton(can["choose_work"], name=can["choose_work"].tip)
        self._controls: dict[str, KnobControls] = {}
        controls = VBoxLayout()
        for one in self.forms.values():
            made = self._controls[one.name] = KnobControls(one.title)
            made.changed.connect(self._change_knob)
            made.rebuilt.connect(self._order_tabs)
            controls.addWidget(made)
        self.remark = build.words("muted")
        self.minutes = DoubleSpinBox(decimals=1, suffix=" min", minimum=0.1, maximum=100_000.0, value=15)
        tip = "CPU minutes, independent of the machine's load; minutes on a GPU."
        build.named(self.minutes, "Training minutes", tip)
        self.epochs = DoubleSpinBox(decimals=1, maximum=100_000, suffix=" epochs", specialValueText="by time")
        build.named(self.epochs, "Training epochs", "Clips drawn over clips to train on, in place of the time")
        self.epochs.valueChanged.connect(self._show)
        self.estimate = build.words("muted")
        self.rate = DoubleSpinBox(decimals=2, prefix="× ", singleStep=0.1, minimum=0.01, maximum=10.0, value=1.0)
        tip = "Factor on the default learning rate. Lower it to resume a run whose loss was not finite."
        build.named(self.rate, "Learning rate factor", tip)
        tip = "Faster on GPUs and on CPUs with AMX; losses are summed in float32."
        self.half = build.named(QCheckBox("&bfloat16 where faster"), tip=tip)
        for number in (self.minutes, self.epochs, self.rate):
            number.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.minutes.valueChanged.connect(self._show)
        for edit in (self.manifest, self.validation, self.work):
            edit.textChanged.connect(self._show)
        speech = self.manifest, choose_manifest, self.validation, choose_validation, self.recordings
        budget = self.minutes, self.epochs, self.rate, self.half
        place = self.work, self._choose_work
        self._inputs: tuple[QWidget, ...] = self.chooser, *speech, *place, *self._controls.values(), *budget
        self._form = form = FormLayout()
        self._rows: dict[QLineEdit, QHBoxLayout] = {}
        fields = ("&Time", self.minutes), ("Ep&ochs", self.epochs), ("Learnin&g rate", self.rate)
        time, epochs, rate = self._titles = [build.title_of(title, field) for title, field in fields]
        for title, editor, button in (
            ("Ma&nifest", self.manifest, choose_manifest),
            ("Validation", self.validation, choose_validation),
            ("Recordings", self.recordings, None),
            ("Wor&k folder", self.work, self._choose_work),
        ):
            row = HBoxLayout()
            row.addWidget(editor, 1)
            if button is not None:
                row.addWidget(button)
            self._titles.append(build.title_of(title, editor))
            form.addRow(self._titles[-1], row)
            self._rows[editor] = row
        form.addRow(controls)
        form.addRow(self.remark)
        form.addRow(time, self.minutes)
        form.addRow(epochs, self.epochs)
        form.addRow(self.estimate)
        form.addRow(rate, self.rate)
        form.addRow(self.half)
        for action in (can["start"], can["resume"]):
            action.explain(self._missing)
        can["start"].explain(lambda: _HELD if self._has_run else "")
        can["resume"].explain(lambda: "No run to resume." if self._has_run is False else "")
        can["start"].changed.connect(self._show_state)
        self.start_button = ActionButton(can["start"])
        self.resume_button, self.cancel_button = ActionButton(can["resume"]), ActionButton(can["cancel"])
        buttons = build.row((self.start_button, 1), (self.resume_button, 1), (self.cancel_button, 1))
        self.progress = build.keeping_room(JobProgress("Training progress"))
        self.state = build.words("muted", selectable=True)
        self.install = InstallOffer()
        content = QWidget()
        build.fill(VBoxLayout(content), [self.chooser, self._intro, self.install, form, 1], (TIGHT, TIGHT, GAP, TIGHT))
        self._area = Scrolled(content)
        left = build.column((self._area, 1), buttons, self.progress)
        left.setMinimumWidth(25 * em)
        self.curves = TrainingCurves(colours, self.when_seen)
        self.pages = Invited(self.curves)
        self.pages.offer(can["start"], double=self.start_button)
        self.curves.drawn.connect(lambda: self.pages.show_content(self.curves.has_any))
        right = build.column(self.state, (self.pages, 1))  # Here a sentence moves no controls.
        outer = VBoxLayout(self)
        outer.addWidget(build.splitter(Qt.Orientation.Horizontal, [(left, 0), (right, 1)], [25 * em, 40 * em]))
        self.setFocusProxy(self.work)

    def offer(self, family: str, mel_flow: MelFlow | None = None) -> None:
        """List the trainings for models of ``family``; keep the list if there are none, and during a training.
        ``mel_flow``: that after a language model."""
        known = forms_for(family, mel_flow)
        listed = [self.chooser.itemData(index) for index in range(self.chooser.count())]
        if self._running or not known or listed == [one.name for one in known]:
            return
        build.offer(self.chooser, ((one.title, one.name) for one in known), known[0].name)
        self.chooser.setVisible(len(known) > 1)
        self._choose()

    @property
    def training(self) -> TrainingForm:
        return self.forms[self.chooser.currentData()]

    @property
    def knobs(self) -> KnobControls:
        return self._controls[self.training.name]

    def propose(self, minutes: float, work: str) -> None:
        self.minutes.setValue(minutes)
        self.work.setText(work)

    def fit(self, knobs: Mapping[str, object]) -> None:
        one = self.training
        self._values[one.name] = checked(one.knobs, self._values[one.name].replace(**knobs), one.title)
        self._show()

    def choose(self, name: str, **knobs: object) -> None:
        """Choose the training called ``name``, and set some of its knobs."""
        index = self.chooser.findData(name)
        if index >= 0:
            one = self.forms[name]
            self._values[name] = checked(one.knobs, self._values[name].replace(**knobs), one.title)
            with QSignalBlocker(self.chooser):
                self.chooser.setCurrentIndex(index)
            self._choose()

    def follow(self, name: str) -> None:
        if not self._running:
            self.choose(name)

    def set_corpus(self, spoken: bool, estimate: str) -> None:
        """Set whether training speech can be synthesised without a manifest, and the estimated time of the training,
        or ``""``; the latter is hidden during a training."""
        self._spoken, self._estimated = spoken, estimate
        of_model = spoken and self.training.needs_manifest
        self.manifest.setPlaceholderText("synthesised speech" if of_model else "manifest.csv")
        self._show()

    def begin(self, resume: bool) -> None:
        self._running = self.training.name
        self._say("")
        self.progress.begin()
        self.pages.invite(_PREPARING, filling=True)
        if not resume:
            self.curves.clear()
        self._show()

    def show_preparing(self, done: int, total: int, seconds_left: float | None, text: str) -> None:
        """Show the progress of the preparations before the first step."""
        if self._running and not self.curves.has_any:
            self.progress.show_progress(done, total, seconds_left)
            sentence = text if text.endswith((".", "…")) or not text else f"{text}."
            self.pages.invite(f"{_PREPARING} {sentence}".strip(), filling=True)

    def show_progress(self, progress: TrainingProgress) -> None:
        if not self._running:
            return
        self.curves.add(progress)
        build.show_share(self.progress, progress.share)
        left = "" if progress.seconds_left is None else f", {rough_duration(progress.seconds_left, tenths=False)} left"
        self.progress.setFormat(f"Step {grouped(progress.step)}: {percent(progress.share)}{left}")
        ran = self.forms[self._running]
        if (first := ran.found[0]).name in progress.validation:
            found = figure_wording(first, progress.validation[first.name])
            self._say(ran.progress.format(step=progress.step, found=found))

    def show_result(self, made: Trained) -> None:
        steps = counted(made.steps, "step", "steps")
        self._say(f"Done in {steps}: {made.summary} The weights are in {made.checkpoint}.", "good")

    def end(self, sentence: str = "", failed: bool = False) -> None:
        self._running = ""
        if sentence:
            self._say(sentence, "warning" if failed else "muted")
        self._show()

    def plan(self, resume: bool) -> TrainingPlan:
        name, half, fields = self.training.name, self.half.isChecked(), (self.manifest, self.work, self.validation)
        manifest, work, validation = (one.text().strip() for one in fields)
        recordings = self.recordings.text().strip() if self._names_librispeech else ""
        values, minutes = self._values[name], self.minutes.value()
        rate, epochs = self.rate.value(), self.epochs.value()
        return TrainingPlan(name, manifest, work, minutes, half, resume, values, rate, epochs, validation, recordings)

    @property
    def _names_librispeech(self) -> bool:
        """Whether the list of the validation set has its recordings in a separate folder."""
        return "librispeech" in self.validation.text().lower()

    def _order_tabs(self) -> None:
        """Make Tab follow reading order, although controls are created on demand."""
        insert_after(self._choose_work, self.knobs.reachable)

    def _choose(self) -> None:
        one = self.training
        self._intro.setText(one.intro)
        self.curves.show_figures(one.found)
        for name, controls in self._controls.items():
            controls.setVisible(name == one.name)
        self.training_chosen.emit(one.name)
        self._show()

    def _change_knob(self, name: str, value: object) -> None:
        one = self.training
        try:
            self._values[one.name] = checked(one.knobs, self._values[one.name].replace(**{name: value}), one.title)
        except SettingError as error:
            self._say(str(error), "warning")
            return
        self._said = ""
        self.training_chosen.emit(one.name)
        self._show()

    def _show(self) -> None:
        one, values = self.training, self._values[self.training.name]
        self.knobs.set_knobs(one.knobs, values)
        # The fields of all rows begin and end below each other.
        letters = self.fontMetrics().horizontalAdvance
        lead = self.knobs.align(max(letters(one.text().replace("&", "")) for one in self._titles))
        for title in self._titles:
            title.setMinimumWidth(lead - GAP)
            title.setEnabled(not self._running)
        self.remark.setText(localised(one.remark(values)))
        self.remark.setVisible(bool(self.remark.text()))
        for control in self._inputs:
            control.setEnabled(not self._running)
        self.minutes.setEnabled(not self._running and not self.epochs.value())
        for action in (self.can["start"], self.can["resume"]):
            action.refresh()
        self.progress.setVisible(bool(self._running))
        self._form.setRowVisible(self._rows[self.recordings], self._names_librispeech)
        self.estimate.setMinimumHeight(self.estimate.height() if self._running and self._estimated else 0)
        self.estimate.setText("" if self._running else self._estimated)
        self.estimate.setVisible(bool(self._estimated))
        if not self._running:
            synthesised = self._spoken or values.get("sentences")
            speech = "speech that is synthesised first" if synthesised else "recordings with their texts"
            if self.manifest.text().strip():
                speech = "the recordings of the manifest"
            epochs, minutes = self.epochs.value(), self.minutes.value()
            long = f"{general(epochs)} epochs" if epochs else f"about {rough_duration(60 * minutes, tenths=False)}"
            self.pages.invite(f"Loss and validation are drawn here during training, which takes {speech} and {long}.")
        self._show_state()

    def _missing(self) -> str:
        """Which input is missing, as a sentence, or ``""``."""
        one, plan = self.training, self.plan(resume=False)
        if not (plan.manifest or plan.knobs.get("sentences") or (one.needs_manifest and self._spoken)):
            return "Choose a manifest (a CSV file with recordings and texts), or have the model say sentences."
        return "" if plan.work else "Choose a folder for checkpoints and the log."

    @property
    def _has_run(self) -> bool | None:
        """Whether the work folder has a run; ``None`` for a host's, which says so itself when a training starts."""
        return None if self.elsewhere else has_run(self.plan(resume=False).work)

    def _show_state(self) -> None:
        reason = self.can["start"].reason
        self.install.offer(reason)
        idle = "" if self._running else reason
        self.state.setText(self._said or idle)
        set_look(self.state, self._look if self._said else "muted")
        self.state.setVisible(bool(self.state.text()))

    def _say(self, text: str, look: str = "muted") -> None:
        self._said, self._look = text, look
        self._show()
