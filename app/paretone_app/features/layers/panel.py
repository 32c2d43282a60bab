"""Layers: importance of the layers of a speech language model, and the choice of kept ones.

The panel knows neither the application's state nor the engine: methods in, signals out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QGroupBox,
    QLabel,
    QPushButton,
    QWidget,
)

from paretone.models.files.layer_importance import COSINE, DIVERGENCE, WORD_ERROR, ImportanceRecord
from paretone.techniques import spade
from paretone_app.features.layers.layer_bars import LayerBars
from paretone_app.numbers import fixed
from paretone_app.shell.colours import Colours
from paretone_app.shell.metrics import GAP, TIGHT
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build, sketching
from paretone_app.widgets.boxes import SpinBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.job_progress import JobProgress
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.scrolled import Scrolled

STAGES = {
    spade.NONE: ("&Pruned", "Hear the model with layers removed, before training"),
    spade.PARTLY: ("Br&iefly retrained", "Hear a student after some minutes of training"),
    spade.RECOVERED: ("Fully retr&ained", "Hear the fully trained student"),
}
_SPREAD = 12.0
"""Ratio of the greatest value to the median from which axes are logarithmic."""
_MEASURED = {WORD_ERROR: "word errors", DIVERGENCE: "the divergence", COSINE: "the cosine"}


_INVITATION = (
    "How much each layer contributes, with intervals: the least important ones can be removed, and heard without.\n"
    "Measuring takes one run of the model per layer and sentence."
)


@dataclass(frozen=True)
class MeasurePlan:
    """Measurements to make of every layer."""

    word_errors: bool
    """Speak and recognise sentences without each layer, in addition to the quick measures."""
    sentences: int


class LayersPanel(QWidget):
    """Left: number of kept layers, listening, measuring. Right: the bars."""

    toggled = Signal(int)
    """The user wants to keep this layer, or to remove it if it is kept."""
    depth_wanted = Signal(int)
    """The user wants this many layers."""
    importance_wanted = Signal()
    """The user wants the most important layers again, not those chosen by hand."""
    hear_wanted = Signal(str)
    """The user wants to hear the kept layers at this stage of recovery (a value of SPADE's knob)."""
    training_wanted = Signal()
    """The user wants a student of these layers trained."""
    measure_wanted = Signal(object)
    """The user wants this :class:`MeasurePlan` carried out."""
    study_wanted = Signal(int)
    """The user wants word errors on a number of sentences measured by a study."""
    cancel_wanted = Signal()
    saving_wanted = Signal()
    """The user wants to see memory and time by depth."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._layers = 0
        self._retained: tuple[int, ...] = ()
        self._by_hand = False
        self._record: ImportanceRecord | None = None
        self._reason = self._busy = ""
        self._stage_reasons: Mapping[str, str] = {}
        self._measuring = False
        self._said, self._look = "", "muted"
        self._wants_bars = False
        self._build(colours)
        self.set_colours(colours)
        self._show()

    def _build(self, colours: Colours) -> None:
        em = self.fontMetrics().height()
        self.depth_box = SpinBox(minimum=1, maximum=1)
        self.depth_box.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.depth_box.setAccessibleName("Layers kept")
        self.depth_box.setToolTip("SPADE's depth: number of the most important layers to keep")
        self.depth_box.valueChanged.connect(self.depth_wanted)
        label = QLabel("Layers &kept")
        label.setBuddy(self.depth_box)
        row = HBoxLayout()
        row.addWidget(label, 1)
        row.addWidget(self.depth_box)
        self.kept = build.words()
        self.by_importance = build.button("By &importance", self.importance_wanted, "Discard manual selection")
        self.stage_buttons: dict[str, QPushButton] = {}
        hearing = QGroupBox("Hear it")
        column = VBoxLayout(hearing)
        for stage, (title, _) in STAGES.items():
            button = build.button(title, lambda _=False, stage=stage: self.hear_wanted.emit(stage))
            self.stage_buttons[stage] = button
            column.addWidget(button)
        self.train_button = build.button("&Train a student…", self.training_wanted)
        column.addWidget(self.train_button)

        measuring = QGroupBox("Measure")
        column = VBoxLayout(measuring)
        self.sentences = SpinBox(minimum=1, maximum=30, value=6, suffix=" sentences")
        self.sentences.setAccessibleName("Sentences to measure on")
        self.sentences.setToolTip("Number of Harvard sentences; intervals are over them")
        self.sentences.valueChanged.connect(self._show_sentences)
        self.word_errors = QCheckBox("&Word errors too (WLI)")
        self.word_errors.setToolTip(
            "Speak every sentence without each layer and recognise it: layers × "
            "sentences syntheses. Off: only the quick measures, divergence and cosine."
        )
        self.measure_button = QPushButton("Measure &layers")
        self.measure_button.clicked.connect(
            lambda: self.measure_wanted.emit(MeasurePlan(self.word_errors.isChecked(), self.sentences.value()))
        )
        self.cancel_button = build.button("Ca&ncel", self.cancel_wanted)
        self.progress = JobProgress("Progress of the measurement")
        self.study_button = build.button(
            "Word errors as a stud&y…", lambda: self.study_wanted.emit(self.sentences.value())
        )
        buttons = HBoxLayout()
        for one in (self.measure_button, self.cancel_button):
            buttons.addWidget(one, 1)
        for one in (self.sentences, self.word_errors):
            column.addWidget(one)
        column.addLayout(buttons)
        column.addWidget(self.progress)
        column.addWidget(self.study_button)
        self.saving_button = build.button(
            "Memory and time by &depth", self.saving_wanted, "Measure the saving at several depths (opens Views)"
        )
        column.addWidget(self.saving_button)

        self._state = build.words("muted", selectable=True)
        content = QWidget()
        column = VBoxLayout(content)
        column.setContentsMargins(TIGHT, TIGHT, GAP, TIGHT)
        column.addLayout(row)
        column.addWidget(self.kept)
        column.addWidget(self.by_importance)
        column.addWidget(self._state)
        column.addWidget(hearing)
        column.addWidget(measuring)
        column.addStretch(1)
        area = Scrolled(content)
        area.setMinimumWidth(16 * em)

        self.bars = LayerBars(colours)
        self.bars.toggled.connect(self.toggled)
        self.bars.depth_wanted.connect(lambda more: self.depth_wanted.emit(len(self._retained) + more))
        self.legend = build.words(rich=True)
        self.logarithmic = QCheckBox("Lo&garithmic")
        self.logarithmic.setToolTip("Logarithmic axes: the first layer is often a hundred times as important")
        self.logarithmic.toggled.connect(self.bars.set_logarithmic)
        foot = HBoxLayout()
        foot.addWidget(self.legend, 1)
        foot.addWidget(self.logarithmic, 0, Qt.AlignmentFlag.AlignTop)
        right = build.column((self.bars, 1), foot)
        self.pages = Invited(right, sketch=sketching.bars(16))
        self.pages.offer(self.measure_button)
        self.hand_button = build.button("Select by hand", self._select_by_hand, "Show the layers to choose from")
        self.pages.empty.add(self.hand_button)
        outer = VBoxLayout(self)
        outer.addWidget(build.splitter(Qt.Orientation.Horizontal, [(area, 0), (self.pages, 1)], [18 * em, 48 * em]))

    # --- Methods in --------------------------------------------------------------------------------------------------
    def set_layers(
        self,
        layers: int,
        record: ImportanceRecord | None,
        retained: Sequence[int],
        depth: int,
        by_hand: bool,
    ) -> None:
        """Set the number of layers (0: none can be removed), the measurement, and the kept layers."""
        if record is not self._record and record is not None:
            self.logarithmic.setChecked(_spreads(record))
        self._layers, self._record, self._retained, self._by_hand = layers, record, tuple(retained), by_hand
        with QSignalBlocker(self.depth_box):
            self.depth_box.setRange(1, max(1, layers))
            self.depth_box.setValue(depth)
        self.depth_box.setSuffix(f" of {layers}" if layers else "")
        self.bars.show_layers(layers, record, retained, by_hand)
        self._show()

    def set_reasons(self, reason: str, busy: str, stages: Mapping[str, str]) -> None:
        """Why nothing can be done here, why nothing can be started now, and why each stage cannot be heard: sentences,
        or ``""``."""
        self._reason, self._busy, self._stage_reasons = reason, busy, dict(stages)
        self._show()

    def begin(self) -> None:
        """A measurement begins."""
        self._measuring = True
        self.progress.begin()
        self._say("")

    def show_progress(self, done: int, total: int, seconds_left: float | None) -> None:
        """Progress of the measurement."""
        if self._measuring:
            self.progress.show_progress(done, total, seconds_left)

    def end(self, sentence: str = "", failed: bool = False) -> None:
        """The measurement ended; ``sentence`` says why early."""
        self._measuring = False
        self._say(sentence, "warning" if failed else "muted")

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self.bars.set_colours(colours)
        self.legend.setText(
            f'<span style="color:{colours.accent}">■</span>&nbsp;kept &nbsp; '
            f'<span style="color:{colours.disabled}">▨</span>&nbsp;removed &nbsp; '
            f'<span style="color:{colours.danger}">┅</span>&nbsp;cut &nbsp; '
            f'<span style="color:{colours.good}">┈</span>&nbsp;all&nbsp;layers &nbsp; '
            f"┃&nbsp;95&nbsp;%&nbsp;interval &nbsp; "
            f'<span style="color:{colours.danger}">↻</span>&nbsp;did&nbsp;not&nbsp;end<br>'
            "Click or Space: keep or remove a layer. ↑ ↓: keep more or fewer."
        )

    @property
    def state(self) -> str:
        """The sentence shown about the state."""
        return self._state.text()

    # --- Showing -----------------------------------------------------------------------------------------------------
    def _show(self) -> None:
        some = bool(self._layers) and not self._reason
        for one in (self.depth_box, self.sentences, self.word_errors, self.bars):
            one.setEnabled(some and not self._measuring)
        self.by_importance.setVisible(self._by_hand)
        self.kept.setText(self._kept_text() if some else "")
        may_start = some and not self._busy and not self._measuring
        self.measure_button.setEnabled(may_start)
        self.measure_button.setToolTip(self._reason or self._busy or "Measure the importance of each layer")
        self.saving_button.setEnabled(may_start)
        reason = self._reason or ("" if self._layers > 1 else "The model has only one layer.")
        build.allow(self.study_button, reason, "Several voices and seeds; can be paused and resumed")
        self.cancel_button.setEnabled(self._measuring)
        self.progress.setVisible(self._measuring)
        pruned = 0 < len(self._retained) < self._layers
        nothing = "" if pruned else "No layer is removed: keep fewer layers first."
        for stage, button in self.stage_buttons.items():
            reason = self._reason or nothing or self._stage_reasons.get(stage, "") or self._busy
            button.setEnabled(not reason and not self._measuring)
            button.setToolTip(reason or STAGES[stage][1])
        reason = self._reason or nothing or self._busy
        self.train_button.setEnabled(not reason and not self._measuring)
        self.train_button.setToolTip(reason or "Open Training to train a student with these layers")
        self._state.setText(self._said or self._reason or self._hint())
        set_look(self._state, self._look if self._said else "muted")
        self._state.setVisible(bool(self._state.text()))
        self._show_page()

    def _show_page(self) -> None:
        """The bars, once there is something in them or the user asked for them; else what they would show."""
        some = bool(self._layers) and not self._reason
        pruned = 0 < len(self._retained) < self._layers
        self.pages.invite(self._reason or _INVITATION)
        self.hand_button.setEnabled(some)
        self.pages.show_content(some and (self._record is not None or pruned or self._wants_bars))
        self.setFocusProxy(self.depth_box if self.pages.is_empty else self.bars)

    def _select_by_hand(self) -> None:
        self._wants_bars = True
        self._show_page()
        self.bars.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_sentences(self, count: int) -> None:
        self.sentences.setSuffix(" sentence" if count == 1 else " sentences")

    def _kept_text(self) -> str:
        count = len(self._retained)
        listed = ", ".join(map(str, self._retained))
        if count == self._layers:
            return f"All {count} layers are kept."
        how = "selected by hand"
        if not self._by_hand and self._record is not None:
            how = f"by {_MEASURED[self._record.deciding.measure]}"
            parting = self._record.cut(count)
            if parting is not None and parting[0] != self._record.deciding.measure:
                how += f", then {_MEASURED[parting[0]]}"
        ratio = self._layers / count
        kept = f"Layer {listed} is kept" if count == 1 else f"Layers {listed} are kept"
        return (
            f"{kept} ({how}), numbered as in the checkpoint, from 0. The transformer gets up to {fixed(ratio, 2)}× "
            "faster per token."
        )

    def _hint(self) -> str:
        if self._record is None:
            return "No measurement of this model yet: measure, or select layers by hand."
        return ""

    def _say(self, text: str, look: str = "muted") -> None:
        self._said, self._look = text, look
        self._show()


def _spreads(record: ImportanceRecord) -> bool:
    """Whether most layers would be invisible next to the greatest one."""
    values = sorted(record.deciding.values)
    return values[-1] > _SPREAD * max(values[len(values) // 2], 1e-9)
