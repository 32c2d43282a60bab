"""Attention: diagonal or striped? The check phase's similarity map, and the attention of a chosen layer and step.

The panel knows neither the application's state nor the engine: methods in, signals out. Keys in the attention maps:
arrows move, plus and minus zoom, 0 shows all.
"""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QImage, QKeyEvent, QPainter, QPaintEvent, QPen, QTransform
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.panels.cell_grid import CellGrid
from app.theme import DARK, Colours, set_look, style_plot
from engine.messages import AttentionCaptured

FRAME_SECONDS = 256 / 24000
"""Length of a mel frame of the flow models: a hop of 256 samples at 24 kHz."""
PERCENTILES = (100.0, 99.9, 99.0, 95.0, 90.0)
BRANCH_NAMES = {
    1: ("attention",),
    2: ("conditional", "unconditional"),
    3: ("speaker and text", "text only", "unconditional"),
}
_INVITATION = "Choose a cell on the left, by mouse or with the arrow keys and Space, to see its attention."
_LOG_DECADES = 4
"""A logarithmic scale ends this many decades below its upper end."""
_PAN = 0.1
_ZOOM = 0.8


def similarity_map(colours: Colours) -> pg.ColorMap:
    """Perceptually uniform, safe for colour-blind readers, with low values near the ground."""
    return pg.colormap.get("viridis")


def attention_map(colours: Colours) -> pg.ColorMap:
    """Perceptually uniform, with no attention in the colour of the ground."""
    return pg.colormap.get("magma" if colours == DARK else "CET-L17")


