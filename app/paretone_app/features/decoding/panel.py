"""Decoding: the outcome of every speech token of a take, and the effect of drafting."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QMarginsF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QLayout, QSizePolicy, QWidget

from paretone.figures.glyphs import Glyph
from paretone.figures.scatter import Dimension, Scale
from paretone.measure.decoding import (
    WINDOW,
    Drafting,
    PositionAcceptance,
    acceptance_by_position,
    drafting,
    running_tokens_per_pass,
    spoken_tokens,
)
from paretone.setting.take import DecodingTrace, Take, Trace
from paretone.techniques import speculative
from paretone_app.features.decoding.token_strip import MEANINGS, REJECTED, REJECTED_MEANING, TokenStrip, outcome_colours
from paretone_app.numbers import counted, fixed, percent, times
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.curves import CurveChart, Series, series_colour
from paretone_app.plotting.frame import Block, Blocks, Shape, pen
from paretone_app.plotting.points import Beams, IntervalMark, Points
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, NEAR, TIGHT
from paretone_app.shell.workspaces import recolour
from paretone_app.state.playing import SIDES
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import GridLayout, Scrolled, VBoxLayout
from paretone_app.widgets.side_panel import CHOSEN, TakePanel

_IDEAL, _LEAST = (14.0, 8.0), (10.0, 5.5)
"""Ideal and minimum size, in font heights; these plots are low."""
_BAR, _MARK = 0.66, 0.3
"""Width of a bar, as a share of its position's; radius of a mark, in font heights."""

_AS_A_WHOLE = (
    "A draft verified as a whole (Verification in Setup, at β = 0) is not judged token by token: a token "
    "may be accepted because of those after it. Then bars show how often one more "
    "token was accepted, which only approximates acceptance at that position."
)


class AcceptancePlot(Chart):
    """Bars: accepted share of the drafts judged at each position. Points: accepted share of all proposed."""

    ideal, least = _IDEAL, _LEAST

    def __init__(self, colours: Colours) -> None:
        super().__init__("Acceptance by position of the draft", colours)
        self._positions: tuple[PositionAcceptance, ...] = ()
        frame = self.frame
        frame.margins = QMarginsF(0.0, 0.5, 0.5, 2.5)
        frame.set_bordered(False)
        frame.bottom.set_title(Dimension("position of the draft"))
        frame.left.between = 1.3
        self._bars, self._whiskers, self._reached = Blocks(frame, 1), Beams(frame, 2), Points(frame, 3)
        self.set_colours(colours)

    def show_positions(self, positions: Sequence[PositionAcceptance]) -> None:
        self._positions = tuple(positions)
        self.show_again()

    def show_again(self) -> None:
        positions, colours = self._positions, self.colours
        judged = [one for one in positions if math.isfinite(one.share)]
        fill = QColor(series_colour(colours, 2))
        self._bars.blocks = [
            Block((one.position + 1 - _BAR / 2, one.position + 1 + _BAR / 2), (0.0, 100 * one.share), fill)
            for one in judged
        ]
        self._whiskers.intervals = [
            IntervalMark(one.position + 1, 100 * one.interval[0], 100 * one.interval[1]) for one in judged
        ]
        self._reached.across = np.array([one.position + 1 for one in positions], float)
        self._reached.up = np.array([100 * one.reached for one in positions], float)
        self._reached.glyphs = [Glyph((colours.accelerated,), "diamond")] * len(positions)
        self._reached.order, self._reached.radius = np.arange(len(positions)), _MARK * self.em
        count = max(1, len(positions))
        self.frame.bottom.set_names([(place, str(place)) for place in range(1, count + 1)])
        self.set_note("" if positions else "No drafts: switch SSD on")
        self.frame.set_scales(Scale(0.4, count + 0.6), Scale(0.0, 104.0))
        self.refresh()

    def cursor_text(self) -> str:
        said = (
            f"position {one.position + 1}: {percent(one.share)} of {one.judged} judged, {percent(one.reached)} "
            f"of {one.proposed} proposed"
            for one in self._positions
            if one.judged
        )
        return "; ".join(said) or "No drafts"

    def refresh(self) -> None:
        super().refresh()
        self.setToolTip(self.tip_at(QPointF())[0])

    def tip_at(self, _place: QPointF) -> tuple[str, QRectF]:
        words = (
            "Bars: share of the judged tokens (all before them were accepted), with 95 % intervals.<br>"
            f"Diamonds: share of all proposed tokens.<br>{_AS_A_WHOLE}<br>{self.cursor_text()}"
        )
        return words, QRectF(self.rect())

    def as_text(self) -> str:
        rows = (f"{one.position + 1}\t{one.proposed}\t{one.judged}\t{one.accepted}" for one in self._positions)
        return "\n".join(("position\tproposed\tjudged\taccepted", *rows))


