"""Layers: importance of the layers of a speech language model, and the choice of kept ones."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QGroupBox, QWidget

from paretone.models.files.layer_importance import COSINE, DIVERGENCE, WORD_ERROR, ImportanceRecord
from paretone_app.features.layers.layer_bars import LayerBars
from paretone_app.numbers import times
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, TIGHT, set_look
from paretone_app.shell.workspaces import recolour
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import SpinBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import Scrolled, VBoxLayout
from paretone_app.widgets.panel_parts import JobProgress

_MEASURED = {WORD_ERROR: "word errors", DIVERGENCE: "the divergence", COSINE: "the cosine"}


_INVITATION = (
    "How much each layer contributes, with intervals: the least important ones can be removed, and heard without.\n"
    "Measuring takes one run of the model per layer and sentence."
)


class LayersPanel(QWidget):
    """Left: number of kept layers, listening, measuring. Right: the bars."""

    toggled = Signal(int)
    depth_changed = Signal(int)

    def __init__(self, colours: Colours, can: Mapping[str, Action], hear: Mapping[str, Action]) -> None:
        """``hear``: by stage of recovery, the values of SPADE's knob ``recovery``."""
        super().__init__()
        self.can, self.hear = can, hear
        self._layers = 0
        self._retained: tuple[int, ...] = ()
        self._by_hand = False
        self._record: ImportanceRecord | None = None
        self._reason = ""
        self._measuring = False
        self._said, self._look = "", "muted"
        self._wants_bars = False
        self._build(colours)
        recolour(self, colours)
        self._show()

    def _build(self, colours: Colours) -> None:
        em = self.fontMetrics().height()
        tip = "SPADE's depth: number of the most important layers to keep"
        self.depth_box = build.named(SpinBox(minimum=1, maximum=1), "Layers kept", tip)
        self.depth_box.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.depth_box.valueChanged.connect(self.depth_changed)
        row = build.row((build.title_of("Layers &kept", self.depth_box), 1), self.depth_box)
        self.kept = build.words()
        can = self.can
        for action in (*self.hear.values(), can["train"]):
            action.explain(lambda: "" if self._pruned else "No layer is removed: keep fewer layers first.")
        can["study"].explain(lambda: "" if self._layers > 1 else "The model has only one layer.")
        self.by_importance = ActionButton(can["by_importance"])
        hearing = QGroupBox("Hear it")
        build.fill(VBoxLayout(hearing), [*map(ActionButton, (*self.hear.values(), can["train"]))], (GAP,) * 4)

        measuring = QGroupBox("Measure")
        self.sentences = SpinBox(minimum=1, maximum=30, value=6, suffix=" sentences")
        tip = "Number of Harvard sentences; intervals are over them"
        build.named(self.sentences, "Sentences to measure on", tip)
        self.sentences.valueChanged.connect(
            lambda count: self.sentences.setSuffix(" sentence" if count == 1 else " sentences")
        )
        self.word_errors = QCheckBox("&Word errors too (WLI)")
        self.word_errors.setToolTip(
            "Speak every sentence without each layer and recognise it: layers × "
            "sentences syntheses. Off: only the quick measures, divergence and cosine."
        )
        self.measure_button, self.cancel_button = ActionButton(can["measure"]), ActionButton(can["cancel"])
        self.progress = build.keeping_room(JobProgress("Progress of the measurement"))
        buttons = build.row((self.measure_button, 1), (self.cancel_button, 1))
        further = map(ActionButton, (can["study"], can["saving"]))
        parts = self.sentences, self.word_errors, buttons, self.progress, *further
        build.fill(VBoxLayout(measuring), parts, (GAP,) * 4)

        self.state = build.words("muted", selectable=True)
        parts = row, self.kept, self.by_importance, hearing, measuring, self.state, 1
        build.fill(VBoxLayout(content := QWidget()), parts, (TIGHT, TIGHT, GAP, TIGHT))
        area = Scrolled(content)
        area.setMinimumWidth(16 * em)

        self.bars = LayerBars(colours)
        self.bars.toggled.connect(self.toggled)
        self.bars.more_wanted.connect(lambda more: self.depth_changed.emit(len(self._retained) + more))
        self.legend = build.words(rich=True)
        tip = "Logarithmic axes: the first layer is often a hundred times as important"
        self.logarithmic = build.named(QCheckBox("Lo&garithmic"), tip=tip)
        self.logarithmic.toggled.connect(self.bars.set_logarithmic)
        foot = build.row((self.legend, 1), build.column(self.logarithmic, 1))
        self.pages = Invited(build.column((self.bars, 1), foot))
        self.pages.offer(can["measure"])
        self.hand_button = build.button("Select by hand", self._select_by_hand, "Show the layers to choose from")
        self.pages.empty.add(self.hand_button)
        outer = VBoxLayout(self)
        outer.addWidget(build.splitter(Qt.Orientation.Horizontal, [(area, 0), (self.pages, 1)], [18 * em, 48 * em]))

    def set_layers(
        self, layers: int, record: ImportanceRecord | None, retained: Sequence[int], depth: int, by_hand: bool
    ) -> None:
        """Set the number of layers (0: none can be removed), the measurement, and the kept layers."""
        if record is not self._record and record is not None:
            values = sorted(record.deciding.values)
            # The greatest value may be far above the median.
            self.logarithmic.setChecked(values[-1] > 12.0 * max(values[len(values) // 2], 1e-9))
        self._layers, self._record, self._retained, self._by_hand = layers, record, tuple(retained), by_hand
        with QSignalBlocker(self.depth_box):
            self.depth_box.setRange(1, max(1, layers))
            self.depth_box.setValue(depth)
        self.depth_box.setSuffix(f" of {layers}" if layers else "")
        self.bars.show_layers(layers, record, retained, by_hand)
        self._show()

    def set_reason(self, reason: str) -> None:
        """Set why no layers can be removed, as a sentence, or ``""``."""
        if reason != self._reason:
            self._reason = reason
            self._show()

    def begin(self) -> None:
        self._measuring = True
        self.progress.begin()
        self._say("")

    def end(self, sentence: str = "", failed: bool = False) -> None:
        self._measuring = False
        self._say(sentence, "warning" if failed else "muted")

    def set_colours(self, colours: Colours) -> None:
        self.legend.setText(
            f'<span style="color:{colours.accent}">■</span>&nbsp;kept &nbsp; '
            f'<span style="color:{colours.disabled}">▨</span>&nbsp;removed &nbsp; '
            f'<span style="color:{colours.danger}">┅</span>&nbsp;cut &nbsp; '
            f'<span style="color:{colours.good}">┈</span>&nbsp;all&nbsp;layers &nbsp; '
            f"┃&nbsp;95&nbsp;%&nbsp;interval &nbsp; "
            f'<span style="color:{colours.danger}">↻</span>&nbsp;did&nbsp;not&nbsp;end<br>'
            "Click or Space: keep or remove a layer. ↑ ↓: keep more or fewer."
        )

    def _show(self) -> None:
        some = bool(self._layers) and not self._reason
        for one in (self.depth_box, self.sentences, self.word_errors, self.bars):
            one.setEnabled(some and not self._measuring)
        self.by_importance.setVisible(self._by_hand)
        self.kept.setText(self._kept_text() if some else "")
        self.progress.setVisible(self._measuring)
        for action in (*self.hear.values(), self.can["train"], self.can["study"]):
            action.refresh()
        hint = "" if self._record else "No measurement of this model yet: measure, or select layers by hand."
        self.state.setText(self._said or self._reason or hint)
        set_look(self.state, self._look if self._said else "muted")
        self.state.setVisible(bool(self.state.text()))
        self._show_page()

    @property
    def _pruned(self) -> bool:
        return 0 < len(self._retained) < self._layers

    def _show_page(self) -> None:
        """Show the bars if they have content or the user asked for them; else an invitation."""
        some = bool(self._layers) and not self._reason
        self.pages.invite(self._reason or _INVITATION)
        self.hand_button.setEnabled(some)
        self.pages.show_content(some and (self._record is not None or self._pruned or self._wants_bars))
        self.setFocusProxy(self.depth_box if self.pages.is_empty else self.bars)

    def _select_by_hand(self) -> None:
        self._wants_bars = True
        self._show_page()
        self.bars.setFocus(Qt.FocusReason.OtherFocusReason)

    def _kept_text(self) -> str:
        count = len(self._retained)
        listed = ", ".join(map(str, self._retained))
        if count == self._layers:
            return f"All {count} layers are kept."
        how = "selected by hand"
        if not self._by_hand and self._record is not None:
            how = f"by {_MEASURED[self._record.deciding.measure]}"
            if (parting := self._record.cut(count)) is not None and parting[0] != self._record.deciding.measure:
                how += f", then {_MEASURED[parting[0]]}"
        ratio = self._layers / count
        kept = f"Layer {listed} is kept" if count == 1 else f"Layers {listed} are kept"
        return (
            f"{kept} ({how}), numbered as in the checkpoint, from 0. The transformer gets up to {times(ratio)} "
            "faster per token."
        )

    def _say(self, text: str, look: str = "muted") -> None:
        self._said, self._look = text, look
        self._show()
