"""Meters: live real-time factor, first audio, rate, parts, device and memory."""

import numpy as np
from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QSizePolicy, QWidget

from paretone.figures.scatter import Dimension, Scale
from paretone.measure.metrics import figure_of, metric
from paretone.measure.processor_time import busy_words, load_words
from paretone.measure.timing import spread
from paretone.session.events import Telemetry
from paretone.setting.take import Measurements, Take
from paretone_app.numbers import counted, displayed, fixed, grouped, significant
from paretone_app.plotting.cursor_canvas import Painted
from paretone_app.plotting.curves import CurveChart, Series
from paretone_app.plotting.frame import Shape, pen
from paretone_app.shell.colours import Colours
from paretone_app.shell.entries import TERM, Term
from paretone_app.shell.theme import BROAD
from paretone_app.shell.workspaces import recolour
from paretone_app.state.differences import STREAMING_MEANING, label_of, model_title, streaming_text
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.layouts import GridLayout, HBoxLayout, VBoxLayout
from paretone_app.widgets.screen_readers import CHART, GROUP

RTF_MEANING = (
    "Real-time factor: wall-clock seconds of synthesis per second of new audio, without prompt, loading and "
    "warm-up. Below 1 is faster than real time."
)
ESTIMATE_MEANING = (
    f"{RTF_MEANING} During synthesis this is an estimate from the steps done and the steps left; the "
    "measured value replaces it at the end."
)
GAP_MEANING = (
    "Longest wait between two pieces of audio; 0 if there is one piece. Audible only if playback of the piece "
    "before has ended by then: see Playback waits"
)
PAUSE_MEANING = (
    "Total time for which playback, started with the first piece, waits for later ones; 0 if every piece arrives "
    "in time. If waits were heard, their number and their time."
)
Waits = tuple[int, float]
"""Number of playback waits, and their total seconds."""
_RATES = {
    False: ("Steps/s", "Solver steps per second, over the last steps"),
    True: ("Tokens/s", "Speech tokens per second of the language model"),
}
_STEPS = {
    False: ("Step", "Solver step of the current chunk"),
    True: ("Token", "Speech tokens of the current chunk, of the expected number"),
}
"""Titles and meanings for models with tokens (True) and without (False)."""
_METERS = (
    ("first", "First audio", "TTFA: seconds from the request to the first audio that can be played"),
    ("gap", "Largest gap", GAP_MEANING),
    ("pause", "Playback waits", PAUSE_MEANING),
    ("streaming", "Streamed", STREAMING_MEANING),
    ("rate", *_RATES[False]),
    ("step", *_STEPS[False]),
    ("chunk", "Chunk", "Long text is spoken in chunks; each plays as soon as it is done"),
    ("others", "Other processes", f"{metric('other_share').definition} Known after a take"),
    ("memory", "Memory", "Memory in use on the engine's device (the peak after a take)"),
    ("device", "Device", "Where the model runs"),
)
TERMS = (
    Term("RTF", RTF_MEANING),
    *(Term(title, f"{meaning.rstrip('.')}.") for _, title, meaning in _METERS if title != "Step"),
    *(Term(title, f"{meaning}.") for title, meaning in (_RATES[True], _STEPS[True])),
)


def _inks(colours: Colours) -> dict[str, str]:
    """By part of a synthesis."""
    return {"text": colours.good, "backbone": colours.accent, "decoder": colours.warning, "other": colours.disabled}


