"""A figure on the screen: its panels, and a mark that the mouse and the arrow keys move from point to point."""

from __future__ import annotations

import math

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QPainter
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.plotting import reading
from app.plotting.menus import adopt_menus_of
from app.plotting.plots import TITLE_POINTS, axes_for, colour_scale, draw, ends_of, legend_text
from app.plotting.scaled_view import ScaledView
from app.shell.theme import Colours
from engine.views.figure import Bars, Figure, HeatMap, Lines, Panel

_MOVES = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


_LEAST_PANEL = {HeatMap: (150.0, 105.0), Lines: (290.0, 220.0), Bars: (290.0, 190.0)}
"""Width and height of a panel's plot, in pixels, from which on its marks and numbers can be distinguished."""
_AXIS_WIDTH, _AXIS_HEIGHT, _TITLE_HEIGHT, _SCALE_WIDTH, _LINE_HEIGHT = 45.0, 20.0, 28.0, 75.0, 24.0


class _Mark(pg.ScatterPlotItem):
    """Where the figure is read."""


class FigureCanvas(QWidget):
    """Arrow keys go from point to point, Page Up and Page Down from panel to panel. As a separate window it says in
    its title what stands there, and Esc closes it.

    Every figure gets a pyqtgraph view of its own, which is kept and hidden when another takes its place. Plots that are
    taken out are left to Python's collector, which runs on the engine's thread too; and those that Qt deletes leave
    wrappers of their menus' actions behind, which end other actions of the window when they are collected.
    """

    read = Signal(str)
    """What stands where the mark is, in words."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._figure: Figure | None = None
        self._words = "", ""
        self._plots: list[pg.PlotItem] = []
        self._mark: pg.ScatterPlotItem | None = None
        self._at = (0, 0, 0)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Figure")
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._drawn: dict[tuple[int, Colours], tuple[Figure | None, ScaledView, list[pg.PlotItem]]] = {}
        self.view = self._fresh_view()

    @property
    def figure(self) -> Figure | None:
        """What is shown."""
        return self._figure

    @property
    def plots(self) -> tuple[pg.PlotItem, ...]:
        """One for each panel."""
        return tuple(self._plots)

    def show_figure(self, figure: Figure | None, title: str = "", foot: str = "") -> None:
        """Show ``figure``, or nothing; between ``title`` and ``foot``, if it has to stand by itself."""
        self._figure, self._at, self._words = figure, (0, 0, 0), (title, foot)
        self._redraw()

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        if colours != self._colours:
            self._colours = colours
            self._redraw()

    def paint(self, painter: QPainter) -> None:
        """Draw all of it on paper of the canvas's size."""
        self.view.ci.layout.activate()
        self.view.render(painter, QRectF(self.rect()), self.view.rect())

    # --- Drawing -----------------------------------------------------------------------------------------------------
    def _fresh_view(self) -> ScaledView:
        view = ScaledView()
        view.setBackground(QColor(self._colours.base))
        # The canvas has the keys.
        view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        view.scene().sigMouseMoved.connect(self._hover)
        self._layout.addWidget(view)
        return view

    def _redraw(self) -> None:
        figure, (title, foot) = self._figure, self._words
        if self._mark is not None:
            self._mark.setData([], [])
        self._mark, self._plots = None, []
        self.view.hide()
        kept = self._drawn.get((id(figure), self._colours))
        if kept is not None:
            # Before it was put aside, it was drawn in these colours.
            _, self.view, self._plots = kept
            self.view.show()
            self.setAccessibleDescription(figure.caption if figure is not None else "")
            return
        self.view = self._fresh_view()
        self._drawn[id(figure), self._colours] = figure, self.view, self._plots
        if figure is None:
            return
        self.setAccessibleDescription(figure.caption)
        across = min(figure.across, len(figure.panels))
        ends = ends_of(figure.panels)
        shared = len(ends) == 1 and all(isinstance(panel, HeatMap) for panel in figure.panels)
        first = 0
        if title:
            self.view.addLabel(title, row=0, col=0, colspan=across + shared, justify="left", color=self._colours.text)
            first = 1
        for index, panel in enumerate(figure.panels):
            plot = self.view.addPlot(row=first + index // across, col=index % across, axisItems=axes_for(panel))
            bounds = ends.get(panel.colour.label, (0.0, 1.0)) if isinstance(panel, HeatMap) else (0.0, 1.0)
            draw(plot, panel, self._colours, bounds)
            if isinstance(panel, HeatMap) and not panel.categories and not shared:
                self._add_scale(plot, panel, bounds)
            self._plots.append(plot)
        self._share_labels(across)
        for column in range(across):
            # Labels of different widths must not make panels of different widths.
            self.view.ci.layout.setColumnPreferredWidth(column, 10)
            self.view.ci.layout.setColumnStretchFactor(column, 1)
        last = first + -(-len(figure.panels) // across)
        if shared:
            name, bounds = next(iter(ends.items()))
            self.view.addItem(colour_scale(name, bounds, self._colours), row=first, col=across, rowspan=last - first)
        kinds = [panel.categories for panel in figure.panels if isinstance(panel, HeatMap) and panel.categories]
        if kinds:
            self.view.addLabel(legend_text(kinds[0], self._colours), row=last, col=0, colspan=across)
            last += 1
        if foot:
            self.view.addLabel(
                foot, row=last, col=0, colspan=across + shared, justify="left", color=self._colours.muted
            )
        if not title:
            # On paper there is room for everything.
            self.view.set_needed(self._needed(across, shared, bool(kinds)))
        # See there: whatever is drawn later has menus too.
        adopt_menus_of(self.view)

    def _needed(self, across: int, shared: bool, legend: bool) -> QSizeF:
        """The size from which on the figure can be drawn without cutting anything off."""
        panels, font = self._figure.panels, self.font()
        font.setPointSizeF(TITLE_POINTS)
        letters = QFontMetricsF(font)
        scaled = not shared and any(isinstance(one, HeatMap) and not one.categories for one in panels)
        widths = [max(_LEAST_PANEL[type(one)][0], letters.horizontalAdvance(one.title)) for one in panels]
        heights = [_LEAST_PANEL[type(one)][1] + _AXIS_HEIGHT + _TITLE_HEIGHT for one in panels]
        rows = -(-len(panels) // across)
        width = across * (max(widths) + _AXIS_WIDTH + scaled * _SCALE_WIDTH) + shared * _SCALE_WIDTH
        return QSizeF(width, rows * max(heights) + _AXIS_HEIGHT + legend * _LINE_HEIGHT)

    def _share_labels(self, across: int) -> None:
        """What panels beneath or beside each other have in common is written once."""
        panels = self._figure.panels
        if len({(type(panel), panel.x, panel.y) for panel in panels}) > 1:
            return
        for index, plot in enumerate(self._plots):
            if index + across < len(panels):
                plot.getAxis("bottom").showLabel(False)
            if index % across:
                plot.getAxis("left").showLabel(False)

    def _add_scale(self, plot: pg.PlotItem, panel: HeatMap, ends: tuple[float, float]) -> None:
        bar = colour_scale(panel.colour.label, ends, self._colours)
        # The place that pyqtgraph itself gives a bar beside a plot.
        plot.layout.addItem(bar, 2, 5)
        plot.layout.setColumnFixedWidth(4, 5)

    # --- The mark ----------------------------------------------------------------------------------------------------
    def go_to(self, panel: int, row: int, column: int) -> None:
        """Put the mark on a point, or the nearest one that there is, and say what stands there."""
        if self._figure is None:
            return
        panel = min(max(panel, 0), len(self._figure.panels) - 1)
        shown = self._figure.panels[panel]
        row, column = reading.within(shown, row, column)
        self._at = panel, row, column
        self._show_mark(shown)
        words = reading.words(shown, row, column)
        if self.isWindow():
            self.setWindowTitle(f"{self._figure.title} of {self._figure.provenance.model}: {words}")
            self.setAccessibleDescription(words)
        self.read.emit(words)

    def _show_mark(self, panel: Panel) -> None:
        if self._mark is not None:
            self._mark.setData([], [])
        plot = self._plots[self._at[0]]
        self._mark = next((one for one in plot.items if isinstance(one, _Mark)), None)
        if self._mark is None:
            self._mark = _Mark(size=13, pen=pg.mkPen(self._colours.danger, width=2), brush=None, pxMode=True)
            plot.addItem(self._mark, ignoreBounds=True)
        x, y = reading.position(panel, *self._at[1:])
        if math.isfinite(x) and math.isfinite(y):
            self._mark.setData([x], [y], symbol="s" if isinstance(panel, HeatMap) else "o")

    def _hover(self, place: QPointF) -> None:
        if self._figure is None:
            return
        for index, plot in enumerate(self._plots):
            view = plot.getViewBox()
            if view.sceneBoundingRect().contains(place):
                point = view.mapSceneToView(place)
                (left, right), (top, bottom) = view.viewRange()
                panel = self._figure.panels[index]
                found = reading.nearest(panel, point.x(), point.y(), right - left, bottom - top)
                if (index, *found) != self._at or self._mark is None:
                    self.go_to(index, *found)
                return

    def event(self, event: QEvent) -> bool:
        own = (*_MOVES, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
        if event.type() is QEvent.Type.ShortcutOverride and event.key() in own and not event.modifiers():
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        panel, row, column = self._at
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape and self.isWindow():
            self.close()
        elif self._figure is None:
            super().keyPressEvent(event)
        elif self._mark is None and key in _MOVES:
            self.go_to(panel, row, column)
        elif key in _MOVES:
            down, right = _MOVES[key]
            self.go_to(panel, row + down, column + right)
        elif key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self.go_to(panel + (1 if key == Qt.Key.Key_PageDown else -1), row, column)
        else:
            super().keyPressEvent(event)
