"""The lanes' canvas: waveforms, spectrograms, pitch and words on one time axis, with one playhead. It blits tiles that
are drawn once, so that eight lanes scroll at every frame."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QLineF, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from paretone.audio.spectrogram import band_frequency, frequency_band
from paretone.checks.faults import Finding
from paretone.checks.speech import SaidWord, runs
from paretone.measure.pitch import HIGHEST, HOP_SECONDS, LOWEST
from paretone_app.features.listen.analysis import (
    BANDS,
    DIFFERENCE_DECIBELS,
    RANGE_DECIBELS,
    Facts,
    Finder,
    Part,
    Tile,
    Wanted,
    painted,
)
from paretone_app.numbers import fixed, signed
from paretone_app.shell.colours import DARK, Colours
from paretone_app.shell.theme import NEAR, SMALL, text_font
from paretone_app.widgets.screen_readers import CHART

TILE = 512
"""Width of a tile in pixels."""
ZOOM = 1.5
READABLE = 60
"""Height of a spectrogram, in pixels, before there are words and pitch under it."""
_PITCH = 24
_SHORTEST = 0.02
"""Least visible time, in seconds."""
_NARROWEST = 6.0
"""Least visible frequency range, in bands."""
_GRIP = 5
"""Pixels around an end of the loop in which it can be moved."""
_FREQUENCIES = (100, 250, 500, 1000, 2000, 4000, 8000)
_PITCH_DELAY = 1.5 / LOWEST
"""Seconds from the start of a pitch frame to its middle."""


@dataclass(eq=False)
class Lane:
    """What is drawn in a lane. ``minus``: it is a difference, with this lane subtracted."""

    letter: str
    key: Hashable
    """Identity of its sound."""
    samples: np.ndarray = field(repr=False)
    rate: int
    colour: str = ""
    gain: float = 1.0
    facts: Facts | None = None
    words: tuple[SaidWord, ...] = ()
    faults: tuple[Finding, ...] = ()
    minus: tuple[Lane, Lane] | None = None
    """The two lanes of a difference."""
    below: np.ndarray | None = field(default=None, repr=False)
    """Pitch of the reference, drawn faintly."""

    def __post_init__(self) -> None:
        self.peak = float(np.abs(self.samples).max(initial=0.0)) or 1.0

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate

    @property
    def decibels(self) -> float:
        """Its gain."""
        return 20 * float(np.log10(self.gain))

    @property
    def top(self) -> float:
        """Decibels of its loudest band; of a difference 0."""
        return 0.0 if self.facts is None else self.facts.top

    @property
    def pitch(self) -> np.ndarray | None:
        return None if self.facts is None else self.facts.pitch


def outline(samples: np.ndarray, rate: int, start: float, end: float, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (seconds, amplitude) of a line that fills the waveform between ``start`` and ``end`` seconds. Several
    samples in one of the ``columns`` become their minimum and maximum, so that no peak is lost."""
    first = max(0, int(np.floor(start * rate)))
    last = min(len(samples), int(np.ceil(end * rate)) + 1)
    part = samples[first:last]
    if len(part) <= 2 * max(1, columns):
        return np.arange(first, first + len(part)) / rate, part
    per_column = -(-len(part) // columns)
    whole = len(part) // per_column
    head = part[: whole * per_column].reshape(whole, per_column)
    lowest, highest = head.min(axis=1), head.max(axis=1)
    rest = part[whole * per_column :]
    if len(rest):
        lowest, highest = np.append(lowest, rest.min()), np.append(highest, rest.max())
    times = np.repeat((first + per_column * (np.arange(len(lowest)) + 0.5)) / rate, 2)
    values = np.empty(2 * len(lowest), part.dtype)
    values[0::2], values[1::2] = lowest, highest
    return times, values


def difference_of(one: Lane, other: Lane) -> Lane:
    """``one`` minus ``other``, at the levels at which they are played, as long as both."""
    length = min(len(one.samples), len(other.samples))
    samples = one.samples[:length] * np.float32(one.gain) - other.samples[:length] * np.float32(other.gain)
    made = Lane(f"{one.letter} − {other.letter}", (one.key, one.gain, other.key, other.gain), samples, one.rate)
    made.minus = one, other
    # The scale of the louder of the two, so that sizes compare.
    made.peak = max(one.peak * one.gain, other.peak * other.gain)
    return made


class Heights:
    """From top to bottom of a lane: waveform, spectrogram, pitch, words, phones; 0 without room."""

    def __init__(self, height: int, line: int, plain: bool) -> None:
        """``line``: height of a line of text; ``plain``: no pitch and words, as in a difference."""
        self.wave = max(14, min(round(0.22 * height), 64))
        rest = height - self.wave - NEAR
        self.words = 0 if plain or rest - line < READABLE else line
        rest -= self.words
        self.pitch = 0 if plain or rest - _PITCH < READABLE else _PITCH
        rest -= self.pitch
        self.phones = 0 if plain or rest - line < READABLE else line
        self.spectrogram = max(1, rest - self.phones)


class Canvas(QWidget):
    screen_role = CHART

    sought = Signal(float)
    region_drawn = Signal(float, float)
    """A loop was drawn or moved: start and end in seconds."""
    seen_changed = Signal()
    read_out = Signal(str)
    """Values under the mouse, as text; empty after it left."""

    def __init__(self, finder: Finder, colours: Colours, spans: Callable[[], Sequence[tuple[int, int]]]) -> None:
        """``spans``: top and height of each lane in pixels."""
        super().__init__()
        self._finder, self._colours, self._spans = finder, colours, spans
        self.lanes: tuple[Lane, ...] = ()
        self.duration = 1.0
        self.start, self.span = 0.0, 1.0
        """The part in view, in seconds."""
        self.low, self.high = BANDS
        self.position: float | None = None
        self.loop: tuple[float, float] | None = None
        self.follows = True
        """Whether the view follows the playhead."""
        self._first: Wanted = {}
        self._last: Wanted = {}
        self._drawn: dict[Hashable, QPixmap] = {}
        self._unfinished: set[Hashable] = set()
        self._frame: QPixmap | None = None
        self._drag: tuple[str, float] | None = None
        """What is dragged, and where that began."""
        self._dragged: tuple[float, float] | None = None
        self._pressed = 0.0
        self.setAccessibleName("Lanes: waveforms, spectrograms, pitch and words")
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._small = text_font(self.font(), SMALL)
        metrics = QFontMetrics(self._small)
        self._line = metrics.height()
        self.gutter, self._scale = metrics.horizontalAdvance("500 Hz") + 6, metrics.horizontalAdvance("−70 dB") + 12
        finder.found.connect(self.refresh)
        self.set_colours(colours)

    # --- Content ------------------------------------------------------------------------------------------------------
    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        dark = colours == DARK
        # Perceptually uniform; silence has the background colour. Differences diverge around it.
        self._levels = _pixels("magma" if dark else "CET-L17")
        self._signed = _pixels("CET-D4" if dark else "CET-D1A")
        self.redraw()

    def set_lanes(self, lanes: Sequence[Lane], first: Wanted, last: Wanted) -> None:
        """``first``, ``last``: what else to compute, before and after the spectrograms."""
        self._first, self._last = first, last
        before, self.lanes = self.duration, tuple(lanes)
        self.duration = max((one.seconds for one in lanes), default=1.0) or 1.0
        if self.duration != before:
            self.show_all()
        self.redraw()

    def redraw(self) -> None:
        """Draw all tiles anew."""
        self._drawn, self._unfinished, self._frame = {}, set(), None
        self.want()
        self.update()

    def refresh(self) -> None:
        """Draw the tiles anew that lacked something."""
        for key in self._unfinished:
            self._drawn.pop(key, None)
        self._unfinished = set()
        self.update()

    # --- View ---------------------------------------------------------------------------------------------------------
    @property
    def seen(self) -> tuple[float, float]:
        return self.start, self.start + self.span

    @property
    def _room(self) -> int:
        return max(1, self.width() - self.gutter - self._scale)

    @property
    def per_second(self) -> float:
        """Pixels."""
        return self._room / self.span

    def look(self, start: float, span: float) -> None:
        span = min(self.duration, max(span, min(_SHORTEST, self.duration)))
        start = max(0.0, min(start, self.duration - span))
        if (start, span) == (self.start, self.span):
            return
        zoomed, self.start, self.span = span != self.span, start, span
        if zoomed:
            self._drawn, self._unfinished = {}, set()
        self.want()
        self.update()
        self.seen_changed.emit()

    def zoom(self, factor: float, around: float) -> None:
        """Scale the visible time span by ``factor``, keeping ``around`` (seconds) in place."""
        self.look(around - (around - self.start) * factor, self.span * factor)

    def page(self, share: float) -> None:
        """Move by a ``share`` of the part in view."""
        self.follows = False
        self.look(self.start + share * self.span, self.span)

    def zoom_bands(self, factor: float, around: float) -> None:
        """Scale the visible frequency range, keeping the band ``around`` in place."""
        width = min(BANDS[1] - BANDS[0], max(_NARROWEST, (self.high - self.low) * factor))
        low = around - (around - self.low) * width / (self.high - self.low)
        self.low = max(BANDS[0], min(low, BANDS[1] - width))
        self.high = self.low + width
        self.redraw()
        self.seen_changed.emit()

    def show_all(self) -> None:
        self.follows = True
        self.low, self.high = BANDS
        self.start, self.span = 0.0, self.duration
        self.redraw()
        self.seen_changed.emit()

    def set_position(self, seconds: float | None, playing: bool = False) -> None:
        """Move the playhead, and the view with it while it plays; ``None`` hides it."""
        before, self.position = self.position, seconds
        if playing and seconds is not None and self.follows and self.span < self.duration:
            beyond = seconds - self.start - self.span / 2
            if beyond > 0 or seconds < self.start:
                self.look(self.start + beyond, self.span)
        for one in (before, seconds):
            if one is not None:
                self.update(QRect(round(self.place(one)) - 2, 0, 4, self.height()))

    def set_loop(self, loop: tuple[float, float] | None) -> None:
        if loop != self.loop:
            self.loop = loop
            self.update()

    def place(self, seconds: float) -> float:
        return self.gutter + seconds * self.per_second - round(self.start * self.per_second)

    def _at(self, x: float) -> float:
        return (x - self.gutter + round(self.start * self.per_second)) / self.per_second

    # --- Tiles --------------------------------------------------------------------------------------------------------
    def _part(self, number: int, height: int) -> Part:
        ratio = self.devicePixelRatioF()
        start, end = (round(one * TILE / self.per_second, 9) for one in (number, number + 1))
        return Part(start, end, round(TILE * ratio), self.low, self.high, round(height * ratio))

    def _numbers(self, around: int = 0) -> range:
        """Numbers of the tiles in view, and of so many ``around`` them."""
        first = round(self.start * self.per_second)
        last = int(self.duration * self.per_second) // TILE
        return range(max(0, first // TILE - around), min(last, (first + self._room) // TILE + around) + 1)

    def _shown(self) -> Iterator[tuple[Lane, int, Heights]]:
        """Lanes with their tops and heights."""
        for lane, (top, height) in zip(self.lanes, self._spans(), strict=False):
            yield lane, top, Heights(height, self._line, lane.minus is not None)

    def want(self) -> None:
        """Have computed what is missing: first facts, then spectrograms in view, those next to it, and words."""
        inside, pieces = self._numbers(), dict(self._first)
        for number in (*inside, *(one for one in self._numbers(1) if one not in inside)):
            for lane, _, heights in self._shown():
                if all(one.facts is not None for one in lane.minus or (lane,)):
                    part = self._part(number, heights.spectrogram)
                    pieces[self._key(lane, part)] = self._finding(lane, part)
        self._finder.want({**pieces, **self._last})

    def _key(self, lane: Lane, part: Part) -> Hashable:
        return lane.key, part, self._colours == DARK

    def _finding(self, lane: Lane, part: Part) -> Callable[[], Tile]:
        minus, colours, top = lane.minus, self._signed if lane.minus else self._levels, lane.top

        def single() -> Tile:
            return painted(part.levels(lane.samples, lane.rate), top - RANGE_DECIBELS, top, colours)

        def difference() -> Tile:
            # Two silences do not differ by their noise.
            floor = max(one.top + one.decibels for one in minus or ()) - RANGE_DECIBELS
            one, other = (np.maximum(part.levels(it.samples, it.rate) + it.decibels, floor) for it in minus or ())
            return painted(one - other, -DIFFERENCE_DECIBELS, DIFFERENCE_DECIBELS, colours)

        return single if minus is None else difference

    def _tile(self, lane: Lane, number: int, top: int, heights: Heights, height: int) -> QPixmap:
        key = lane.letter, number, height
        if key not in self._drawn:
            ratio = self.devicePixelRatioF()
            made = QPixmap(round(TILE * ratio), round(height * ratio))
            made.setDevicePixelRatio(ratio)
            made.fill(QColor(self._colours.base))
            with QPainter(made) as painter:
                painter.setFont(self._small)
                # Everything is drawn at its place on the whole axis, of which the tile shows a part.
                painter.translate(-number * TILE, 0)
                part = self._part(number, heights.spectrogram)
                self._draw_wave(painter, lane, part, heights)
                if not self._draw_spectrogram(painter, lane, part, heights, number):
                    self._unfinished.add(key)
                self._draw_speech(painter, lane, part, heights)
            self._drawn[key] = made
        return self._drawn[key]

    def _draw_wave(self, painter: QPainter, lane: Lane, part: Part, heights: Heights) -> None:
        per_second, middle = self.per_second, heights.wave / 2
        painter.setPen(QColor(self._colours.border))
        painter.drawLine(QLineF(part.start * per_second, middle, lane.seconds * per_second, middle))
        margin = 2 / per_second
        times, values = outline(lane.samples, lane.rate, part.start - margin, part.end + margin, TILE)
        scale = (middle - 1) / lane.peak
        points = zip((times * per_second).tolist(), (middle - scale * values).tolist(), strict=True)
        painter.setPen(QColor(lane.colour or self._colours.muted))
        painter.drawPolyline(QPolygonF([QPointF(*one) for one in points]))
        band = QColor(self._colours.warning)
        for one in lane.faults:
            area = QRectF(one.start * per_second, 0, max(4.0, (one.end - one.start) * per_second), heights.wave)
            band.setAlpha(50)
            painter.fillRect(area, band)
            band.setAlpha(255)
            painter.fillRect(QRectF(area.topLeft(), QSize(round(area.width()), 3)), band)

    def _draw_spectrogram(self, painter: QPainter, lane: Lane, part: Part, heights: Heights, number: int) -> bool:
        """Draw it, or until it is computed that of the whole take; whether it is there."""
        area = QRectF(number * TILE, heights.wave, TILE, heights.spectrogram)
        tile = self._finder.get(self._key(lane, part))
        if isinstance(tile, Tile):
            painter.drawImage(area, tile.image)
            return True
        if lane.facts is not None and lane.facts.seconds:
            whole = painted(lane.facts.levels, lane.top - RANGE_DECIBELS, lane.top, self._levels).image
            columns, rows = whole.width() / lane.facts.seconds, whole.height() / (BANDS[1] - BANDS[0])
            source = QRectF(
                part.start * columns,
                (BANDS[1] - self.high) * rows,
                (part.end - part.start) * columns,
                (self.high - self.low) * rows,
            )
            painter.drawImage(area, whole, source)
        return False

    def _draw_speech(self, painter: QPainter, lane: Lane, part: Part, heights: Heights) -> None:
        """Pitch, words and phones."""
        top = heights.wave + heights.spectrogram
        if heights.pitch:
            for curve, colour, width in ((lane.below, self._colours.border, 3), (lane.pitch, self._colours.text, 1.5)):
                if curve is not None:
                    painter.setPen(QPen(QColor(colour), width))
                    self._draw_pitch(painter, curve, part, top, heights.pitch)
            top += heights.pitch
        for height, colour, parts in (
            (heights.words, self._colours.text, [(one.text, one.start, one.end) for one in lane.words]),
            (heights.phones, self._colours.muted, [phone for one in lane.words for phone in one.phones]),
        ):
            for text, start, end in parts if height else ():
                if end > part.start and start < part.end:
                    left, right = start * self.per_second, end * self.per_second
                    painter.setPen(QColor(self._colours.border))
                    painter.drawLine(QLineF(left, top + 2, left, top + height - 2))
                    room = QRectF(left + 2, top, right - left - 2, height)
                    cut = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(room.width()))
                    if cut not in ("", "…"):
                        painter.setPen(QColor(colour))
                        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, cut)
            top += height

    def _draw_pitch(self, painter: QPainter, curve: np.ndarray, part: Part, top: int, height: int) -> None:
        first = max(0, int((part.start - _PITCH_DELAY) / HOP_SECONDS) - 1)
        piece = curve[first : int((part.end - _PITCH_DELAY) / HOP_SECONDS) + 2]
        across = ((np.arange(len(piece)) + first) * HOP_SECONDS + _PITCH_DELAY) * self.per_second
        share = (piece - np.log(LOWEST)) / np.log(HIGHEST / LOWEST)
        down = top + height - 2 - (height - 4) * share
        for start, end in runs(piece > 0):
            points = zip(across[start:end].tolist(), down[start:end].tolist(), strict=True)
            painter.drawPolyline(QPolygonF([QPointF(*one) for one in points]))

    # --- Painting -----------------------------------------------------------------------------------------------------
    def paintEvent(self, event: QPaintEvent) -> None:
        shown, colours = event.rect(), self._colours
        offset, spans = round(self.start * self.per_second), self._spans()
        with QPainter(self) as painter:
            painter.fillRect(shown, QColor(colours.base))
            area = QRect(self.gutter, 0, self._room, self.height())
            painter.setClipRect(area.intersected(shown))
            for (lane, top, heights), (_, height) in zip(self._shown(), spans, strict=False):
                if top < shown.bottom() + 1 and top + height > shown.top():
                    for number in self._numbers():
                        left = self.gutter + number * TILE - offset
                        if left <= shown.right() and left + TILE > shown.left():
                            painter.drawPixmap(left, top, self._tile(lane, number, top, heights, height))
            loop = self._dragged or self.loop
            if loop is not None:
                left, right = (self.place(one) for one in loop)
                accent = QColor(colours.accent)
                painter.setPen(QPen(accent, 1.5))
                painter.drawLines([QLineF(one, 0, one, self.height()) for one in (left, right)])
                accent.setAlpha(30)
                painter.fillRect(QRectF(left, 0, right - left, self.height()), accent)
            if self.position is not None:
                painter.fillRect(
                    QRectF(self.place(self.position) - 0.75, 0, 1.5, self.height()), QColor(colours.danger)
                )
            if not area.contains(shown):
                painter.setClipRect(shown)
                painter.drawPixmap(0, 0, self._edges())

    def _edges(self) -> QPixmap:
        """Frequencies on the left, colour scales on the right; transparent between them."""
        if self._frame is None:
            ratio = self.devicePixelRatioF()
            made = QPixmap(self.size() * ratio)
            made.setDevicePixelRatio(ratio)
            made.fill(Qt.GlobalColor.transparent)
            with QPainter(made) as painter:
                painter.setFont(self._small)
                for lane, top, heights in self._shown():
                    self._draw_scales(painter, lane, QRectF(0, top + heights.wave, self.width(), heights.spectrogram))
            self._frame = made
        return self._frame

    def _draw_scales(self, painter: QPainter, lane: Lane, area: QRectF) -> None:
        painter.setPen(QColor(self._colours.muted))
        right, above = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, area.top() - self._line
        for hertz in reversed(_FREQUENCIES):
            share = (frequency_band(hertz) - self.low) / (self.high - self.low)
            y = area.bottom() - share * area.height()
            if 0 <= share <= 1 and y - above >= self._line:
                text = f"{hertz // 1000} kHz" if hertz >= 1000 else f"{hertz} Hz"
                painter.drawText(QRectF(0, y - self._line / 2, self.gutter - 3, self._line), right, text)
                above = y
        strip = QRectF(self.width() - self._scale + 4, area.top(), 6, area.height())
        gradient = QLinearGradient(0, strip.bottom(), 0, strip.top())
        colours = self._signed if lane.minus else self._levels
        gradient.setStops([(at / 16, QColor.fromRgb(int(colours[at * (len(colours) - 1) // 16]))) for at in range(17)])
        painter.fillRect(strip, gradient)
        texts = (f"+{DIFFERENCE_DECIBELS:.0f}", f"−{DIFFERENCE_DECIBELS:.0f}")
        places = Qt.AlignmentFlag.AlignTop, Qt.AlignmentFlag.AlignBottom
        for text, place in zip(texts if lane.minus else ("0 dB", f"−{RANGE_DECIBELS:.0f}"), places, strict=True):
            painter.drawText(strip.adjusted(9, 0, self._scale, 0), Qt.AlignmentFlag.AlignLeft | place, text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.redraw()

    # --- Mouse --------------------------------------------------------------------------------------------------------
    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        at = self._at(event.position().x())
        if event.button() is Qt.MouseButton.MiddleButton or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._drag = "pan", at
        elif event.button() is Qt.MouseButton.LeftButton:
            start, end = self.loop or (-1.0, -1.0)
            grip = _GRIP / self.per_second
            near = self.loop and next(
                (one for one, other in ((end, start), (start, end)) if abs(at - other) < grip), None
            )
            if near is not None:
                self._drag = "draw", near
            elif self.loop and start < at < end:
                self._drag = "move", at
            else:
                self._drag = "draw", at
            self._pressed = event.position().x()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = self._at(event.position().x())
        if self._drag is None:
            self._read_out(event.position())
            return
        what, began = self._drag
        if what == "pan":
            self.follows = False
            self.look(self.start + began - at, self.span)
        elif abs(event.position().x() - self._pressed) >= 4 or self._dragged is not None:
            ends = (began, at) if what == "draw" else tuple(one + at - began for one in self.loop or (began, at))
            self._dragged = max(0.0, min(ends)), min(self.duration, max(ends))
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        drag, dragged, self._drag, self._dragged = self._drag, self._dragged, None, None
        if drag is None or drag[0] == "pan":
            return
        if dragged is None:
            self.follows = True
            self.sought.emit(max(0.0, min(self._at(event.position().x()), self.duration)))
        elif dragged[1] > dragged[0]:
            self.region_drawn.emit(*dragged)
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.show_all()

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned, held = event.angleDelta(), event.modifiers()
        steps = (turned.y() or turned.x()) / 120
        if held & Qt.KeyboardModifier.ControlModifier:
            self.zoom_bands(ZOOM**-steps, self._band(event.position()))
        elif held & Qt.KeyboardModifier.ShiftModifier or not turned.y():
            self.page(-steps / 8)
        else:
            self.zoom(ZOOM ** (-steps / 2), self._at(event.position().x()))
        event.accept()

    def _band(self, place: QPointF) -> float:
        for _, top, heights in self._shown():
            share = 1 - (place.y() - top - heights.wave) / heights.spectrogram
            if 0 <= share <= 1:
                return self.low + share * (self.high - self.low)
        return (self.low + self.high) / 2

    def _read_out(self, place: QPointF) -> None:
        seconds = self._at(place.x())
        if not self.lanes or not 0 <= seconds <= self.duration:
            self.read_out.emit("")
            return
        parts, number, band = [f"{fixed(seconds, 3)} s"], int(seconds * self.per_second) // TILE, self._band(place)
        over = next(
            (height for _, top, height in self._shown() if top <= place.y() < top + height.wave + height.spectrogram),
            None,
        )
        wave = over is None or any(top <= place.y() < top + one.wave for _, top, one in self._shown())
        if not wave:
            parts.append(f"{band_frequency(band):.0f} Hz")
        for lane, _, heights in self._shown():
            part = self._part(number, heights.spectrogram)
            tile = self._finder.get(self._key(lane, part))
            sample = round(seconds * lane.rate)
            if wave and sample < len(lane.samples):
                parts.append(f"{lane.letter} {signed(lane.samples[sample], 4)}")
            elif not wave and isinstance(tile, Tile) and seconds < lane.seconds:
                column = int((seconds - part.start) / (part.end - part.start) * part.columns)
                row = min(part.rows - 1, int((band - self.low) / (self.high - self.low) * part.rows))
                parts.append(f"{lane.letter} {fixed(float(tile.levels[column, row]) - lane.top, 1)} dB")
        self.read_out.emit("   ".join(parts))

    def leaveEvent(self, event: QEvent) -> None:
        self.read_out.emit("")
        super().leaveEvent(event)


def _pixels(name: str) -> np.ndarray:
    """A colour map as 256 pixels, uint32."""
    channels = pg.colormap.get(name).getLookupTable(nPts=256).astype(np.uint32)
    return (0xFF << 24) + (channels[:, 0] << 16) + (channels[:, 1] << 8) + channels[:, 2]