class RunningPlot(CurveChart):
    """Running mean of committed tokens per target pass along the audio, with the overall mean."""

    ideal, least = _IDEAL, _LEAST

    def __init__(self, colours: Colours) -> None:
        x, y = Dimension("seconds of audio", "Second"), Dimension("")
        super().__init__("Tokens per target pass", x, y, colours)
        self.frame.margins = QMarginsF(0.0, 0.5, 1.2, 2.5)
        self.frame.set_bordered(False)
        self.frame.left.between = 1.3
        self._points: tuple[tuple[float, ...], tuple[float, ...], float] = (), (), 0.0

    def show_points(self, seconds: Sequence[float], means: Sequence[float], mean: float) -> None:
        self._points = tuple(seconds), tuple(means), mean
        self.show_again()

    def show_again(self) -> None:
        seconds, means, mean = self._points
        across = Scale(0.0, max([0.1, *seconds]))
        highest = max([1.0, *means])
        curve = Series("tokens per pass", np.array(seconds), np.array(means), self.colours.accent)
        average = Shape(across.ends, (mean, mean), pen(self.colours.muted, 1.4, Qt.PenStyle.DashLine))
        said = f"{fixed(mean, 2)} tokens per pass on average, at most {fixed(highest, 2)}"
        self.show_series([curve], across, Scale(0.0, highest * 1.12), average, said)


_NOTHING = (
    "No tokens yet. Load a speech language model, speak a baseline, then switch SSD on and speak again: the outcome "
    "of every token appears here."
)
_FIGURES = {
    "tokens": ("Tokens per target pass, E", "Committed tokens per pass of the target model"),
    "length": ("Drafted per cycle, K", "Mean number of draft tokens per pass of the target"),
    "cost": (
        "Cost of a draft token, c",
        "Time of drafting one token, over that of a pass of the target over a single token in the other take",
    ),
    "pass": (
        "Cost of a checked draft, v",
        "Time of one pass of the target over a whole draft, over that of a pass over a single token in the other take",
    ),
    "predicted": ("Predicted, E / (v + K·c)", "Speed-up of the tokens after the prompt, which no draft shortens"),
    "prompt": ("Reading the prompt", "Share of the language model's time in this take"),
    "measured": (
        "Measured speed-up",
        "Seconds of the language model per token of the other take, over those of this take, reading the prompt "
        "included. The other take must have the same text and voice, decoded without a draft by the same model with "
        "the same other techniques. Busy: other processes needed the processor meanwhile.",
    ),
}


def _titled(text: str, plot: QWidget) -> QLayout:
    title = QLabel(text)
    # Cut a title that does not fit instead of widening the panel.
    title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    titled = build.fill(VBoxLayout(), [title, (plot, 1)])
    titled.setSpacing(TIGHT)
    return titled