class PartsBar(Painted):
    """Seconds of one take by part: text, backbone, decoder and the rest, on a scale shared by A and B."""

    screen_role = CHART

    def __init__(self, title: str, colours: Colours) -> None:
        super().__init__(colours)
        self._title = title
        self.parts: tuple[tuple[str, float], ...] = ()
        self._scale = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().height() * 8, int(self.fontMetrics().height() * 1.1))

    minimumSizeHint = sizeHint

    def show_measurements(self, measurements: Measurements | None, scale: float) -> None:
        """Show the seconds by part; ``scale``: seconds of a full bar."""
        self._scale, self.parts = scale, ()
        if measurements is not None:
            known = measurements.text_seconds + measurements.backbone_seconds + measurements.decoder_seconds
            self.parts = (
                ("text", measurements.text_seconds),
                ("backbone", measurements.backbone_seconds),
                ("decoder", measurements.decoder_seconds),
                ("other", max(0.0, measurements.seconds - known)),
            )
        text = ", ".join(f"{name} {fixed(seconds, 2)} s" for name, seconds in self.parts) or "nothing measured yet"
        if measurements is not None and measurements.flow_seconds is not None:
            flow, vocoder = fixed(measurements.flow_seconds, 2), fixed(measurements.vocoder_seconds or 0.0, 2)
            text += f"; of the decoder, flow {flow} s and vocoder {vocoder} s"
        self.setToolTip(f"{self._title}: {text}")
        self.setAccessibleName(f"{self._title}: {text}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            inks, left = _inks(self.colours), 0.0
            for name, seconds in self.parts:
                width = self.width() * seconds / self._scale if self._scale else 0.0
                painter.setBrush(QColor(inks[name]))
                painter.drawRect(QRectF(left, 0, width, self.height()))
                left += width


class _Figure(QFrame):
    screen_role = GROUP

    def __init__(self, name: str, meaning: str) -> None:
        super().__init__()
        self.name = build.label(name, "muted")
        self.name.setProperty(TERM, name)
        self.value = build.label("–", "title", wrapped=True)
        self.setToolTip(meaning)
        build.fill(VBoxLayout(self), [self.name, self.value]).setSpacing(0)
        self._tell()

    def show_value(self, text: str) -> None:
        if self.value.text() != text:
            self.value.setText(text)
            self._tell()

    def set_name(self, name: str, meaning: str) -> None:
        if self.name.text() != name:
            self.name.setText(name)
            self.name.setProperty(TERM, name)
            self.setToolTip(meaning)
            self._tell()

    def _tell(self) -> None:
        self.setAccessibleName(f"{self.name.text()}: {self.value.text()}")


class MetersPanel(QScrollArea):
    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self._colours = colours
        self._times: list[float] = []
        self._factors: list[float] = []
        self._job = 0
        self._live: tuple[Telemetry, Waits] | None = None
        """Not shown yet, since nobody sees the panel."""
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        content = QWidget()
        layout = VBoxLayout(content)

        self.factor = build.label("–", "figure", tip=RTF_MEANING)
        unit = build.label("RTF", "title", tip=RTF_MEANING)
        head = HBoxLayout()
        head.addWidget(self.factor)
        head.addWidget(unit, 1, Qt.AlignmentFlag.AlignBottom)
        layout.addLayout(head)
        self.factor_note = build.label("Nothing measured yet", "muted", tip=RTF_MEANING, wrapped=True)
        layout.addWidget(self.factor_note)

        seconds = Dimension("seconds since the request", "Second")
        self.plot = CurveChart("Live real-time factor", seconds, Dimension("RTF"), colours)
        self.plot.setMinimumSize(self.fontMetrics().height() * 8, self.fontMetrics().height() * 8)
        # Ignore the plot's size hint: the figures below come first, and the plot gets the remaining height.
        self.plot.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        build.keeping_room(self.plot)
        self.plot.setMaximumHeight(self.fontMetrics().height() * 26)
        layout.addWidget(self.plot, 1)

        figures = GridLayout()
        figures.setHorizontalSpacing(BROAD)
        self.figures = {name: _Figure(title, meaning) for name, title, meaning in _METERS}
        for index, figure in enumerate(self.figures.values()):
            figures.addWidget(figure, index // 2, index % 2)
        layout.addLayout(figures)

        self.parts: dict[str, PartsBar] = {}
        self.summaries: dict[str, QLabel] = {}
        for name in ("A", "B"):
            summary = build.label(f"{name}: no take yet", "muted", wrapped=True)
            bar = PartsBar(f"Seconds of take {name}", colours)
            layout.addWidget(summary)
            layout.addWidget(bar)
            self.parts[name], self.summaries[name] = bar, summary
        self._legend = build.words(rich=True)
        layout.addWidget(self._legend)
        self.speed_up = build.words("title")
        layout.addWidget(self.speed_up)
        self._below = layout.count()
        layout.addStretch()
        self._layout = layout
        self._content = content
        self.setWidget(content)
        recolour(self, colours)

    def offer(self, action: Action) -> None:
        self._layout.insertWidget(self._below, ActionButton(action), 0, Qt.AlignmentFlag.AlignLeft)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Set the content's minimum height from its wrapped lines, which Qt's minimum size omits."""
        if watched is self._content and event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self._content.setMinimumHeight(self._layout.totalMinimumHeightForWidth(self._content.width()))
        return super().eventFilter(watched, event)

    def minimumSizeHint(self) -> QSize:
        """Wide enough for the figures: there is no sideways scrolling."""
        bar = self.verticalScrollBar().sizeHint().width()
        width = max(self._content.minimumSizeHint().width(), self.fontMetrics().height() * 12)
        return QSize(width + bar, self.fontMetrics().height() * 10)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self._draw()
        inks = _inks(colours).items()
        legend = (f'<small><span style="color:{ink}">■</span>&nbsp;{name}</small>' for name, ink in inks)
        self._legend.setText(" ".join(legend))

    def show_telemetry(self, event: Telemetry, heard: Waits = (0, 0.0)) -> None:
        """Show the live figures of a running synthesis once they can be seen; ``heard``: waits of its playback."""
        if event.job != self._job:
            self._begin(event.job, "first", "gap", "pause", "streaming", "others")
        if event.real_time_factor is not None:
            self._times.append(event.elapsed_seconds)
            self._factors.append(event.real_time_factor)
        self._live = event, heard
        self._show_live()

    def showEvent(self, shown: QShowEvent) -> None:
        super().showEvent(shown)
        self._show_live()

    def _show_live(self) -> None:
        if self._live is None or not self.isVisible():
            return
        (event, heard), self._live = self._live, None
        self._name_rates(event.tokens is not None)
        rate = event.steps_per_second if event.tokens_per_second is None else event.tokens_per_second
        self.figures["rate"].show_value(fixed(rate, 1))
        self.figures["chunk"].show_value(f"{event.chunk + 1} of {event.chunks}")
        # The number of tokens is known only at the end.
        about = "" if event.tokens is None else "about "
        self.figures["step"].show_value(f"{event.step + 1} of {about}{max(event.steps, event.step + 1)}")
        self.figures["gap"].show_value(f"{significant(event.largest_gap_seconds, 2)} s")
        self.figures["pause"].show_value(_waits(event.pause_seconds, heard))
        self.figures["memory"].show_value(_memory(event.memory_bytes))
        if event.first_audio_seconds is not None:
            self.figures["first"].show_value(f"{significant(event.first_audio_seconds, 2)} s")
        if event.real_time_factor is not None:
            self._show_factor(event.real_time_factor, "running estimate", ESTIMATE_MEANING)
            self._draw()

    def _begin(self, job: int, *unknown: str) -> None:
        """Forget the curve and these figures of the synthesis before."""
        self._job, self._live = job, None
        self._times.clear()
        self._factors.clear()
        for name in unknown:
            self.figures[name].show_value("–")

    def _name_rates(self, tokens: bool) -> None:
        """Count tokens for models that decode token by token, and solver steps for others."""
        self.figures["rate"].set_name(*_RATES[tokens])
        self.figures["step"].set_name(*_STEPS[tokens])

    def _show_factor(self, factor: float | None, note: str, meaning: str) -> None:
        self.factor.setText("–" if factor is None else significant(factor))
        self.factor_note.setText(note)
        for label in (self.factor, self.factor_note):
            label.setToolTip(meaning)

    def _draw(self) -> None:
        """Both axes begin at 0 and always show real time."""
        across = Scale(0.0, 1.05 * max(self._times, default=0.0) or 1.0)
        up = Scale(0.0, 1.1 * max([1.0, *self._factors]))
        curve = Series("RTF", np.array(self._times), np.array(self._factors), self._colours.accent, mark="circle")
        real_time = Shape(across.ends, (1.0, 1.0), pen(self._colours.muted, 1.0, Qt.PenStyle.DashLine))
        summary = f"RTF {significant(self._factors[-1])}" if self._factors else "Nothing measured yet"
        self.plot.show_series([curve], across, up, real_time, summary)
        self.plot.setVisible(bool(self._factors))

    def forget(self, job: int, outcome: str) -> None:
        """Discard the estimates of synthesis ``job``, which ended without a take."""
        if job == self._job:
            self._begin(0, *(name for name in self.figures if name != "device"))
            note = "The last synthesis failed" if outcome == "failed" else f"The last synthesis was {outcome}"
            self._show_factor(None, note, RTF_MEANING)
            self._draw()

    def show_take(self, take: Take, heard: Waits = (0, 0.0)) -> None:
        """Show the final figures of a finished take; ``heard``: waits of its playback."""
        measured, self._live = take.measurements, None
        self.show_factor(take)
        self.figures["first"].show_value(f"{significant(measured.first_audio_seconds, 2)} s")
        self.figures["gap"].show_value(f"{significant(measured.largest_gap_seconds, 2)} s")
        self.figures["pause"].show_value(_waits(measured.pause_seconds, heard))
        self.figures["streaming"].show_value(streaming_text(measured))
        self._name_rates(bool(measured.tokens))
        if measured.tokens and measured.backbone_seconds:
            self.figures["rate"].show_value(fixed(measured.tokens / measured.backbone_seconds, 1))
            self.figures["step"].show_value(f"{grouped(measured.tokens)} of {grouped(measured.tokens)}")
        self.figures["memory"].show_value(_memory(measured.peak_memory_bytes))
        self.figures["device"].show_value(measured.device or "–")
        self._times.append(measured.seconds)
        self._factors.append(measured.real_time_factor)
        self._draw()

    def show_factor(self, take: Take) -> None:
        measured, cpu = take.measurements, take.measurements.cpu_time_factor
        how = f"median of {len(take.repeats)}" if len(take.repeats) > 1 else "measured"
        what = f"{how}: {model_title(take.setting.model)}, {label_of(take) or 'last take'}"
        in_cpu_time = "" if cpu is None else f"; in CPU time {significant(cpu)}"
        self._show_factor(measured.real_time_factor, f"{what}{in_cpu_time}", RTF_MEANING)
        share = measured.other_share
        busy = " (busy)" if measured.busy else ""
        taken = "–" if share is None else displayed(metric("other_share").said(share)) + busy
        self.figures["others"].show_value(taken)

    def show_comparison(self, take_a: Take | None, take_b: Take | None, headline: str = "", basis: str = "") -> None:
        """Show the seconds of A and B by part, and the ``headline``: the speed-up of B, or why there is none;
        ``basis``: what it compares."""
        takes = {"A": take_a, "B": take_b}
        scale = max((take.measurements.seconds for take in takes.values() if take is not None), default=0.0)
        for name, take in takes.items():
            self.parts[name].show_measurements(take.measurements if take else None, scale)
            if take is None:
                self.summaries[name].setText(f"{name}: no take yet")
                self.summaries[name].setToolTip("")
            else:
                measured, tail = take.measurements, figure_of(metric("first_audio_p90"), take)
                rate = measured.tokens / measured.backbone_seconds if measured.backbone_seconds else 0.0
                tokens = f" · {rate:.0f} tokens/s" if rate else ""
                latest = "" if tail is None else f" (P90 {significant(tail.value, 2)} s)"
                said = (
                    f"{name}: {label_of(take) or 'take'}{' (busy)' if measured.busy else ''}\n"
                    f"RTF {_factor(take)} · {significant(measured.seconds, 2)} s{tokens}\n"
                    f"TTFA {significant(measured.first_audio_seconds, 2)} s{latest}"
                )
                self.summaries[name].setText(said)
                self.summaries[name].setToolTip("\n".join((said, *_details(take))))
        self.speed_up.setText(headline)
        self.speed_up.setToolTip(basis)


def _factor(take: Take) -> str:
    text, interval = significant(take.measurements.real_time_factor), spread(take, "real_time_factor")
    if interval is None:
        return text
    return f"{text} ({significant(interval.low)} to {significant(interval.high)}, {len(take.repeats)} repeats)"


def _details(take: Take) -> list[str]:
    """Lines of the tooltip, for which the panel is too narrow."""
    measured, apart = take.measurements, take.metrics.timbre_distance
    factors = ("RTF in CPU time", measured.cpu_time_factor), ("Backbone RTF", measured.backbone_time_factor)
    said = [f"{what} {fixed(value, 2)}" for what, value in factors if value is not None]
    said += [] if apart is None else [f"Timbre {fixed(apart, 2)} dB from its baseline"]
    busy = busy_words(load_words(measured)) if measured.busy else ""
    return [*said, f"{busy[:1].upper()}{busy[1:]}"] if busy else said


def _waits(predicted: float | None, heard: Waits) -> str:
    """Waits heard during playback; without any, the waiting time predicted by the engine's clock."""
    times, seconds = heard
    if times:
        return f"{fixed(seconds, 2)} s ({counted(times, 'wait', 'waits')})"
    return "–" if predicted is None else f"{fixed(predicted, 2)} s"


def _memory(size: int) -> str:
    return f"{fixed(size / 2**30, 2)} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
