"""Demasking: the order in which a masked model's canvas filled in, and its sound after any step."""

from itertools import accumulate

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy

from paretone.setting.take import DemaskedPassage, DemaskingTrace, Trace
from paretone_app.features.demasking.grid import DemaskingGrid
from paretone_app.numbers import percent
from paretone_app.plotting.cursor_canvas import Painted
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP
from paretone_app.shell.workspaces import recolour
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import Slider
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import Scrolled, VBoxLayout
from paretone_app.widgets.screen_readers import CHART
from paretone_app.widgets.side_panel import TakePanel

_NOTHING = (
    "No canvas yet. Load a masked model, such as Omni mini or OmniVoice, and speak: this panel shows how "
    "its canvas of codes was filled in, step by step."
)


class StepBars(Painted):
    """Codes committed per step (bars) and in total (line). A click goes to a step."""

    screen_role = CHART

    step_wanted = Signal(int)

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self.fill = colours.accelerated
        self._counts: tuple[int, ...] = ()
        self._step = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Codes committed at each step")

    def show_counts(self, counts: tuple[int, ...], fill: str) -> None:
        self._counts, self.fill = counts, fill
        self.setToolTip("Bars: codes committed by each step. Line: all codes after it.")
        self.update()

    def show_step(self, step: int) -> None:
        self._step = step
        self.update()

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(30 * em, 4 * em)

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(self.colours.base))
            if not self._counts:
                return
            most, total = max(self._counts) or 1, sum(self._counts) or 1
            wide, high, bottom = self.width() / len(self._counts), self.height() - 4, self.height() - 2
            for step, count in enumerate(self._counts):
                tall = high * count / most
                bar = QRectF(step * wide + 0.5, bottom - tall, max(1.0, wide - 1.5), tall)
                fill = QColor(self.colours.good if step == self._step else self.fill)
                fill.setAlphaF(1.0 if step <= self._step else 0.35)
                painter.fillRect(bar, fill)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(self.colours.text), 1.4))
            sums = accumulate(self._counts, initial=0)
            painter.drawPolyline([QPointF(step * wide, bottom - high * sum_ / total) for step, sum_ in enumerate(sums)])

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._counts and self.width():
            step = int(event.position().x() / self.width() * len(self._counts))
            self.step_wanted.emit(max(0, min(step, len(self._counts) - 1)))


