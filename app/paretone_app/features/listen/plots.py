"""Stacked waveforms and mel spectrograms of A, B and A - B, on locked axes with one playhead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from pyqtgraph.GraphicsScene.mouseEvents import MouseClickEvent, MouseDragEvent
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QGraphicsGridLayout, QLabel, QSizePolicy, QWidget

from paretone.audio.spectrogram import DECIBELS_PER_NEPER, HOP, RATE, band_frequency, frequency_band, log_mel
from paretone_app.numbers import fixed, signed
from paretone_app.plotting.frame import BareAxis
from paretone_app.shell.colours import DARK, Colours
from paretone_app.shell.theme import NEAR, SMALL, STRONG, TIGHT, text_font
from paretone_app.widgets.invitation import EmptyState
from paretone_app.widgets.layouts import GridLayout
from paretone_app.widgets.screen_readers import CHART, PICTURE


class ColourScale(QWidget):
    screen_role = PICTURE

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._texts = ("", "", "")
        self._colours = _colours_of(pg.colormap.get("magma"))
        self._text = QColor()
        metrics = self.fontMetrics()
        self._strip = max(6, metrics.height() // 2)
        self.setFixedWidth(self._strip + 4 + metrics.horizontalAdvance("−70 "))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Ignored)

    def set_map(self, colours: pg.ColorMap, theme: Colours) -> None:
        self._colours, self._text = _colours_of(colours), QColor(theme.muted)
        self.update()

    def set_ends(self, top: str, unit: str, bottom: str) -> None:
        self._texts = (top, unit, bottom)
        self.setAccessibleDescription(f"{bottom} to {top} {unit}")
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            gradient = QLinearGradient(0, self.height(), 0, 0)
            gradient.setStops(self._colours)
            painter.fillRect(0, 0, self._strip, self.height(), gradient)
            painter.setPen(self._text)
            painter.setFont(text_font(painter.font(), SMALL))
            area = self.rect().adjusted(self._strip + 3, 0, 0, 0)
            across = (Qt.AlignmentFlag.AlignTop, Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignBottom)
            for text, where in zip(self._texts, across, strict=True):
                if where is Qt.AlignmentFlag.AlignVCenter and self.height() < 3 * painter.fontMetrics().height():
                    continue
                painter.drawText(area, where | Qt.AlignmentFlag.AlignLeft, text)


def _colours_of(colours: pg.ColorMap) -> list[tuple[float, QColor]]:
    """Gradient stops of the map, from its lower end (0) to its upper end (1)."""
    shares = np.linspace(0, 1, 24)
    return list(zip(shares.tolist(), colours.map(shares, mode="qcolor"), strict=True))


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


class _Plot(pg.GraphicsView):
    """A view with a left axis and an optional bottom one. The menus, buttons and further axes of a
    :class:`pyqtgraph.PlotWidget` would take longer to create than the rest of the panel."""

    screen_role = CHART

    def __init__(self, view: pg.ViewBox, bottom: BareAxis | None = None) -> None:
        super().__init__()
        self.view, self.left = view, BareAxis("left")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.enableMouse(False)
        self.whole = pg.GraphicsWidget()
        layout = QGraphicsGridLayout(self.whole)
        layout.setContentsMargins(TIGHT, TIGHT, TIGHT, TIGHT)
        layout.setSpacing(0)
        layout.setRowStretchFactor(0, 100)
        layout.setColumnStretchFactor(1, 100)
        layout.addItem(view, 0, 1)
        for axis, row, column in ((self.left, 0, 0), (bottom, 1, 1)):
            if axis is None:
                continue
            axis.enableAutoSIPrefix(False)
            axis.linkToView(view)
            axis.setZValue(0.5)
            layout.addItem(axis, row, column)
        self.setCentralItem(self.whole)


class TimePlot(_Plot):
    def __init__(self, name: str) -> None:
        super().__init__(TimeView())
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setMinimumHeight(24)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.left.setWidth(self.fontMetrics().horizontalAdvance("500 Hz") + 8)
        self.image = pg.ImageItem(axisOrder="col-major", autoDownsample=True)
        self.curve = pg.PlotCurveItem()
        self.region = pg.LinearRegionItem(movable=True)
        self.region.setVisible(False)
        self.playhead = pg.InfiniteLine(0, angle=90)
        for item in (self.image, self.curve, self.region, self.playhead):
            self.view.addItem(item, ignoreBounds=True)

    def set_colours(self, colours: Colours, faint: bool) -> None:
        """Follow the theme. ``faint`` regions keep the colours of a picture below readable."""
        self.setBackground(colours.base)
        self.left.setPen(colours.border)
        self.left.setTextPen(colours.muted)
        accent = QColor(colours.accent)
        accent.setAlpha(14 if faint else 45)
        self.region.setBrush(accent)
        accent.setAlpha(28 if faint else 75)
        self.region.setHoverBrush(accent)
        for line in self.region.lines:
            line.setPen(pg.mkPen(colours.accent, width=1.5))
            line.setHoverPen(pg.mkPen(colours.text, width=2))
        self.playhead.setPen(pg.mkPen(colours.danger, width=1.5))


class _SecondsAxis(BareAxis):
    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        return [f"{text} s" for text in super().tickStrings(values, scale, spacing)]


class Ruler(_Plot):
    def __init__(self, plot: TimePlot) -> None:
        self.bottom = _SecondsAxis("bottom")
        super().__init__(pg.ViewBox(enableMenu=False), self.bottom)
        self.setAccessibleName("Time axis")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.viewport().setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.view.setMouseEnabled(x=False, y=False)
        self.bottom.setStyle(tickLength=4)
        self.left.setWidth(plot.left.width())
        self.left.setStyle(showValues=False, tickLength=0)
        self.left.setPen(None)
        self.view.setXLink(plot.view)
        self.setFixedHeight(round(1.6 * self.fontMetrics().height()))

    def set_colours(self, colours: Colours) -> None:
        self.setBackground(None)
        self.bottom.setPen(colours.border)
        self.bottom.setTextPen(colours.muted)


class TimeView(pg.ViewBox):
    """Zooms and moves in time only; clicks and plain drags are passed on."""

    clicked = Signal(float)
    dragged = Signal(float, float, bool)
    all_wanted = Signal()

    def __init__(self) -> None:
        super().__init__(enableMenu=False, defaultPadding=0)
        self.setMouseEnabled(x=True, y=False)
        self.disableAutoRange()

    def mouseClickEvent(self, event: MouseClickEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        event.accept()
        if event.double():
            self.all_wanted.emit()
        else:
            self.clicked.emit(self.mapSceneToView(event.scenePos()).x())

    def mouseDragEvent(self, event: MouseDragEvent, axis: int | None = None) -> None:
        if event.button() is Qt.MouseButton.LeftButton and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            event.accept()
            start = self.mapSceneToView(event.buttonDownScenePos()).x()
            self.dragged.emit(start, self.mapSceneToView(event.scenePos()).x(), event.isFinish())
        else:
            super().mouseDragEvent(event, axis)


class ComingTake:
    """A streaming take. Joins the spectrograms of its pieces; the finished take is drawn anew."""

    def __init__(self, side: str, rate: int) -> None:
        """``side`` is ``"A"`` or ``"B"``; ``rate`` is in hertz."""
        self.side = side
        self._rate = rate
        self._samples = np.zeros(0, np.float32)
        self._mel = log_mel(self._samples, rate)

    def add(self, samples: np.ndarray) -> None:
        self._samples = np.concatenate((self._samples, np.asarray(samples, np.float32)))
        wanted = round(len(self._samples) / self._rate * RATE / HOP)
        more = log_mel(samples, self._rate)[: max(0, wanted - len(self._mel))]
        self._mel = np.concatenate((self._mel, more))

    @property
    def picture(self) -> Picture | None:
        """Waveform and spectrogram; ``None`` before the first frame."""
        return Picture(self._samples, self._rate, self._mel) if len(self._samples) and len(self._mel) else None


RANGE_DECIBELS = 70.0
"""Range of spectrograms below the loudest band of A and B."""
_WAVE, _MEL = 2, 5
"""Ratio of the heights of waveforms and spectrograms."""
READABLE = 60
"""Minimum height of a spectrogram, in pixels."""
DIFFERENCE_DECIBELS = 20.0
"""Ends of the colour scale of A - B (±)."""
_EMPTY = ("Take A will appear here.", "Take B will appear here.")
_FREQUENCIES = (500, 1000, 2000, 4000, 8000)
_FRAME_SECONDS = HOP / RATE


@dataclass(frozen=True)
class Picture:
    """The shown data of one take: its samples (gain applied) and its log-mel spectrogram."""

    samples: np.ndarray
    rate: int
    mel: np.ndarray
    """(frames, bands), natural logarithm."""

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate


def difference(one: Picture, other: Picture, floor: float) -> Picture:
    """Difference of the samples and of the log-mel spectrograms, for takes with the same timing and rate. Levels below
    ``floor`` (in nepers) count as ``floor``, so that two silences do not differ by their noise."""
    length = min(len(one.samples), len(other.samples))
    frames = min(len(one.mel), len(other.mel))
    mel = np.maximum(one.mel[:frames], floor) - np.maximum(other.mel[:frames], floor)
    return Picture(one.samples[:length] - other.samples[:length], one.rate, mel)


class ComparisonPlots(QWidget):
    """Three rows, each a waveform above a spectrogram. Independent of players; see the signals."""

    sought = Signal(float)
    region_drawn = Signal(float, float)
    """A loop was drawn or moved: start and end in seconds."""
    seen_changed = Signal()
    read_out = Signal(str)
    """Values under the mouse, as text; empty after it left."""

    difference_shown = Signal(bool)

    ROWS = ("A", "B", "A − B")

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self.pictures: list[Picture | None] = [None, None, None]
        self.heard: int | None = None
        self._loudest = 0.0
        self.duration = 1.0
        # Showing plots in an event that resizes others crashes pyqtgraph.
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self._make_room)
        self._has_room = True
        self.titles: list[QLabel] = []
        self._waves: list[TimePlot] = []
        self._mels: list[TimePlot] = []
        self._scales: list[ColourScale] = []
        self.empty: list[EmptyState] = []
        self.notes: list[pg.TextItem] = []
        self._grid = grid = GridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(NEAR)
        grid.setVerticalSpacing(TIGHT)
        for row, name in enumerate(self.ROWS):
            title = QLabel(name)
            title.setAlignment(Qt.AlignmentFlag.AlignCenter)
            wave, mel = TimePlot(f"Waveform of {_spoken(name)}"), TimePlot(f"Mel spectrogram of {_spoken(name)}")
            scale = ColourScale(f"Colour scale of the spectrogram of {_spoken(name)}")
            wave.setAccessibleDescription("Amplitude over time in seconds. Left and right arrows move the playhead.")
            mel.setAccessibleDescription("Level in decibels over time in seconds and mel frequency in hertz.")
            mel.view.setYRange(0, 100, padding=0)
            wave.left.setTicks([[(0, "0")]])
            note = pg.TextItem(anchor=(0.5, 0.5))
            if row < len(_EMPTY):
                empty = EmptyState(_EMPTY[row], in_a_line=True)
                grid.addWidget(empty, 2 * row, 1, 2, 1)
                self.empty.append(empty)
            mel.view.addItem(note, ignoreBounds=True)
            grid.addWidget(title, 2 * row, 0, 2, 1, Qt.AlignmentFlag.AlignCenter)
            grid.addWidget(wave, 2 * row, 1)
            grid.addWidget(mel, 2 * row + 1, 1)
            grid.addWidget(scale, 2 * row + 1, 2)
            self.titles.append(title)
            self._waves.append(wave)
            self._mels.append(mel)
            self._scales.append(scale)
            self.notes.append(note)
        grid.setColumnStretch(1, 1)
        self.plots = [plot for pair in zip(self._waves, self._mels, strict=True) for plot in pair]
        for plot in self.plots:
            if plot is not self.plots[0]:
                plot.view.setXLink(self.plots[0].view)
            plot.view.clicked.connect(lambda seconds: self.sought.emit(min(max(0.0, seconds), self.duration)))
            plot.view.dragged.connect(self._draw_region)
            plot.view.all_wanted.connect(self.show_all)
            plot.region.sigRegionChanged.connect(lambda region: self.set_loop(region.getRegion()))
            plot.region.sigRegionChangeFinished.connect(self._move_region)
            plot.scene().sigMouseMoved.connect(lambda position, plot=plot: self._read_out(plot, position))
        self._ruler = Ruler(self.plots[0])
        grid.addWidget(self._ruler, 2 * len(self.ROWS), 1)
        self.plots[0].view.sigXRangeChanged.connect(self._draw_outlines)
        self.plots[0].view.sigXRangeChanged.connect(self.seen_changed)
        self.plots[0].view.sigResized.connect(self._draw_outlines)
        self.set_colours(colours)

    def set_pictures(self, take_a: Picture | None, take_b: Picture | None, why_no_difference: str = "") -> None:
        previous = self.duration
        shown = [one for one in (take_a, take_b) if one is not None]
        self.duration = max((one.seconds for one in shown), default=1.0)
        self._loudest = max((float(one.mel.max()) for one in shown if one.mel.size), default=0.0)
        floor = self._loudest - RANGE_DECIBELS / DECIBELS_PER_NEPER
        compared = None
        if take_a is not None and take_b is not None and not why_no_difference:
            compared = difference(take_a, take_b, floor)
        self.pictures = [take_a, take_b, compared]
        # One scale for A, B and their difference, so that their sizes compare.
        peak = max((float(np.abs(one.samples).max()) for one in shown if len(one.samples)), default=0.0) or 1.0
        for plot in self._waves:
            plot.view.setYRange(-peak, peak, padding=0.05)
        for plot in self.plots:
            plot.view.setLimits(xMin=0, xMax=self.duration, minXRange=min(0.02, self.duration))
        for one, picture in zip(self.empty, self.pictures, strict=False):
            one.setVisible(picture is None)
            one.raise_()
        texts = (*("" for _ in _EMPTY), why_no_difference)
        for picture, mel, note, text in zip(self.pictures, self._mels, self.notes, texts, strict=True):
            note.setText("" if picture is not None else text)
            note.setPos(self.duration / 2, 50)
            if picture is None or not picture.mel.size:
                mel.image.clear()
                continue
            mel.image.setImage(np.ascontiguousarray(picture.mel) * DECIBELS_PER_NEPER, autoLevels=False)
            # Frame i is centred on i hops.
            mel.image.setRect(
                QRectF(-_FRAME_SECONDS / 2, -0.5, len(picture.mel) * _FRAME_SECONDS, picture.mel.shape[1])
            )
        self._set_levels()
        if self.duration != previous:
            self.show_all()
        self._draw_outlines()

    def set_names(self, name_a: str, name_b: str) -> None:
        for row, name in enumerate((name_a, name_b)):
            self.titles[row].setToolTip(name)
            self._waves[row].setToolTip(name)

    def set_heard(self, row: int | None) -> None:
        self.heard = row
        for index, title in enumerate(self.titles):
            colour = self._row_colour(index)
            heard = index == row
            title.setStyleSheet(
                f"font-weight: {STRONG}; padding: {TIGHT}px {NEAR}px; border-radius: 4px; color: "
                f"{self._colours.base if heard else colour}; background: {colour if heard else 'transparent'};"
            )

    def set_position(self, seconds: float | None) -> None:
        """Move the playhead; ``None`` hides it."""
        for plot in self.plots:
            plot.playhead.setVisible(seconds is not None)
            if seconds is not None:
                plot.playhead.setValue(seconds)

    def set_loop(self, loop: tuple[float, float] | None) -> None:
        for plot in self.plots:
            plot.region.blockSignals(True)
            if loop is not None:
                plot.region.setRegion(loop)
            plot.region.setVisible(loop is not None)
            plot.region.blockSignals(False)

    def show_all(self) -> None:
        self.plots[0].view.setXRange(0, self.duration, padding=0)

    def zoom(self, factor: float, around: float) -> None:
        """Scale the visible time span by ``factor``, keeping ``around`` (seconds) in place."""
        start, end = self.seen
        self.plots[0].view.setXRange(around - (around - start) * factor, around + (end - around) * factor, padding=0)

    @property
    def seen(self) -> tuple[float, float]:
        start, end = self.plots[0].view.viewRange()[0]
        return start, end

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme, which pyqtgraph does not do automatically."""
        self._colours = colours
        dark = colours == DARK
        # Perceptually uniform; silence has the background colour: from black, or from white over red to blue.
        level = pg.colormap.get("magma" if dark else "CET-L17")
        # Diverging around the background colour: black in the middle on dark, white on light.
        signed = pg.colormap.get("CET-D4" if dark else "CET-D1A")
        for index, (wave, mel, scale) in enumerate(zip(self._waves, self._mels, self._scales, strict=True)):
            for plot in (wave, mel):
                plot.set_colours(colours, faint=plot is mel)
            wave.curve.setPen(pg.mkPen(self._row_colour(index), width=1))
            chosen = signed if index == 2 else level
            mel.image.setColorMap(chosen)
            scale.set_map(chosen, colours)
        self._ruler.set_colours(colours)
        for note in self.notes:
            note.setColor(QColor(colours.muted))
        self._set_levels()
        self.set_heard(self.heard)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._soon.start()
        # Label as many frequencies as fit, always the middle one.
        line = 1.3 * self.fontMetrics().height()
        for mel in self._mels:
            room = mel.height() / line
            shown = _FREQUENCIES if room > 6 else _FREQUENCIES[::2] if room > 3 else _FREQUENCIES[2:3]
            names = (f"{one // 1000} kHz" if one >= 1000 else f"{one} Hz" for one in shown)
            mel.left.setTicks([list(zip(map(frequency_band, shown), names, strict=True))])

    def _make_room(self) -> None:
        """Keep spectrograms readable in a low panel: hide the waveform of A − B, then its whole row."""
        room = self.height() - self._ruler.height() - 2 * len(self.ROWS) * TIGHT
        wave, mel = self._waves[0].minimumHeight(), READABLE
        difference = room >= 2 * wave + 3 * mel
        outline_of_it = room >= 3 * (wave + mel)
        for one in (self.titles[2], self._mels[2], self._scales[2]):
            one.setVisible(difference)
        self._waves[2].setVisible(difference and outline_of_it)
        for row, (wave_there, mel_there) in enumerate(((True, True), (True, True), (outline_of_it, difference))):
            # Otherwise a hidden row keeps its share of the height.
            self._grid.setRowStretch(2 * row, _WAVE * wave_there)
            self._grid.setRowStretch(2 * row + 1, _MEL * mel_there)
        if difference is not self._has_room:
            self._has_room = difference
            self.difference_shown.emit(difference)

    def leaveEvent(self, event: QEvent) -> None:
        self.read_out.emit("")
        super().leaveEvent(event)

    def _row_colour(self, row: int) -> str:
        return (self._colours.baseline, self._colours.accelerated, self._colours.muted)[row]

    def _set_levels(self) -> None:
        loudest = self._loudest * DECIBELS_PER_NEPER
        for index, (mel, scale) in enumerate(zip(self._mels, self._scales, strict=True)):
            if index == 2:
                mel.image.setLevels((-DIFFERENCE_DECIBELS, DIFFERENCE_DECIBELS))
                scale.set_ends(f"{DIFFERENCE_DECIBELS:+.0f}", "dB", f"−{DIFFERENCE_DECIBELS:.0f}")
            else:
                mel.image.setLevels((loudest - RANGE_DECIBELS, loudest))
                scale.set_ends("0", "dB", f"−{RANGE_DECIBELS:.0f}")

    def _draw_outlines(self) -> None:
        start, end = self.seen
        columns = max(100, self.plots[0].width())
        for picture, plot in zip(self.pictures, self._waves, strict=True):
            if picture is None:
                plot.curve.clear()
            else:
                plot.curve.setData(*outline(picture.samples, picture.rate, start, end, columns))

    def _draw_region(self, start: float, end: float, finished: bool) -> None:
        loop = max(0.0, min(start, end)), min(self.duration, max(start, end))
        self.set_loop(loop)
        if finished and loop[1] > loop[0]:
            self.region_drawn.emit(*loop)

    def _move_region(self, region: pg.LinearRegionItem) -> None:
        start, end = region.getRegion()
        self.region_drawn.emit(max(0.0, start), min(self.duration, end))

    def _read_out(self, plot: TimePlot, position: QPointF) -> None:
        if not plot.whole.sceneBoundingRect().contains(position):
            return
        place = plot.view.mapSceneToView(position)
        seconds, frame = place.x(), round(place.x() / _FRAME_SECONDS)
        if not 0 <= seconds <= self.duration:
            self.read_out.emit("")
            return
        parts = [f"{fixed(seconds, 3)} s"]
        if plot in self._mels:
            band = min(99, max(0, round(place.y())))
            parts.append(f"{band_frequency(band):.0f} Hz")
            for name, picture in zip(self.ROWS, self.pictures, strict=True):
                if picture is not None and 0 <= frame < len(picture.mel):
                    relative = 0.0 if name == self.ROWS[2] else self._loudest
                    parts.append(f"{name} {fixed((picture.mel[frame, band] - relative) * DECIBELS_PER_NEPER, 1)} dB")
        else:
            for name, picture in zip(self.ROWS, self.pictures, strict=True):
                sample = round(seconds * picture.rate) if picture is not None else 0
                if picture is not None and sample < len(picture.samples):
                    parts.append(f"{name} {signed(picture.samples[sample], 4)}")
        self.read_out.emit("   ".join(parts))


def _spoken(row: str) -> str:
    return "the difference A minus B" if row == ComparisonPlots.ROWS[2] else f"take {row}"
