"""Setup: text, voice, seed, model, techniques, sampler options, and the estimated cost."""

from collections.abc import Mapping

from PySide6.QtCore import QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QAbstractSpinBox, QCheckBox, QGroupBox, QPlainTextEdit, QVBoxLayout, QWidget

from paretone.errors import PlainError
from paretone.models import catalogue
from paretone.models.base import FLOW, LANGUAGE
from paretone.setting.plan import LanguagePlan
from paretone.techniques import resolve
from paretone_app.features.setup.cards import StepGrid, TechniqueList
from paretone_app.features.setup.choices import ModelChoice, VoiceChoice
from paretone_app.features.setup.spoken import AsSpoken
from paretone_app.numbers import fixed, localised, percent, rough_duration
from paretone_app.shell.colours import Colours
from paretone_app.shell.regions import insert_after
from paretone_app.shell.theme import GAP, NEAR, TIGHT, set_look
from paretone_app.state.app_state import AppState
from paretone_app.state.differences import prepared_entry
from paretone_app.state.selection import SEED_LIMIT
from paretone_app.widgets import build
from paretone_app.widgets.action import Action
from paretone_app.widgets.boxes import ComboBox, SpinBox
from paretone_app.widgets.knob_controls import KnobControls
from paretone_app.widgets.layouts import Scrolled, VBoxLayout


def cost_line(state: AppState) -> str:
    """Rich text of one line: the remaining share of operations, and the expected time of the whole text."""
    if state.selection.candidate:
        return f"<b>Cost</b> is shown once {catalogue.entry(state.selection.candidate).title} is loaded."
    said = (_of_tokens if state.selection.entry.family == LANGUAGE else _of_steps)(state)
    return " ".join(["<b>Cost</b>", *said, *_expected(state)])


def _of_steps(state: AppState) -> list[str]:
    steps = state.selection.options_in_force.get("steps")
    said = [f"It samples in {steps} steps." if steps is not None else "It samples in the model's own number of steps."]
    if not state.selection.setting.techniques:
        return [*said, "Every module is computed; no technique in use."]
    problem, ratio = state.availability.why_not_accelerate(), state.cost.ops_ratio
    if problem and state.selection.ready and state.artefacts.in_use:
        return [*said, problem]
    if ratio is not None:
        left, gain = percent(ratio, 1), fixed(1 / ratio, 2)
        return [*said, f"<b>{left}</b> of the baseline's operations are left, which allows {gain}× the speed."]
    uncalibrated = prepared_entry(state.selection.setting) is not None and state.cost.plan is None
    uncounted = state.selection.entry.family == FLOW and state.cost.operations is None
    awaited = [one for one, lacks in (("calibration", uncalibrated), ("one baseline", uncounted)) if lacks]
    return [*said, f"The saving is shown after {' and '.join(awaited) or 'a run'}."]


def _of_tokens(state: AppState) -> list[str]:
    if not state.selection.setting.techniques:
        return ["Each token takes one pass of the whole language model; no technique in use."]
    problem, plan = state.availability.why_not_accelerate(), state.cost.plan
    if problem or not isinstance(plan, LanguagePlan):
        return [problem] if problem else []
    layers = state.selection.loaded.layers
    kept = len(plan.weights.retained) if plan.weights is not None else len(plan.layers or range(layers))
    which = "all layers" if kept == layers else f"{kept} of {layers} layers"
    said = f"Each token takes a pass over {which}."
    if plan.draft is not None or plan.decoding is not None:
        said = f"Each draft takes a pass over {which}; Decoding shows the number of accepted tokens."
    return [said, *_of_flow(plan, state)]


def _of_flow(plan: LanguagePlan, state: AppState) -> list[str]:
    """Cost of the flow after the language model, if a technique acts on it."""
    flow = plan.flow
    if flow is None or flow == resolve(state.selection.loaded, state.selection.baseline_setting).flow:
        return []
    ratio = None if state.cost.operations is None else flow.ops_ratio(state.cost.operations)
    if ratio is None:
        return ["The flow's saving is shown after a run."]
    return [f"The flow needs <b>{percent(ratio, 1)}</b> of its operations."]