class ColourBar(QWidget):
    """What the colours of a map mean: a gradient with its ends and its middle labelled."""

    def __init__(self, name: str, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._gradient = QImage()
        self._ends: tuple[float, float] | None = None
        self._logarithmic = False
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        height = self.fontMetrics().height()
        return QSize(height * 10, int(height * 1.9))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().height() * 8, self.sizeHint().height())

    def set_map(self, chosen: pg.ColorMap, colours: Colours) -> None:
        """Colour map and theme."""
        self._colours = colours
        row = np.ascontiguousarray(chosen.getLookupTable(nPts=256, alpha=True), np.uint8)
        self._gradient = QImage(row.tobytes(), 256, 1, 1024, QImage.Format.Format_RGBA8888).copy()
        self.update()

    def set_ends(self, ends: tuple[float, float] | None, logarithmic: bool = False) -> None:
        """Values at both ends; ``None`` while nothing is shown."""
        self._ends, self._logarithmic = ends, logarithmic
        self.setAccessibleDescription("" if ends is None else f"From {ends[0]:.3g} to {ends[1]:.3g}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._ends is None:
            return
        painter = QPainter(self)
        height = self.fontMetrics().height()
        bar = QRectF(0.5, 0.5, self.width() - 1, height * 0.7)
        painter.drawImage(bar, self._gradient)
        painter.setPen(QColor(self._colours.border))
        painter.drawRect(bar)
        painter.setPen(QColor(self._colours.muted))
        low, high = self._ends
        middle = float(np.sqrt(low * high)) if self._logarithmic and low > 0 else (low + high) / 2
        box = QRectF(0, bar.bottom() + 1, self.width(), height)
        sides = (Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight)
        texts = [f"{value:.2g}" for value in (low, middle, high)]
        if self.fontMetrics().horizontalAdvance("    ".join(texts)) > self.width():
            texts[1] = ""
        for side, text in zip(sides, texts, strict=True):
            painter.drawText(box, side, text)


class SimilarityGrid(CellGrid):
    """How diagonal the attention of every layer is at every step; marked cells are outlined."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self._similarities = np.full((0, 0), np.nan)
        self._cut: float | None = None
        self._captured: tuple[int, int] | None = None
        self.setAccessibleName("Diagonal similarity: layers down, steps to the right. Space captures the attention.")

    @property
    def ends(self) -> tuple[float, float] | None:
        """Smallest and largest measured similarity; ``None`` when nothing is measured."""
        measured = self._similarities[np.isfinite(self._similarities)]
        return (float(measured.min()), float(measured.max())) if measured.size else None

    def show_similarities(self, similarities: np.ndarray, cut: float | None) -> None:
        """Show (layers, steps) values, NaN where not measured; those from ``cut`` on are marked."""
        self._similarities, self._cut = similarities, cut
        self.set_shape(*similarities.shape)

    def set_layout(self, layers: int, steps: int) -> None:
        """Cells to choose from while nothing is measured."""
        if self._similarities.shape != (layers, steps):
            self.show_similarities(np.full((layers, steps), np.nan), None)

    def show_captured(self, cell: tuple[int, int] | None) -> None:
        """Ring the cell whose attention is shown beside."""
        self._captured = cell
        self.update()

    @property
    def marked(self) -> np.ndarray:
        """(layers, steps) bool: cells at or above the cut."""
        if self._cut is None:
            return np.zeros(self._similarities.shape, bool)
        return self._similarities >= self._cut

    def describe(self, layer: int, step: int) -> str:
        value = self._similarities[layer, step]
        what = f"diagonal similarity {value:.3f}" if np.isfinite(value) else "not measured"
        if self.marked[layer, step]:
            what += ", marked: tried first"
        return f"{self.place_text(layer, step)}: {what}."

    def cell_text(self, layer: int, step: int) -> str:
        value = self._similarities[layer, step]
        return f"{value:.4f}" if np.isfinite(value) else ""

    def empty_text(self) -> str:
        return "Load a model to choose a layer and a step whose attention you want to see."

    def paint_cells(self, painter: QPainter) -> None:
        low, high = self.ends or (0.0, 1.0)
        finite = np.isfinite(self._similarities)
        scaled = (np.where(finite, self._similarities, low) - low) / (high - low or 1.0)
        table = similarity_map(self.colours).getLookupTable(nPts=256)
        rows = table[(scaled * 255).astype(int)]
        unmeasured = QBrush(QColor(self.colours.border), Qt.BrushStyle.Dense7Pattern)
        gap = 1 if self.cell_rectangle(0, 0).width() > 4 else 0
        for layer in range(self.layers):
            for step in range(self.steps):
                cell = self.cell_rectangle(layer, step).adjusted(0, 0, -gap, -gap)
                if finite[layer, step]:
                    painter.fillRect(cell, QColor(*(int(one) for one in rows[layer, step][:3])))
                else:
                    painter.fillRect(cell, QColor(self.colours.base))
                    painter.fillRect(cell, unmeasured)
        for layer, step in np.argwhere(self.marked):
            cell = self.cell_rectangle(int(layer), int(step)).adjusted(0, 0, -gap - 1, -gap - 1)
            # Dark outside, light inside: visible on every colour of the map.
            painter.setPen(QPen(QColor("#000000"), 1))
            painter.drawRect(cell)
            painter.setPen(QPen(QColor("#ffffff"), 1))
            painter.drawRect(cell.adjusted(1, 1, -1, -1))
        if self._captured is not None and self._captured < (self.layers, self.steps):
            painter.setPen(QPen(QColor(self.colours.danger), 3))
            painter.drawRect(self.cell_rectangle(*self._captured).adjusted(-2, -2, 1, 1))


class _AttentionPlot(pg.PlotWidget):
    """The attention map of one branch: queries down, keys to the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMenuEnabled(False)
        self.hideButtons()
        view = self.getViewBox()
        view.invertY(True)
        for side in ("left", "bottom"):
            self.getAxis(side).enableAutoSIPrefix(False)
        self.image = pg.ImageItem(axisOrder="row-major")
        self.addItem(self.image)
        self.boundaries = [pg.InfiniteLine(angle=angle, movable=False) for angle in (0, 90)]
        for line in self.boundaries:
            self.addItem(line, ignoreBounds=True)
            line.hide()
        self.extent = 1.0

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self.setBackground(QColor(colours.base))
        style_plot(self.getPlotItem(), colours)
        self.image.setColorMap(attention_map(colours))
        for line in self.boundaries:
            line.setPen(pg.mkPen(colours.accent, width=1, style=Qt.PenStyle.DashLine))

    def show_all(self) -> None:
        """Zoom out to the whole map."""
        self.getViewBox().setRange(QRectF(0, 0, self.extent, self.extent), padding=0.01)

    def event(self, event: QEvent) -> bool:
        own = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_0)
        if event.type() is QEvent.Type.ShortcutOverride and event.key() in own and not event.modifiers():
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        view = self.getViewBox()
        (left, right), (top, bottom) = view.viewRange()
        moves = {
            Qt.Key.Key_Left: (-1, 0),
            Qt.Key.Key_Right: (1, 0),
            Qt.Key.Key_Up: (0, -1),
            Qt.Key.Key_Down: (0, 1),
        }
        key = Qt.Key(event.key())
        if key in moves:
            across, down = moves[key]
            view.translateBy(x=across * _PAN * (right - left), y=down * _PAN * (bottom - top))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            view.scaleBy((_ZOOM, _ZOOM))
        elif key == Qt.Key.Key_Minus:
            view.scaleBy((1 / _ZOOM, 1 / _ZOOM))
        elif key == Qt.Key.Key_0:
            self.show_all()
        else:
            super().keyPressEvent(event)


