"""Attention: the check phase's map of diagonal similarity, and the attention of a chosen layer and step."""

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QMarginsF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QTransform
from PySide6.QtWidgets import QCheckBox, QLabel, QSizePolicy, QWidget

from paretone.figures.scatter import Dimension, Scale
from paretone.models.base import AttentionCapture
from paretone_app.numbers import fixed, general, percent
from paretone_app.plotting.cell_grid import CellGrid
from paretone_app.plotting.chart import Wholes, ZoomChart
from paretone_app.plotting.curves import magnitude_map
from paretone_app.plotting.frame import Shape, Shapes, pen
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import set_look
from paretone_app.shell.workspaces import recolour
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout
from paretone_app.widgets.screen_readers import PICTURE


class ColourBar(QWidget):
    screen_role = PICTURE

    def __init__(self, name: str, colours: Colours) -> None:
        super().__init__()
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
        self._colours = colours
        row = np.ascontiguousarray(chosen.getLookupTable(nPts=256, alpha=True), np.uint8)
        self._gradient = QImage(row.tobytes(), 256, 1, 1024, QImage.Format.Format_RGBA8888).copy()
        self.update()

    def set_ends(self, ends: tuple[float, float] | None, logarithmic: bool = False) -> None:
        """Values at both ends; ``None`` while nothing is shown."""
        self._ends, self._logarithmic = ends, logarithmic
        self.setAccessibleDescription("" if ends is None else f"From {general(ends[0], 3)} to {general(ends[1], 3)}")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._ends is None:
            return
        with QPainter(self) as painter:
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
            texts = [general(value, 2) for value in (low, middle, high)]
            if self.fontMetrics().horizontalAdvance("    ".join(texts)) > self.width():
                texts[1] = ""
            for side, text in zip(sides, texts, strict=True):
                painter.drawText(box, side, text)


_SIMILARITY_MAP = "viridis"
"""Perceptually uniform and safe for colour-blind readers."""


class SimilarityGrid(CellGrid):
    """Diagonal similarity of the attention per layer and step; marked cells are outlined."""

    def __init__(self, colours: Colours) -> None:
        super().__init__(colours)
        self._similarities = np.full((0, 0), np.nan)
        self._cut: float | None = None
        self.captured: tuple[int, int] | None = None
        self.setAccessibleName("Diagonal similarity: layers down, steps to the right. Space captures the attention.")

    @property
    def ends(self) -> tuple[float, float] | None:
        """Smallest and largest measured similarity; ``None`` when nothing is measured."""
        measured = self._similarities[np.isfinite(self._similarities)]
        return (float(measured.min()), float(measured.max())) if measured.size else None

    def show_similarities(self, similarities: np.ndarray, cut: float | None) -> None:
        """Show (layers, steps) values, NaN where not measured; values ≥ ``cut`` are marked."""
        self._similarities, self._cut = similarities, cut
        self.set_shape(*similarities.shape)

    def show_captured(self, cell: tuple[int, int] | None) -> None:
        self.captured = cell
        self.update()

    @property
    def marked(self) -> np.ndarray:
        """(layers, steps) bool: cells at or above the cut."""
        return self._similarities >= (np.inf if self._cut is None else self._cut)

    def describe(self, layer: int, step: int) -> str:
        value = self._similarities[layer, step]
        what = f"diagonal similarity {fixed(value, 3)}" if np.isfinite(value) else "not measured"
        marked = ", marked: tried first" if self.marked[layer, step] else ""
        return f"{self.place_text(layer, step)}: {what}{marked}."

    def cell_text(self, layer: int, step: int) -> str:
        value = self._similarities[layer, step]
        return fixed(value, 3) if np.isfinite(value) else ""

    def empty_text(self) -> str:
        return "Load a model, then select a layer and a step to see its attention."

    def paint_cells(self, painter: QPainter) -> None:
        low, high = self.ends or (0.0, 1.0)
        finite = np.isfinite(self._similarities)
        scaled = (np.where(finite, self._similarities, low) - low) / (high - low or 1.0)
        rows = pg.colormap.get(_SIMILARITY_MAP).getLookupTable(nPts=256)[(scaled * 255).astype(int)]
        gap = 1 if self.cell_rectangle(0, 0).width() > 4 else 0
        for layer in range(self.layers):
            for step in range(self.steps):
                cell = self.cell_rectangle(layer, step).adjusted(0, 0, -gap, -gap)
                known = QColor(*(int(one) for one in rows[layer, step][:3]))
                painter.fillRect(cell, known if finite[layer, step] else QColor(self.colours.base))
        for layer, step in np.argwhere(self.marked).tolist():
            cell = self.cell_rectangle(layer, step).adjusted(0, 0, -gap - 1, -gap - 1)
            # Dark outside, light inside: visible on every colour of the map.
            for ink, outline in (("#000000", cell), ("#ffffff", cell.adjusted(1, 1, -1, -1))):
                painter.setPen(QPen(QColor(ink), 1))
                painter.drawRect(outline)
        if self.captured is not None and self.has(self.captured):
            painter.setPen(QPen(QColor(self.colours.danger), 3))
            painter.drawRect(self.cell_rectangle(*self.captured).adjusted(-2, -2, 1, 1))