def _expected(state: AppState) -> list[str]:
    plain = state.cost.expected_seconds(state.selection.baseline_setting)
    if plain is None or not state.selection.text.strip():
        return []
    setting = state.selection.setting
    if not setting.techniques or state.availability.why_not_accelerate():
        return [f"The whole text takes about {rough_duration(plain)}."]
    fast = state.cost.expected_seconds(setting)
    if fast is None or fast == plain:  # What the techniques save is not known yet.
        return [f"The whole text takes about {rough_duration(plain)} without techniques."]
    return [f"The whole text takes about {rough_duration(fast)}, against {rough_duration(plain)} without techniques."]


class SetupPanel(QWidget):
    """All choices before a synthesis. Shows :class:`AppState` and changes it, nothing more."""

    problem = Signal(str)

    def __init__(self, state: AppState, colours: Colours, can: Mapping[str, Action], *, waits: bool = False) -> None:
        """``waits``: see :attr:`AsSpoken.waits`."""
        super().__init__()
        self._state = state
        self.model_choice = ModelChoice(state.selection, can)
        content = QWidget()
        self._column = VBoxLayout(content)
        self._column.setSpacing(TIGHT)
        self._column.setContentsMargins(GAP, 0, NEAR, NEAR)
        self.voice_choice = VoiceChoice(state)
        self.voice_choice.problem.connect(self.problem)
        self._add_speech_group(waits)
        self._group("Model").addWidget(self.model_choice)
        self.techniques = TechniqueList(state, colours, can["add_technique"])
        self.techniques.problem.connect(self.problem)
        self._column.addWidget(self.techniques)
        self._add_sampler_group(colours)
        self._column.addStretch(1)
        self._scroll = Scrolled(content)
        # Always, so that nothing moves when a job's result makes the content longer than its room.
        self._scroll.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.cost = build.words(name="Estimated cost")
        self.cost.setContentsMargins(GAP, NEAR, GAP, NEAR)
        build.fill(VBoxLayout(self), [(self._scroll, 1), self.cost]).setSpacing(0)
        for one in (self.techniques, self.sampler):
            one.rebuilt.connect(self._order_tabs)
        self._pending_text = QTimer(self, singleShot=True, interval=150)
        self._pending_text.timeout.connect(self._take_over_text)
        state.selection.model_changed.connect(self._show_model)
        state.selection.changed.connect(self._show_selection)
        state.cost.changed.connect(self._show_cost)
        state.gains.changed.connect(self.techniques.show_reasons)
        self._show_model()

    def _group(self, title: str) -> QVBoxLayout:
        group = QGroupBox(title)
        layout = VBoxLayout(group)
        layout.setContentsMargins(GAP, NEAR, GAP, GAP)
        layout.setSpacing(NEAR)
        self._column.addWidget(group)
        return layout

    def _add_speech_group(self, waits: bool) -> None:
        """What every take needs: text, voice and seed."""
        layout = self._group("Text")
        self.text = build.named(QPlainTextEdit(tabChangesFocus=True), "Text to speak")
        self.text.setPlaceholderText("Type any English sentence")
        self.text.setFixedHeight(int(self.fontMetrics().lineSpacing() * 4.2))
        self.text.textChanged.connect(lambda: self._pending_text.start())
        self.sentences = build.narrow(build.named(ComboBox(), "Sentences to choose from", "Replaces the text"), 10)
        self.sentences.addItem("Choose a sentence…")
        for sentence in catalogue.sentences():
            self.sentences.addItem(sentence, sentence)
        self.sentences.activated.connect(self._choose_sentence)
        self.as_spoken = AsSpoken(self._state, self.text, waits)
        self.as_spoken.problem.connect(self.problem)
        self.as_spoken.taught.connect(self._state.selection.take_over_lexicon)
        self.per_line = QCheckBox("One per line")
        self.per_line.setToolTip("Make a take of each line of the text, one after the other")
        self.per_line.toggled.connect(self._state.editing.set_one_per_line)
        tip = "Baseline and accelerated takes use the same seed, so they start from the same noise."
        self.seed = build.named(SpinBox(maximum=SEED_LIMIT), "Seed of the noise", tip)
        self.seed.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.seed.valueChanged.connect(self._state.editing.set_seed)
        self.seed_lock = QCheckBox("&Lock")
        self.seed_lock.setToolTip("Locked: keep this seed. Unlocked: draw a new one before each baseline.")
        self.seed_lock.toggled.connect(self._state.editing.set_seed_locked)
        seed = build.row(build.title_of("See&d", self.seed), (self.seed, 1), self.seed_lock)
        lines = build.row(self.per_line, 1, self.as_spoken.pronounce)
        for one in (self.text, self.as_spoken, self.sentences, lines, self.voice_choice, seed):
            layout.addWidget(one)

    def _add_sampler_group(self, colours: Colours) -> None:
        layout = self._group("Model options")
        self.sampler = KnobControls("Sampler", foremost=0)
        self.sampler.changed.connect(self._set_option)
        layout.addWidget(self.sampler)
        self.grid = StepGrid(colours)
        layout.addWidget(self.grid)
        self.notes = build.words("warning")
        self.notes.hide()
        layout.addWidget(self.notes)

    def minimumSizeHint(self) -> QSize:
        """Wide enough for the widest group, so that nothing is cut off and nothing scrolls sideways."""
        bar = self._scroll.verticalScrollBar().sizeHint().width()
        return QSize(self._scroll.content.minimumSizeHint().width() + bar, self.fontMetrics().height() * 12)

    def _order_tabs(self) -> None:
        """Make Tab follow reading order, although controls are created on demand."""
        insert_after(self.model_choice.keep, (*self.techniques.reachable, *self.sampler.reachable))

    def set_colours(self, colours: Colours) -> None:
        self.grid.set_colours(colours)
        self.techniques.set_colours(colours)

    def _show_model(self) -> None:
        self.voice_choice.show_model()
        self.model_choice.show_models()
        self.techniques.show_techniques()
        self.sampler.fold_defaults()
        self._show_selection()

    def _show_selection(self) -> None:
        chosen = self._state.selection
        self.model_choice.show_choice()
        self.voice_choice.show_choice()
        if self.text.toPlainText() != chosen.text and not self._pending_text.isActive():
            with QSignalBlocker(self.text):
                self.text.setPlainText(chosen.text)
        with QSignalBlocker(self.seed), QSignalBlocker(self.seed_lock), QSignalBlocker(self.per_line):
            self.per_line.setChecked(chosen.one_per_line)
            self.seed.setValue(chosen.seed)
            self.seed_lock.setChecked(chosen.seed_locked)
        self.sampler.set_knobs(chosen.entry.options, chosen.options, chosen.entry.options_with())
        for name in chosen.options:
            self.sampler.set_reason(name, self._state.availability.why_no_effect(name))
        self.grid.show_options(chosen.options)
        self.as_spoken.show_text()
        self.techniques.show_selection()
        self._show_cost()

    def _show_cost(self) -> None:
        state = self._state
        self.techniques.show_reasons()
        reason = state.availability.why_no_effect("guidance")
        said = dict.fromkeys(filter(None, (reason, *state.availability.notes)))
        self.notes.setText(localised(" ".join(said)))
        self.notes.setVisible(bool(self.notes.text()))
        set_look(self.notes, "warning" if state.availability.notes else "muted")
        self.cost.setText(cost_line(state))

    def _choose_sentence(self) -> None:
        if self.sentences.currentData() is not None:
            self._take_over_text()
            self._state.editing.set_text(self.sentences.currentData())

    def _take_over_text(self) -> None:
        self._pending_text.stop()
        self._state.editing.set_text(self.text.toPlainText(), typed=True)

    def reveal(self, technique: str = "", knob: str = "") -> None:
        """Scroll to a knob, of the sampler by default, or to the card of a technique, and focus it."""
        card = self.techniques.groups[technique] if technique else None
        controls = card.controls if card is not None else self.sampler
        wanted = controls.reveal(knob) if knob else card or self.text
        self._scroll.ensureWidgetVisible(wanted)
        wanted.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def commit(self) -> None:
        """Apply input that is still being typed; called before a job starts."""
        self._take_over_text()
        for spin in self.findChildren(QAbstractSpinBox):
            spin.interpretText()

    def _set_option(self, name: str, value: object) -> None:
        try:
            self._state.editing.set_option(name, value)
        except PlainError as error:
            self.problem.emit(str(error))
            self._show_selection()