class DemaskingPanel(TakePanel):
    """Top: choice of take, passage and step, and playback. Bottom: the canvas."""

    def __init__(self, colours: Colours, partial: Action) -> None:
        """``partial`` plays the shown passage as it was after :attr:`step`."""
        super().__init__("the canvas of take", colours)
        self.step = 0
        """The step that is shown, from 0; −1: before the first."""
        self._partial = partial
        partial.explain(lambda: "Wait for the take." if self.is_coming(self.side) else "")
        partial.explain(lambda: "" if self.step >= 0 else "The canvas is empty before the first step.")
        self._timer = QTimer(self, interval=160)  # Milliseconds per step.
        self._timer.timeout.connect(self._play_on)
        self.passages = build.combo("Passage")
        self.passages.currentIndexChanged.connect(self._show_passage)
        self.headline = build.words("title", name="Summary")
        self.codebooks = build.combo("Codebooks", tip="Number of first codebooks to hear; the others add nothing")
        self.partial_button = ActionButton(partial)
        top = build.row(self.side_buttons, self.passages, (self.headline, 1), self.codebooks, self.partial_button)

        self.play_button = build.button("P&lay", self._toggle_play, "Play the steps")
        self.slider = build.named(Slider(Qt.Orientation.Horizontal), "Step")
        self.slider.setPageStep(1)
        self.slider.valueChanged.connect(lambda value: self.go_to(value - 1))
        self.count = build.label(look="muted", name="Committed so far")
        steps = build.row(self.play_button, (self.slider, 1), self.count)
        self.bars = StepBars(colours)
        self.bars.step_wanted.connect(self.go_to)

        self.grid = DemaskingGrid(colours)
        self.grid.cursor_moved.connect(lambda codebook, frame: self._read())
        self.grid.activated.connect(self._hear)
        self.grid.step_wanted.connect(lambda by: self.go_to(self.step + by))
        self._area = Scrolled(self.grid)
        self.legend = build.label(name="Legend", rich=True, yielding=True)
        self.reading = build.label(look="muted", name="Cell under the cursor", yielding=True)
        shown = build.column(top, steps, self.bars, self.legend, (self._area, 1), self.reading)
        self.pages = Invited(shown, _NOTHING)
        build.fill(VBoxLayout(self), [self.pages], (GAP,) * 4)
        self.setFocusProxy(self.grid)
        recolour(self, colours)
        self._show()

    def go_to(self, step: int) -> None:
        """Show the canvas after ``step``, from 0; −1: before the first."""
        if (passage := self.passage) is None:
            return
        self.step = max(-1, min(step, passage.steps - 1))
        self.slider.setValue(self.step + 1)
        self.grid.show_step(self.step)
        self.bars.show_step(self.step)
        counts = committed(passage)
        there, total = sum(counts[: self.step + 1]), passage.order.size
        now = counts[self.step] if self.step >= 0 else 0
        self.count.setText(
            f"Step {self.step + 1} of {passage.steps}: {now} now, {there} of {total} ({percent(there / total)})"
        )
        self._read()
        self._partial.refresh()

    def set_position(self, side: str, seconds: float | None) -> None:
        """Mark the playback position in take ``side``, in seconds; ``None``: nothing plays."""
        if (trace := self._trace) is None or side != self.side or seconds is None:
            self.grid.set_position(None)
            return
        ends = [one.start + one.codes.shape[1] * trace.frame_seconds for one in trace.passages]
        number = next((index for index, end in enumerate(ends) if seconds < end), len(ends) - 1)
        if number != self.passages.currentIndex():
            self.passages.setCurrentIndex(number)
        self.grid.set_position((seconds - trace.passages[number].start) / trace.frame_seconds)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.grid.fill = self.bars.fill = self._fill
        self._show_legend()

    @property
    def passage(self) -> DemaskedPassage | None:
        trace, number = self._trace, self.passages.currentIndex()
        return trace.passages[number] if trace is not None and 0 <= number < len(trace.passages) else None

    @property
    def playing(self) -> bool:
        return self._timer.isActive()

    @property
    def _fill(self) -> str:
        return self._colours.baseline if self.side == "A" else self._colours.accelerated

    def in_trace(self, trace: Trace) -> DemaskingTrace | None:
        return trace.demasking if trace.demasking is not None and trace.demasking.passages else None

    @property
    def _trace(self) -> DemaskingTrace | None:
        trace = self._trace_of(self.side)
        return None if trace is None else self.in_trace(trace)

    def _show(self) -> None:
        super()._show()
        number = 0 if self._trace is None else len(self._trace.passages)
        self.pages.show_content(number > 0)
        self._timer.stop()
        kept = min(self.passages.currentIndex(), number - 1)
        build.offer(self.passages, ((f"Passage {one + 1} of {number}", one) for one in range(number)), kept)
        self.passages.setVisible(number > 1)
        self._show_passage()

    def _show_passage(self) -> None:
        passage, trace = self.passage, self._trace
        if passage is None or trace is None:
            self.grid.show_passage(None, 0.04, self._fill)
            return
        codebooks, frames = passage.codes.shape
        if self.codebooks.count() != codebooks:
            firsts = [("First codebook" if one == 1 else f"First {one} codebooks", one) for one in range(1, codebooks)]
            build.offer(self.codebooks, [("All codebooks", 0), *firsts], 0)
        blocks = len(passage.blocks)
        steps = " + ".join(str(block.steps) for block in passage.blocks)
        inside = f" ({steps}), in {blocks} blocks" if blocks > 1 else ""
        self.headline.setText(f"{self.title}: {codebooks} codebooks × {frames} frames in {passage.steps} steps{inside}")
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, passage.steps)
        self.grid.show_passage(passage, trace.frame_seconds, self._fill)
        self.bars.show_counts(committed(passage), self._fill)
        self._show_legend()
        self.go_to(passage.steps - 1)
        self._show_play()

    def _show_legend(self) -> None:
        parts = (
            (self._colours.muted, "□", "masked"),  # Hardly darker than the panel: show an outline.
            (self._colours.good, "■", "committed at this step"),
            (self._fill, "■", "committed before (stronger: more probable)"),
        )
        kinds = (f'<span style="color:{ink}">{sign}</span>&nbsp;{text}' for ink, sign, text in parts)
        self.legend.setText(" &nbsp; ".join(kinds))
        self.legend.setToolTip("Rows: codebooks, the coarsest at the bottom. Columns: frames.")

    def _show_play(self) -> None:
        self.play_button.setText("P&ause" if self.playing else "P&lay")

    def _read(self) -> None:
        text = self.grid.describe(*self.grid.cursor_cell)
        self.reading.setText(f"{text} Space: play from here.")
        self.reading.setToolTip(text)

    def _toggle_play(self) -> None:
        if self.playing:
            self._timer.stop()
        elif self.passage is not None:
            if self.step >= self.passage.steps - 1:
                self.go_to(-1)
            self._timer.start()
        self._show_play()

    def _play_on(self) -> None:
        if self.passage is None or self.step >= self.passage.steps - 1:
            self._timer.stop()
            self._show_play()
        else:
            self.go_to(self.step + 1)

    def _hear(self, frame: int) -> None:
        passage, trace = self.passage, self._trace
        if passage is not None and trace is not None:
            self.hear_wanted.emit(self.side, max(0.0, passage.start + frame * trace.frame_seconds))


def committed(passage: DemaskedPassage) -> tuple[int, ...]:
    order = passage.order[passage.order >= 0]
    return tuple(np.bincount(order.astype(np.int64), minlength=passage.steps).tolist())