_MOVES = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, 1), Qt.Key.Key_Down: (0, -1)}


class AttentionPlot(ZoomChart):
    """The attention map of one branch: queries down, keys to the right."""

    own_keys = tuple(_MOVES)
    ideal, least = (16.0, 16.0), (8.0, 8.0)

    def __init__(self, colours: Colours) -> None:
        super().__init__("Attention map", colours)
        self.image = pg.ImageItem(axisOrder="row-major")
        self.frame.view.addItem(self.image, ignoreBounds=True)
        self.frame.margins = QMarginsF(0.0, 0.4, 0.8, 2.7)
        self.boundary_lines = Shapes(self.frame, 1)
        self._weights = np.zeros((1, 1))
        self._unit = ""
        self.extent = 1.0
        self.boundary: float | None = None
        """End of the prompt, on both axes."""
        self.summary = ""
        self.show_again()

    def show_map(self, weights: np.ndarray, levels: tuple[float, float], logarithmic: bool) -> None:
        """Show (queries, keys) ``weights``, coloured between ``levels`` (decadic logarithms if ``logarithmic``)."""
        self._weights = weights
        shown = np.log10(np.maximum(weights, 10.0 ** levels[0])) if logarithmic else weights
        self.image.setImage(np.ascontiguousarray(shown, np.float32), autoLevels=False, levels=levels)
        self._place()

    def show_axes(self, extent: float, boundary: float | None, unit: str, titled: bool) -> None:
        """Set the map's extent on both axes, the prompt's end, and the unit; ``titled``: give the y axis a title."""
        self.extent, self.boundary, self._unit = extent, boundary, unit
        self.frame.bottom.set_title(Dimension(f"Key, {unit}", "Key"))
        self.frame.left.set_title(Dimension(f"Query, {unit}", "Query") if titled else Dimension(""))
        self._place()

    def _place(self) -> None:
        """Scale the map, pooled or not, to cover all frames of the speech."""
        rows, columns = self._weights.shape
        self.image.setTransform(QTransform.fromScale(self.extent / columns, self.extent / rows))
        self.draw_section()

    @property
    def wholes(self) -> Wholes:
        return Scale(0.0, self.extent), Scale(self.extent, 0.0)

    def draw_section(self) -> None:
        across, up = (one or whole for one, whole in zip(self.sections, self.wholes, strict=True))
        ink = pen(self.colours.accent, 1.0, Qt.PenStyle.DashLine)
        ends, at = (0.0, self.extent), self.boundary
        self.boundary_lines.shapes = [] if at is None else [Shape((at, at), ends, ink), Shape(ends, (at, at), ink)]
        self.frame.set_scales(across, up)

    def show_again(self) -> None:
        self.image.setColorMap(magnitude_map(self.colours))
        self.draw_section()

    def cursor_text(self) -> str:
        return self.summary

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        area = self.frame.area
        if not area.contains(place):
            return None
        key = self.frame.across.at((place.x() - area.left()) / area.width())
        query = self.frame.up.at((area.bottom() - place.y()) / area.height())
        rows, columns = self._weights.shape
        row, column = int(query / self.extent * rows), int(key / self.extent * columns)
        weight = self._weights[min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)]
        words = f"Query {general(query, 3)}, key {general(key, 3)} ({self._unit}): {general(weight, 3)}"
        return words, QRectF(self.rect())

    def as_text(self) -> str:
        rows, columns = self._weights.shape
        down, right = ((np.arange(count) + 0.5) * self.extent / count for count in (rows, columns))
        lines = [[f"query \\ key, {self._unit}", *(f"{one:.4g}" for one in right.tolist())]]
        lines += [[f"{one:.4g}" for one in row] for row in np.c_[down, self._weights].tolist()]
        return "\n".join("\t".join(line) for line in lines)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self.begins_move(event, anywhere=True):
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self.goes_on_moving(event):
            self.show_shape(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not self.ends_move(event):
            super().mouseReleaseEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.show_everything()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key in _MOVES and not event.modifiers() & ~self.own_modifiers:
            self.move_section(*(0.1 * one for one in _MOVES[key]))
        else:
            super().keyPressEvent(event)


PERCENTILES = (100.0, 99.9, 99.0, 95.0, 90.0)
BRANCH_NAMES = {
    1: ("attention",),
    2: ("conditional", "unconditional"),
    3: ("speaker and text", "text only", "unconditional"),
}
_INVITATION = "Select a cell on the left, by mouse or by arrow keys and Space, to see its attention."


class AttentionPanel(QWidget):
    """Left: diagonal similarity per layer and step. Right: attention maps of the chosen layer and step."""

    def __init__(self, colours: Colours, capture: Action) -> None:
        """``capture`` captures the cell at the grid's cursor."""
        super().__init__()
        self._capture = capture
        capture.explain(lambda: "" if self.grid.layers else "Load a flow model to see attention.")
        self._colours = colours
        self.captured: AttentionCapture | None = None
        self._names: tuple[str, ...] = ()
        self._cut: float | None = None
        self.plots: list[AttentionPlot] = []
        self.titles: list[QLabel] = []
        self._build()
        recolour(self, colours)
        self.say(_INVITATION, "muted")
        self._show_similarity_scale()

    def _build(self) -> None:
        self.grid = SimilarityGrid(self._colours)
        self.grid.cursor_moved.connect(self._show_cell)
        self.similarity_bar = ColourBar("Colours of the diagonal similarity", self._colours)
        self._cell = build.words("muted")
        tip = "⟨A, I⟩ / (‖A‖ √N): 1 if every frame attends only to itself, small for stripes and blur"
        title = build.label("Diagonal similarity of the attention", "title", tip=tip)
        left = build.column(title, (self.grid, 1), self._cell, self.similarity_bar)

        self.status = build.words()
        maps = QWidget()
        self._maps = build.fill(HBoxLayout(maps), ())
        levels = (
            (f"Brightest: {'maximum' if one == 100 else percent(one / 100, places=int(one % 1 > 0))}", one)
            for one in PERCENTILES
        )
        tip = "Attention above this percentile has the brightest colour"
        self.levels_box = build.combo("Percentile of the brightest colour", levels, tip)
        self.levels_box.setCurrentIndex(PERCENTILES.index(99.0))
        self.levels_box.currentIndexChanged.connect(self._show_maps)
        self.log_box = build.named(QCheckBox("Logarithmic"), tip="Logarithmic colour scale")
        self.log_box.toggled.connect(self._show_maps)
        self.seconds_box = build.named(QCheckBox("Seconds"), tip="Axes in seconds instead of frames")
        self.seconds_box.toggled.connect(self._change_axes)
        self.attention_bar = ColourBar("Colours of the attention", self._colours)
        controls = build.row(self.levels_box, self.log_box, self.seconds_box, (self.attention_bar, 1))
        self.pages = Invited(build.column((maps, 1), controls), _INVITATION)
        self.pages.empty.add(ActionButton(self._capture))
        right = build.column(self.status, (self.pages, 1))
        em = self.fontMetrics().height()
        outer = VBoxLayout(self)
        outer.addWidget(build.splitter(Qt.Orientation.Horizontal, [(left, 2), (right, 3)], [24 * em, 40 * em], em))
        self._require_plots(0)
        self.setFocusProxy(self.grid)

    def set_layout(self, layers: int, steps: int) -> None:
        """Set the number of layers and steps, before anything is measured. Forgets similarities of another shape."""
        if (self.grid.layers, self.grid.steps) != (layers, steps):
            self.grid.show_similarities(np.full((layers, steps), np.nan), None)
        self._show_similarity_scale()

    def set_similarities(self, similarities: np.ndarray | None, cut: float | None = None) -> None:
        """Show the check phase's (layers, steps) similarities, NaN where not yet measured. Cells from ``cut`` on are
        marked; without a cut (while the check runs) none are."""
        self._cut = cut
        self.grid.show_similarities(np.full((0, 0), np.nan) if similarities is None else similarities, cut)
        self._show_similarity_scale()
        self._show_titles()

    def show_capture(self, captured: AttentionCapture) -> None:
        before, self.captured, branches = self.captured, captured, len(captured.maps)
        shape = branches, captured.frames, captured.frame_seconds
        same = before is not None and (len(before.maps), before.frames, before.frame_seconds) == shape
        self._names = BRANCH_NAMES.get(branches, tuple(f"branch {one + 1}" for one in range(branches)))
        self._require_plots(branches)
        self.grid.show_captured((captured.layer, captured.step))
        pooled = captured.maps.shape[-1]
        text = f"{self.grid.place_text(captured.layer, captured.step)}: {captured.frames} frames"
        if pooled != captured.frames:
            text += f", drawn as {pooled} × {pooled}"
        self.say(f"{text}; the dashed lines end the prompt.", "title")
        self._show_titles()
        self._show_maps()
        if not same:
            self.plots[0].show_everything()

    def clear_capture(self) -> None:
        """Forget the captured attention, as after loading another model."""
        self.captured = None
        self.grid.show_captured(None)
        self.attention_bar.set_ends(None)
        self._require_plots(0)
        self.say(_INVITATION, "muted")

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.similarity_bar.set_map(pg.colormap.get(_SIMILARITY_MAP), colours)
        self.attention_bar.set_map(magnitude_map(colours), colours)

    def say(self, sentence: str, look: str = "warning") -> None:
        """Show the state of the capture, or why it failed; the last map stays."""
        self.status.setText(sentence)
        self.status.setVisible(not self.pages.is_empty)
        self.pages.invite(sentence)
        self.status.setAccessibleName(sentence)
        set_look(self.status, look)

    def _show_cell(self, layer: int, step: int) -> None:
        self._capture.refresh()
        self._cell.setText(self.grid.describe(layer, step) if self.grid.layers else "")

    def _show_similarity_scale(self) -> None:
        self.similarity_bar.set_ends(self.grid.ends)
        self._show_cell(*self.grid.cursor_cell)

    def _require_plots(self, count: int) -> None:
        while len(self.plots) < count:
            plot, title = AttentionPlot(self._colours), QLabel()
            title.setWordWrap(True)
            title.setAlignment(Qt.AlignmentFlag.AlignCenter)
            self._maps.addLayout(build.fill(VBoxLayout(), [title, (plot, 1)]), 1)
            plot.section_changed.connect(lambda plot=plot: self._follow_section(plot))
            plot.setAccessibleName(f"Attention map {len(self.plots) + 1}")
            self.plots.append(plot)
            self.titles.append(title)
        for index, (plot, title) in enumerate(zip(self.plots, self.titles, strict=True)):
            plot.setVisible(index < count)
            title.setVisible(index < count)
        for one in (self.levels_box, self.log_box, self.seconds_box):
            one.setEnabled(count > 0)
        self.pages.show_content(count > 0)

    def _show_titles(self) -> None:
        if self.captured is None:
            return
        for index, (name, plot) in enumerate(zip(self._names, self.plots, strict=False)):
            text, said = f"<b>{name}</b>", f"{name} branch"
            if index < len(self.captured.similarities):
                value = self.captured.similarities[index]
                text += f"<br>similarity {fixed(value, 3)}"
                said += f", diagonal similarity {fixed(value, 3)}"
                if self._cut is not None:
                    kind = "diagonal" if value >= self._cut else "striped or spread"
                    text += f": {kind}"
                    said += f", {kind} by the cut of the check phase, {fixed(self._cut, 3)}"
            self.titles[index].setText(text)
            plot.setAccessibleName(f"Attention map of the {name} branch")
            plot.summary = f"{said}. Keys to the right, queries down. Arrows move, plus and minus zoom, 0 shows all."
            plot.refresh()

    def _show_maps(self) -> None:
        if (captured := self.captured) is None:
            return
        maps = captured.maps
        high = float(np.percentile(maps, self.levels_box.currentData())) or float(maps.max()) or 1.0
        logarithmic = self.log_box.isChecked()
        low = high * 10.0**-4 if logarithmic else 0.0
        levels = (np.log10(low), np.log10(high)) if logarithmic else (low, high)
        scale, unit = (captured.frame_seconds, "s") if self.seconds_box.isChecked() else (1.0, "frame")
        boundary = captured.prompt_frames * scale if 0 < captured.prompt_frames < captured.frames else None
        for index, (plot, one) in enumerate(zip(self.plots, maps, strict=False)):
            plot.show_map(one, levels, logarithmic)
            plot.show_axes(captured.frames * scale, boundary, unit, titled=index == 0)
        self.attention_bar.set_ends((low, high), logarithmic)

    def _change_axes(self) -> None:
        self._show_maps()
        if self.captured is not None:
            self.plots[0].show_everything()

    def _follow_section(self, changed: AttentionPlot) -> None:
        for plot in self.plots:
            plot.show_sections(changed.sections)