class AttentionPanel(QWidget):
    """Left: which layers attend diagonally at which steps. Right: what the attention of one of them looks like."""

    capture_wanted = Signal(int, int)
    """The user chose (layer, step), counted from 0, whose attention shall be captured."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._captured: AttentionCaptured | None = None
        self._names: tuple[str, ...] = ()
        self._frame_seconds = FRAME_SECONDS
        self._cut: float | None = None
        self._plots: list[_AttentionPlot] = []
        self._titles: list[QLabel] = []
        self._build()
        self.set_colours(colours)
        self._say(_INVITATION, "muted")
        self._show_similarity_scale()

    def _build(self) -> None:
        self.grid = SimilarityGrid(self._colours)
        self.grid.cell_activated.connect(self.capture_wanted)
        self.grid.cursor_moved.connect(self._show_cell)
        self.similarity_bar = ColourBar("Colours of the diagonal similarity", self._colours)
        self._cell = QLabel()
        self._cell.setWordWrap(True)
        self._cell.setProperty("look", "muted")
        left = QWidget()
        layout = QVBoxLayout(left)
        layout.setContentsMargins(0, 0, 0, 0)
        title = QLabel("Diagonal similarity of the attention")
        title.setToolTip("⟨A, I⟩ / (‖A‖ √N): 1 when every frame attends to itself only, small for stripes and blur")
        title.setProperty("look", "title")
        for one in (title, self._cell, self.similarity_bar):
            layout.addWidget(one)
        layout.insertWidget(1, self.grid, 1)

        self._status = QLabel()
        self._status.setWordWrap(True)
        self._maps = QHBoxLayout()
        self.levels_box = QComboBox()
        for percentile in PERCENTILES:
            name = "maximum" if percentile == 100 else f"{percentile:g} %"
            self.levels_box.addItem(f"Brightest: {name}", percentile)
        self.levels_box.setCurrentIndex(PERCENTILES.index(99.0))
        self.levels_box.setAccessibleName("Percentile of the attention that is shown brightest")
        self.levels_box.setToolTip("Attention above this percentile is shown in the brightest colour")
        self.levels_box.currentIndexChanged.connect(self._show_maps)
        self.log_box = QCheckBox("Logarithmic")
        self.log_box.setToolTip("Colours follow the logarithm of the attention")
        self.log_box.toggled.connect(self._show_maps)
        self.seconds_box = QCheckBox("Seconds")
        self.seconds_box.setToolTip("Axes in seconds instead of frames")
        self.seconds_box.toggled.connect(self._change_axes)
        self.attention_bar = ColourBar("Colours of the attention", self._colours)
        controls = QHBoxLayout()
        for one in (self.levels_box, self.log_box, self.seconds_box):
            controls.addWidget(one)
        controls.addWidget(self.attention_bar, 1)
        right = QWidget()
        layout = QVBoxLayout(right)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._status)
        layout.addLayout(self._maps, 1)
        layout.addStretch(0)
        layout.addLayout(controls)

        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(self.fontMetrics().height())
        for one, stretch in ((left, 2), (right, 3)):
            self._splitter.addWidget(one)
            self._splitter.setStretchFactor(self._splitter.count() - 1, stretch)
        outer = QVBoxLayout(self)
        outer.addWidget(self._splitter)
        em = self.fontMetrics().height()
        self._splitter.setSizes([24 * em, 40 * em])
        self._require_plots(0)
        self.setFocusProxy(self.grid)

    # --- Methods in --------------------------------------------------------------------------------------------------
    def set_layout(self, layers: int, steps: int) -> None:
        """How many layers and steps there are to choose from, before anything is measured. Forgets similarities of
        another shape."""
        self.grid.set_layout(layers, steps)
        self._show_similarity_scale()

    def set_similarities(self, similarities: np.ndarray | None, cut: float | None = None) -> None:
        """Show the check phase's (layers, steps) similarities, NaN where not yet measured. Cells from ``cut`` on are
        marked; without a cut (while the check runs) none are."""
        self._cut = cut
        self.grid.show_similarities(np.full((0, 0), np.nan) if similarities is None else similarities, cut)
        self._show_similarity_scale()
        self._show_titles()

    def set_times(self, times: tuple[float, ...]) -> None:
        """The flow time of each step, to be shown on the axis."""
        self.grid.set_times(times)

    def set_frame_seconds(self, seconds: float) -> None:
        """Length of a frame of the model at hand."""
        self._frame_seconds = seconds
        self._change_axes()

    def begin_capture(self, layer: int, step: int) -> None:
        """A capture runs."""
        self._say(f"Capturing the attention of layer {layer + 1} at step {step + 1}…", "title")

    def show_capture(self, captured: AttentionCaptured, names: tuple[str, ...] = ()) -> None:
        """Show the attention of one layer at one step; ``names`` of the branches, when not the usual ones."""
        same_shape = self._captured is not None and self._captured.frames == captured.frames
        self._captured = captured
        branches = len(captured.maps)
        self._names = names or BRANCH_NAMES.get(branches, tuple(f"branch {one + 1}" for one in range(branches)))
        same_shape = same_shape and sum(not plot.isHidden() for plot in self._plots) == branches
        self._require_plots(branches)
        self.grid.show_captured((captured.layer, captured.step))
        pooled = captured.maps.shape[-1]
        text = f"{self.grid.place_text(captured.layer, captured.step)}: {captured.frames} frames"
        if pooled != captured.frames:
            text += f", drawn as {pooled} × {pooled}"
        self._say(f"{text}; the dashed lines end the prompt.", "title")
        self._show_titles()
        self._show_maps()
        self._change_axes(keep=same_shape)

    def show_failure(self, sentence: str) -> None:
        """The capture failed, or was cancelled; the last map stays."""
        self._say(sentence, "warning")

    def clear_capture(self) -> None:
        """Forget the captured attention, for example because another model was loaded."""
        self._captured = None
        self.grid.show_captured(None)
        self.attention_bar.set_ends(None)
        self._require_plots(0)
        self._say(_INVITATION, "muted")

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.grid.set_colours(colours)
        self.similarity_bar.set_map(similarity_map(colours), colours)
        self.attention_bar.set_map(attention_map(colours), colours)
        for plot in self._plots:
            plot.set_colours(colours)
        self._label_axes()

    @property
    def status(self) -> str:
        """The sentence above the maps."""
        return self._status.text()

    # --- Showing -----------------------------------------------------------------------------------------------------
    def _say(self, sentence: str, look: str) -> None:
        self._status.setText(sentence)
        self._status.setAccessibleName(sentence)
        set_look(self._status, look)

    def _show_cell(self, layer: int, step: int) -> None:
        self._cell.setText(self.grid.describe(layer, step) if self.grid.layers else "")

    def _show_similarity_scale(self) -> None:
        self.similarity_bar.set_ends(self.grid.ends)
        self._show_cell(*self.grid.cursor_cell)

    def _require_plots(self, count: int) -> None:
        while len(self._plots) < count:
            plot, title = _AttentionPlot(), QLabel()
            title.setWordWrap(True)
            title.setAlignment(Qt.AlignmentFlag.AlignCenter)
            column = QVBoxLayout()
            column.addWidget(title)
            column.addWidget(plot, 1)
            self._maps.addLayout(column, 1)
            if self._plots:
                plot.setXLink(self._plots[0])
                plot.setYLink(self._plots[0])
            plot.set_colours(self._colours)
            plot.setAccessibleName(f"Attention map {len(self._plots) + 1}")
            self._plots.append(plot)
            self._titles.append(title)
        for index, (plot, title) in enumerate(zip(self._plots, self._titles, strict=True)):
            plot.setVisible(index < count)
            title.setVisible(index < count)
        for one in (self.levels_box, self.log_box, self.seconds_box):
            one.setEnabled(count > 0)
        self._label_axes()

    def _show_titles(self) -> None:
        if self._captured is None:
            return
        for index, name in enumerate(self._names):
            text = f"<b>{name}</b>"
            said = f"{name} branch"
            if index < len(self._captured.similarities):
                value = self._captured.similarities[index]
                text += f"<br>similarity {value:.3f}"
                said += f", diagonal similarity {value:.3f}"
                if self._cut is not None:
                    kind = "diagonal" if value >= self._cut else "striped or spread"
                    text += f": {kind}"
                    said += f", {kind} by the cut of the check phase, {self._cut:.3f}"
            self._titles[index].setText(text)
            self._plots[index].setAccessibleName(f"Attention map of the {name} branch")
            self._plots[index].setAccessibleDescription(
                f"{said}. Keys to the right, queries down. Arrows move, plus and minus zoom, 0 shows all."
            )

    def _show_maps(self) -> None:
        if self._captured is None:
            return
        maps = self._captured.maps
        high = float(np.percentile(maps, self.levels_box.currentData())) or float(maps.max()) or 1.0
        logarithmic = self.log_box.isChecked()
        low = high * 10.0**-_LOG_DECADES if logarithmic else 0.0
        levels = (np.log10(low), np.log10(high)) if logarithmic else (low, high)
        for plot, one in zip(self._plots, maps, strict=False):
            shown = np.log10(np.maximum(one, low)) if logarithmic else one
            plot.image.setImage(np.ascontiguousarray(shown, np.float32), autoLevels=False, levels=levels)
        self.attention_bar.set_ends((low, high), logarithmic)
        self._place_maps()

    def _change_axes(self, _checked: bool = False, keep: bool = False) -> None:
        self._label_axes()
        if self._captured is not None:
            self._place_maps()
            if not keep:
                self._plots[0].show_all()

    def _label_axes(self) -> None:
        unit = "s" if self.seconds_box.isChecked() else "frame"
        for index, plot in enumerate(self._plots):
            plot.setLabel("bottom", f"Key, {unit}", color=self._colours.muted)
            plot.setLabel("left", f"Query, {unit}" if index == 0 else "", color=self._colours.muted)

    def _place_maps(self) -> None:
        """Pooled or not, a map covers all frames of the speech."""
        captured = self._captured
        scale = self._frame_seconds if self.seconds_box.isChecked() else 1.0
        extent = captured.frames * scale
        for plot, one in zip(self._plots, captured.maps, strict=False):
            plot.extent = extent
            plot.image.setTransform(QTransform.fromScale(extent / one.shape[1], extent / one.shape[0]))
            for line in plot.boundaries:
                line.setValue(captured.prompt_frames * scale)
                line.setVisible(0 < captured.prompt_frames < captured.frames)
