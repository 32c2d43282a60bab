"""The lanes' canvas: waveforms, spectrograms, pitch and words on one time axis, with one playhead. It blits tiles that
are drawn once, so that eight lanes scroll at every frame."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyqtgraph as pg
from PySide6 import QtGui
from PySide6.QtCore import QEvent, QLineF, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from paretone.audio.spectrogram import band_frequency, frequency_band
from paretone.checks.faults import Finding
from paretone.checks.speech import runs
from paretone.checks.words import SaidWord
from paretone.figures.scatter import Scale
from paretone.measure.pitch import HIGHEST, HOP_SECONDS, LOWEST
from paretone_app.features.listen import analysis
from paretone_app.features.listen.analysis import BANDS, RANGE_DECIBELS, Facts, Finder, Part, Tile, Wanted, painted
from paretone_app.numbers import fixed, with_sign
from paretone_app.shell.colours import DARK, Colours
from paretone_app.shell.theme import NEAR, SMALL, text_font
from paretone_app.widgets.screen_readers import CHART

TILE = 512
"""Width of a tile in pixels."""
ZOOM = 1.5
READABLE = 60
"""Height of a spectrogram, in pixels, before there are words and pitch under it."""
_PITCH = 24
_GRIP = 5  # Pixels around an end of the loop in which it can be moved.
_FREQUENCIES = (8000, 4000, 2000, 1000, 500, 250, 100)
_PITCH_DELAY = 1.5 / LOWEST  # Seconds from the start of a pitch frame to its middle.


@dataclass(eq=False)
class Lane:
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
    minus: tuple[Lane, ...] = ()
    """The two lanes of a difference."""
    behind: np.ndarray | None = field(default=None, repr=False)
    """Pitch of the reference, drawn faintly."""

    def __post_init__(self) -> None:
        self.peak = float(np.abs(self.samples).max(initial=0.0)) or 1.0

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate

    @property
    def has_spectrogram(self) -> bool:
        """Whether it has one: not a take that is still made."""
        return self.facts is not None or bool(self.minus)

    @property
    def top(self) -> float:
        """Decibels of its loudest band; of a difference 0."""
        return self.facts.top if self.facts is not None else 0.0


def difference_of(one: Lane, other: Lane) -> Lane:
    """``one`` minus ``other``, at the levels at which they are played, as long as both."""
    length = min(len(one.samples), len(other.samples))
    samples = one.samples[:length] * np.float32(one.gain) - other.samples[:length] * np.float32(other.gain)
    key = one.key, one.gain, other.key, other.gain
    made = Lane(f"{one.letter} − {other.letter}", key, samples, one.rate, minus=(one, other))
    # The scale of the louder of the two, so that sizes compare.
    made.peak = max(one.peak * one.gain, other.peak * other.gain)
    return made


def outline(samples: np.ndarray, rate: int, start: float, end: float, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (seconds, amplitude) of a line that fills the waveform between ``start`` and ``end`` seconds. Several
    samples in one of the ``columns`` become their minimum and maximum, so that no peak is lost."""
    first = max(0, int(np.floor(start * rate)))
    part = samples[first : int(np.ceil(end * rate)) + 1]
    if len(part) <= 2 * columns:
        return np.arange(first, first + len(part)) / rate, part
    edges = np.arange(0, len(part), -(-len(part) // columns))
    ends = np.stack([np.minimum.reduceat(part, edges), np.maximum.reduceat(part, edges)], axis=1)
    return np.repeat((first + edges + edges[1] / 2) / rate, 2), ends.ravel()


class Heights(NamedTuple):
    """From top to bottom of a lane; 0 without room."""

    wave: int
    spectrogram: int
    pitch: int
    words: int
    phones: int

    @classmethod
    def of(cls, height: int, line: int, plain: bool) -> Heights:
        """``line``: height of a line of text; ``plain``: no pitch and words, as in a difference."""
        wave = max(14, min(round(0.22 * height), 64))
        rest, given = height - wave - NEAR, []
        for wanted in (line, _PITCH, line):
            given.append(0 if plain or rest - wanted < READABLE else wanted)
            rest -= given[-1]
        words, pitch, phones = given
        return cls(wave, max(1, rest), pitch, words, phones)


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
        self.whole = self.time = Scale(0.0, 1.0)
        """All and the visible part of the time, in seconds."""
        self.bands = BANDS
        self.position: float | None = None
        self.loop: tuple[float, float] | None = None
        self.follows = True
        self._first: Wanted = {}
        self._last: Wanted = {}
        self._drawn: dict[Hashable, tuple[QPixmap, bool]] = {}  # Tiles, and whether each has its spectrogram.
        self._drag: tuple[str, float, float] | None = None  # What is dragged, from where in seconds and in pixels.
        self._dragged: tuple[float, float] | None = None
        self.setAccessibleName("Lanes: waveforms, spectrograms, pitch and words")
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._small = text_font(self.font(), SMALL)
        metrics = QtGui.QFontMetrics(self._small)
        self._line = metrics.height()
        self.gutter, self._scale = metrics.horizontalAdvance("500 Hz") + 6, metrics.horizontalAdvance("−70 dB") + 12
        finder.found.connect(lambda _: self.update())
        self.set_colours(colours)

    # --- Content ------------------------------------------------------------------------------------------------------
    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        dark = colours == DARK
        # Perceptually uniform; silence has the background colour. Differences diverge around it.
        self._levels, self._signed = _pixels("magma" if dark else "CET-L17"), _pixels("CET-D4" if dark else "CET-D1A")
        self.redraw()

    def set_lanes(self, lanes: Sequence[Lane], first: Wanted, last: Wanted) -> None:
        """``first``, ``last``: what else to compute, before and after the spectrograms."""
        self.lanes, self._first, self._last = tuple(lanes), first, last
        whole = Scale(0.0, max((one.seconds for one in lanes), default=1.0) or 1.0)
        if whole != self.whole:
            self.follows, self.whole, self.time = True, whole, whole
            self.seen_changed.emit()
        self.redraw()

    def redraw(self) -> None:
        self._drawn = {}
        self._want()
        self.update()

    # --- View ---------------------------------------------------------------------------------------------------------
    @property
    def room(self) -> int:
        """Width of the time axis in pixels."""
        return max(1, self.width() - self.gutter - self._scale)

    @property
    def _area(self) -> QRect:
        return QRect(self.gutter, 0, self.room, self.height())

    @property
    def per_second(self) -> float:
        """Pixels."""
        return self.room / (self.time.high - self.time.low)

    def look(self, time: Scale) -> None:
        if time != self.time:
            per_second, numbers, self.time = self.per_second, self.numbers(), time
            scaled = abs(self.per_second / per_second - 1) > 1e-9
            if scaled:
                self._drawn = {}
            if scaled or numbers != self.numbers():
                self._want()
            self.update(self._area)
            self.seen_changed.emit()

    def zoom(self, factor: float, around: float) -> None:
        """Scale the visible time by ``factor``, keeping ``around`` (seconds) in place."""
        self.look(self.time.zoomed(factor, float(self.time.share(np.array(around))), self.whole))

    def page(self, share: float) -> None:
        """Move by a ``share`` of the visible time."""
        self.follows = False
        self.look(self.time.moved(share, self.whole))

    def zoom_bands(self, factor: float, around: float = 0.5) -> None:
        """Scale the visible frequencies, keeping the share ``around`` of them in place."""
        self.bands = self.bands.zoomed(factor, around, BANDS)
        self.redraw()

    def page_bands(self, share: float) -> None:
        self.bands = self.bands.moved(share, BANDS)
        self.redraw()

    def show_all(self) -> None:
        self.follows, self.time, self.bands = True, self.whole, BANDS
        self.redraw()
        self.seen_changed.emit()

    def set_position(self, seconds: float | None, playing: bool = False) -> None:
        """Move the playhead, and the view with it while it plays; ``None`` hides it."""
        before, self.position = self.position, seconds
        if playing and seconds is not None and self.follows and self.time != self.whole:
            share = float(self.time.share(np.array(seconds))) - 0.5
            if share > 0 or share < -0.5:
                self.look(self.time.moved(share, self.whole))
        for one in (before, seconds):
            if one is not None:
                self.update(QRect(round(self.place(one)) - 2, 0, 4, self.height()))

    def set_loop(self, loop: tuple[float, float] | None) -> None:
        if loop != self.loop:
            self.loop = loop
            self.update()

    @property
    def _offset(self) -> int:
        return round(self.time.low * self.per_second)

    def place(self, seconds: float) -> float:
        """Pixels from the left."""
        return self.gutter + seconds * self.per_second - self._offset

    def _at(self, x: float) -> float:
        return (x - self.gutter + self._offset) / self.per_second

    # --- Tiles --------------------------------------------------------------------------------------------------------
    def _part(self, number: int, height: int) -> Part:
        ratio, seconds = self.devicePixelRatioF(), round(TILE / self.per_second, 9)
        time = Scale(number * seconds, (number + 1) * seconds)
        return Part(time, round(TILE * ratio), self.bands, round(height * ratio))

    def numbers(self, around: int = 0) -> range:
        """Numbers of the tiles in view, and of so many ``around`` them."""
        first, last = self._offset // TILE, (self._offset + self.room) // TILE
        end = int(self.whole.high * self.per_second) // TILE
        return range(max(0, first - around), min(end, last + around) + 1)

    def shown(self) -> Iterator[tuple[Lane, int, int, Heights]]:
        """Lanes with their tops and heights."""
        for lane, (top, height) in zip(self.lanes, self._spans(), strict=False):
            yield lane, top, height, Heights.of(height, self._line, bool(lane.minus))

    def tile(self, lane: Lane, number: int, heights: Heights) -> Tile | None:
        found = self._finder.get(self._key(lane, number, heights))
        return found if isinstance(found, Tile) else None

    def _key(self, lane: Lane, number: int, heights: Heights) -> Hashable:
        return lane.key, self._part(number, heights.spectrogram), self._colours == DARK

    def _want(self) -> None:
        """Have computed what is missing: first facts, then spectrograms in view, those next to it, and words."""
        if not self.isVisible():
            return
        inside, pieces = self.numbers(), dict(self._first)
        for number in (*inside, *(one for one in self.numbers(1) if one not in inside)):
            for lane, _, _, heights in self.shown():
                if all(one.facts is not None for one in lane.minus or (lane,)):
                    pieces[self._key(lane, number, heights)] = self._work(lane, self._part(number, heights.spectrogram))
        self._finder.want({**pieces, **self._last})

    def _work(self, lane: Lane, part: Part) -> Callable[[], Tile]:
        colours, most = self._signed if lane.minus else self._levels, analysis.DIFFERENCE_DECIBELS

        def work() -> Tile:
            if not lane.minus:
                return painted(part.levels(lane.samples, lane.rate), lane.top - RANGE_DECIBELS, lane.top, colours)
            gains = [20 * np.log10(one.gain) for one in lane.minus]
            # Two silences do not differ by their noise.
            floor = max(one.top + gain for one, gain in zip(lane.minus, gains, strict=True)) - RANGE_DECIBELS
            both = [part.levels(it.samples, it.rate) + gain for it, gain in zip(lane.minus, gains, strict=True)]
            return painted(np.maximum(both[0], floor) - np.maximum(both[1], floor), -most, most, colours)

        return work

    def _pixmap(self, lane: Lane, number: int, height: int, heights: Heights) -> QPixmap:
        key = lane.letter, number, height
        made, whole = self._drawn.get(key, (None, False))
        tile = None if whole else self.tile(lane, number, heights)
        if made is None or tile is not None:
            ratio = self.devicePixelRatioF()
            made = QPixmap(round(TILE * ratio), round(height * ratio))
            made.setDevicePixelRatio(ratio)
            made.fill(QColor(self._colours.base))
            time = self._part(number, heights.spectrogram).time
            with QPainter(made) as painter:
                painter.setFont(self._small)
                # Everything is drawn at its place on the whole axis, of which the tile shows a part.
                painter.translate(-number * TILE, 0)
                instead = 0 if lane.has_spectrogram else heights.spectrogram
                self._draw_wave(painter, lane, time, heights.wave + instead)
                area = QRectF(number * TILE, heights.wave, TILE, heights.spectrogram)
                if tile is not None:
                    painter.drawImage(area, tile.image)
                elif lane.facts is not None:
                    # The spectrogram of the whole take, until that of the part is computed.
                    coarse = painted(lane.facts.levels, lane.top - RANGE_DECIBELS, lane.top, self._levels).image
                    columns, rows = coarse.width() / lane.seconds, coarse.height() / (BANDS.high - BANDS.low)
                    high = (BANDS.high - self.bands.high) * rows, (BANDS.high - self.bands.low) * rows
                    corners = QPointF(time.low * columns, high[0]), QPointF(time.high * columns, high[1])
                    painter.drawImage(area, coarse, QRectF(*corners))
                self._draw_speech(painter, lane, time, heights)
            self._drawn[key] = made, tile is not None
        return made

    def _draw_wave(self, painter: QPainter, lane: Lane, time: Scale, height: int) -> None:
        middle, margin = height / 2, 2 / self.per_second
        painter.setPen(QColor(self._colours.border))
        painter.drawLine(QLineF(time.low * self.per_second, middle, lane.seconds * self.per_second, middle))
        times, values = outline(lane.samples, lane.rate, time.low - margin, time.high + margin, TILE)
        painter.setPen(QColor(lane.colour or self._colours.muted))
        painter.drawPolyline(_line(times * self.per_second, middle - (middle - 1) / lane.peak * values))
        band = QColor(self._colours.warning)
        for one in lane.faults:
            left, width = one.start * self.per_second, max(4.0, (one.end - one.start) * self.per_second)
            for alpha, depth in ((50, height), (255, 3)):
                band.setAlpha(alpha)
                painter.fillRect(QRectF(left, 0, width, depth), band)

    def _draw_speech(self, painter: QPainter, lane: Lane, time: Scale, heights: Heights) -> None:
        """Pitch, over the spectrogram of a low lane, words and phones."""
        colours, top = self._colours, heights.wave + heights.spectrogram
        begin, room = (top, heights.pitch) if heights.pitch else (heights.wave, heights.spectrogram)
        own = None if lane.facts is None or lane.minus else lane.facts.pitch
        halo = 0 if heights.pitch else 4
        for curve, colour, width in (
            (lane.behind, colours.border, 3),
            (own, colours.base, halo),
            (own, colours.text, 1.5),
        ):
            first, end = (int((one - _PITCH_DELAY) / HOP_SECONDS) for one in (time.low, time.high))
            piece = np.zeros(0) if curve is None else curve[max(0, first - 1) : max(0, end + 2)]
            across = ((np.arange(len(piece)) + max(0, first - 1)) * HOP_SECONDS + _PITCH_DELAY) * self.per_second
            share = (piece - np.log(LOWEST)) / np.log(HIGHEST / LOWEST)
            painter.setPen(QPen(QColor(colour), width))
            for start, stop in runs(piece > 0) if width else ():
                down = begin + room - 2 - (room - 4) * share[start:stop]
                painter.drawPolyline(_line(across[start:stop], down))
        top += heights.pitch
        words = [(word, parts[0][1], parts[-1][2]) for word, parts in lane.words]
        phones = [phone for _, parts in lane.words for phone in parts]
        metrics = painter.fontMetrics()
        for height, colour, parts in (heights.words, colours.text, words), (heights.phones, colours.muted, phones):
            for text, start, stop in parts if height else ():
                if stop > time.low and start < time.high:
                    left, right = start * self.per_second, stop * self.per_second
                    painter.setPen(QColor(colours.border))
                    painter.drawLine(QLineF(left, top + 2, left, top + height - 2))
                    cut = metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(right - left - 2))
                    painter.setPen(QColor(colour))
                    if cut != "…" and metrics.horizontalAdvance(cut) <= right - left:  # Qt cuts off no single letter.
                        painter.drawText(QPointF(left + 2, top + metrics.ascent()), cut)
            top += height

    # --- Painting -----------------------------------------------------------------------------------------------------
    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        seen, colours, area = event.rect(), self._colours, self._area
        with QPainter(self) as painter:
            painter.fillRect(seen, QColor(colours.base))
            painter.setClipRect(area.intersected(seen))
            for lane, top, height, heights in self.shown():
                for number in self.numbers() if top <= seen.bottom() and top + height > seen.top() else ():
                    left = self.gutter + number * TILE - self._offset
                    if left <= seen.right() and left + TILE > seen.left():
                        painter.drawPixmap(left, top, self._pixmap(lane, number, height, heights))
            loop = self._dragged or self.loop
            if loop is not None:
                left_end, right_end = map(self.place, loop)
                accent = QColor(colours.accent)
                painter.setPen(QPen(accent, 1.5))
                painter.drawLines([QLineF(one, 0, one, self.height()) for one in (left_end, right_end)])
                accent.setAlpha(30)
                painter.fillRect(QRectF(left_end, 0, right_end - left_end, self.height()), accent)
            if self.position is not None:
                head = QRectF(self.place(self.position) - 0.75, 0, 1.5, self.height())
                painter.fillRect(head, QColor(colours.danger))
            if not area.contains(seen):
                painter.setClipRect(seen)
                painter.setFont(self._small)
                painter.setPen(QColor(colours.muted))
                for lane, top, _, heights in self.shown():
                    self._draw_scales(painter, lane, QRectF(0, top + heights.wave, self.width(), heights.spectrogram))

    def _draw_scales(self, painter: QPainter, lane: Lane, area: QRectF) -> None:
        """Frequencies on the left, the colour scale on the right, of what is drawn."""
        if not lane.has_spectrogram:
            return
        flags, above = Qt.AlignmentFlag, area.top() - self._line
        for hertz in _FREQUENCIES:
            share = float(self.bands.share(np.array(frequency_band(hertz))))
            y = area.bottom() - share * area.height()
            if 0 <= share <= 1 and y - above >= self._line:
                text, above = f"{hertz // 1000} kHz" if hertz >= 1000 else f"{hertz} Hz", y
                room = QRectF(0, y - self._line / 2, self.gutter - 3, self._line)
                painter.drawText(room, flags.AlignRight | flags.AlignVCenter, text)
        strip = QRectF(self.width() - self._scale + 4, area.top(), 6, area.height())
        colours = self._signed if lane.minus else self._levels
        painter.drawImage(strip, painted(np.arange(64)[None], 0, 63, colours).image)
        most = f"{analysis.DIFFERENCE_DECIBELS:.0f}"
        texts = (f"+{most}", f"−{most}") if lane.minus else ("0 dB", f"−{RANGE_DECIBELS:.0f}")
        for text, place in zip(texts, (flags.AlignTop, flags.AlignBottom), strict=True):
            painter.drawText(strip.adjusted(9, 0, self._scale, 0), flags.AlignLeft | place, text)

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self.redraw()

    # --- Mouse --------------------------------------------------------------------------------------------------------
    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:
        super().mousePressEvent(event)
        x = event.position().x()
        at, (start, end) = self._at(x), self.loop or (-9.0, -9.0)
        if event.button() is Qt.MouseButton.MiddleButton or event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._drag = "pan", at, x
        elif event.button() is Qt.MouseButton.LeftButton:
            if min(abs(at - start), abs(at - end)) < _GRIP / self.per_second:
                self._drag = "draw", end if abs(at - start) < abs(at - end) else start, x
            else:
                self._drag = "move" if start < at < end else "draw", at, x

    def mouseMoveEvent(self, event: QtGui.QMouseEvent) -> None:
        x = event.position().x()
        at = self._at(x)
        if self._drag is None:
            self._read_out(event.position())
            return
        what, began, pressed = self._drag
        if what == "pan":
            self.page((began - at) / (self.time.high - self.time.low))
        elif abs(x - pressed) >= 4 or self._dragged is not None:
            if what == "move" and self.loop is not None:
                start, end = self.loop
                self._dragged = Scale(start, end).moved((at - self._at(pressed)) / (end - start), self.whole).ends
            else:
                self._dragged = max(0.0, min(began, at)), min(self.whole.high, max(began, at))
            self.update()

    def mouseReleaseEvent(self, event: QtGui.QMouseEvent) -> None:
        drag, dragged, self._drag, self._dragged = self._drag, self._dragged, None, None
        if drag is not None and drag[0] != "pan":
            if dragged is None:
                self.follows = True
                self.sought.emit(max(0.0, min(self._at(event.position().x()), self.whole.high)))
            elif dragged[1] > dragged[0]:
                self.region_drawn.emit(*dragged)
            self.update()

    def mouseDoubleClickEvent(self, event: QtGui.QMouseEvent) -> None:
        self.show_all()

    def wheelEvent(self, event: QtGui.QWheelEvent) -> None:
        turned, held = event.angleDelta(), event.modifiers()
        steps = (turned.y() or turned.x()) / 120
        if held & Qt.KeyboardModifier.ControlModifier:
            share = self._frequency(event.position().y())
            self.zoom_bands(ZOOM**-steps, 0.5 if share is None else share)
        elif held & Qt.KeyboardModifier.ShiftModifier or not turned.y():
            self.page(-steps / 8)
        else:
            self.zoom(ZOOM ** (-steps / 2), self._at(event.position().x()))
        event.accept()

    def _frequency(self, y: float) -> float | None:
        """Share of the visible frequencies at ``y`` pixels; ``None`` outside the spectrograms."""
        shares = (1 - (y - top - one.wave) / one.spectrogram for _, top, _, one in self.shown())
        return next((one for one in shares if 0 <= one <= 1), None)

    def _read_out(self, place: QPointF) -> None:
        seconds, share = self._at(place.x()), self._frequency(place.y())
        parts = [f"{fixed(seconds, 3)} s"]
        if share is not None:
            parts.append(f"{band_frequency(self.bands.at(share)):.0f} Hz")
        number, within = divmod(seconds * self.per_second, TILE)
        for lane, top, height, heights in self.shown() if 0 <= seconds < self.whole.high else ():
            if top <= place.y() < top + height:
                # Also where a low lane has no room for them.
                said = ((word, one) for word, phones in lane.words for one in phones if one[1] <= seconds < one[2])
                parts[1:1] = [f"“{word}” {phone}" for word, (phone, *_) in said]
            tile, sample = self.tile(lane, int(number), heights), round(seconds * lane.rate)
            if share is None and sample < len(lane.samples):
                parts.append(f"{lane.letter} {with_sign(lane.samples[sample], '+', 4)}")
            elif share is not None and tile is not None and seconds < lane.seconds:
                columns, rows = tile.levels.shape
                level = tile.levels[int(within / TILE * columns), min(rows - 1, int(share * rows))]
                parts.append(f"{lane.letter} {fixed(float(level) - lane.top, 1)} dB")
        self.read_out.emit("   ".join(parts) if len(parts) > 1 else "")

    def leaveEvent(self, event: QEvent) -> None:
        self.read_out.emit("")
        super().leaveEvent(event)


def _line(across: np.ndarray, down: np.ndarray) -> QPolygonF:
    return QPolygonF([QPointF(*one) for one in zip(across.tolist(), down.tolist(), strict=True)])


def _pixels(name: str) -> np.ndarray:
    """A colour map as 256 pixels, uint32."""
    channels = pg.colormap.get(name).getLookupTable(nPts=256).astype(np.uint32)
    return (0xFF << 24) + (channels[:, 0] << 16) + (channels[:, 1] << 8) + channels[:, 2]