class DecodingPanel(TakePanel):
    """Above: the tokens along time. Below: acceptance, tokens per pass, and the speed-up that follows."""

    sides = (*SIDES, CHOSEN)

    def __init__(self, colours: Colours, sweep: Action) -> None:
        super().__init__("the tokens of take", colours)
        em = self.fontMetrics().height()
        self.headline = build.words("title", name="Summary")
        top = build.row(self.side_buttons, (self.headline, 1), ActionButton(sweep))
        self.legend = build.words(name="Legend", rich=True)
        self.strip = TokenStrip(colours)
        self.strip.activated.connect(self._hear)
        self.strip.cursor_moved.connect(self._read)
        self._area = Scrolled(self.strip)
        self.strip.line_shown.connect(
            lambda line: self._area.ensureVisible(0, round(line.center().y()), 0, round(line.height() / 2))
        )
        self.reading = build.label(look="muted", name="Token under the cursor", yielding=True)
        upper = build.column((self._area, 1), self.reading)
        # A short take leaves room to the plots.
        self.strip.height_wanted.connect(lambda height: upper.setMaximumHeight(height + 2 * em))

        self.acceptance = AcceptancePlot(colours)
        self.running = RunningPlot(colours)
        figures = QWidget()
        grid = GridLayout(figures)
        grid.setContentsMargins(GAP, 0, 0, 0)
        grid.setVerticalSpacing(NEAR)
        self.values: dict[str, QLabel] = {}
        """The figures, by their names in :data:`_FIGURES`."""
        for row, (name, (title, meaning)) in enumerate(_FIGURES.items()):
            self.values[name] = value = build.label("–", "title", tip=meaning)
            value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            grid.addWidget(build.label(title, "muted", tip=meaning), row, 0)
            grid.addWidget(value, row, 1)
        grid.setRowStretch(len(_FIGURES), 1)
        accepted = "Accepted, %: ▮ of judged, ◆ of drafted"
        running = f"Tokens per target pass, running mean of {WINDOW} passes"
        lower = build.row((_titled(accepted, self.acceptance), 3), (_titled(running, self.running), 5), figures)

        parts = build.splitter(Qt.Orientation.Vertical, [(upper, 3), (lower, 2)], [16 * em, 9 * em])
        self.pages = Invited(build.column(top, self.legend, (parts, 1)), _NOTHING)
        build.fill(VBoxLayout(self), [self.pages], (GAP,) * 4)
        self.setFocusProxy(self.strip)
        recolour(self, colours)
        self._show()

    def set_position(self, side: str, seconds: float | None) -> None:
        """Mark the playback position in take ``side``, in seconds; ``None``: nothing plays."""
        self.strip.set_position(seconds if side == self.side else None)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self._show_legend()

    def in_trace(self, trace: Trace) -> DecodingTrace | None:
        return trace.decoding

    @property
    def _trace(self) -> DecodingTrace | None:
        trace = self._trace_of(self.side)
        return None if trace is None else trace.decoding

    def _show(self) -> None:
        super()._show()
        trace = self._trace
        self.pages.show_content(trace is not None)
        if trace is None:
            self.strip.show_tokens(())
            return
        self.strip.show_tokens(spoken_tokens(trace), trace.token_rate)
        self.acceptance.show_positions(acceptance_by_position(trace))
        self.running.show_points(*running_tokens_per_pass(trace), drafting(trace).tokens_per_pass)
        self._show_figures(trace)
        self._show_legend()
        self._read(self.strip.cursor_token)

    def _show_figures(self, trace: DecodingTrace) -> None:
        found, run_away = drafting(trace), sum(trace.run_away)
        tokens, passes = counted(found.tokens, "token", "tokens"), counted(found.passes, "pass", "passes")
        self.headline.setText(
            f"{self.title}: {tokens} in {passes} of the target"
            + (f". {run_away} of {len(trace.run_away)} passages did not stop by themselves" if run_away else "")
        )
        values = {"tokens": fixed(found.tokens_per_pass, 2)}
        if found.seconds:
            values["prompt"] = percent(found.prompt_seconds / found.seconds)
        if found.drafted:
            values |= {"length": fixed(found.draft_length, 2), "measured": "– (no baseline)"}
        plain, busy = self._plain()
        if found.drafted and plain is not None and (parts := found.parts_over(plain)) is not None:
            values |= {
                "cost": fixed(parts.draft, 2),
                "pass": times(parts.verification),
                "predicted": times(parts.predicted) + busy,
                "measured": times(plain.seconds_per_token / found.seconds_per_token) + busy,
            }
        for name, label in self.values.items():
            label.setText(values.get(name, "–"))
            label.setAccessibleName(f"{_FIGURES[name][0]}: {label.text()}")

    def _plain(self) -> tuple[Drafting | None, str]:
        """The other take's decoding, if it differs only in having no draft, and a mark if times are doubtful."""
        take = self._take(self.side)
        for other in (self._take(side) for side in SIDES if side != self.side):
            if take is not None and other is not None and other.trace.decoding and _said(other) == _said(take):
                theirs = drafting(other.trace.decoding)
                if not theirs.drafted:
                    return theirs, " (busy)" if take.measurements.busy or other.measurements.busy else ""
        return None, ""

    def _show_legend(self) -> None:
        trace, fills = self._trace, outcome_colours(self._colours)
        if trace is None:
            return
        counts: Counter[str] = Counter(trace.outcomes)
        parts, meanings = [], []
        for outcome in (one for one in MEANINGS if counts[one]):
            share = percent(counts[outcome] / counts.total())
            parts.append((fills[outcome], f"{outcome}&nbsp;{counts[outcome]}&nbsp;({share})"))
            meanings.append(f"{outcome}: {MEANINGS[outcome]}")
        if rejected := sum(len(one.drafted) - one.accepted for one in trace.cycles):
            parts.append((fills[REJECTED], f"rejected&nbsp;drafts&nbsp;{rejected}"))
            meanings.append(f"{REJECTED} drafts: {REJECTED_MEANING}")
        self.legend.setText(" &nbsp; ".join(f'<span style="color:{fill}">■</span>&nbsp;{text}' for fill, text in parts))
        self.legend.setToolTip("<br>".join(meanings))

    def _read(self, index: int) -> None:
        self.reading.setText(f"{self.strip.describe(index, briefly=True)} Click or Space: play from here.")
        self.reading.setToolTip(self.strip.describe(index))

    def _hear(self, index: int) -> None:
        if (trace := self._trace) is not None:
            self.hear_wanted.emit(self.side, trace.seconds_of[index])


def _said(take: Take) -> tuple[object, ...]:
    """Text, voice, model and techniques except drafting: takes that agree in these can be compared in speed."""
    others = {one for one in take.setting.techniques if one.technique != speculative.NAME}
    return take.text, take.voice, take.setting.model, others
