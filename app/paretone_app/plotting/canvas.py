"""A figure on the screen, with a mark moved by the mouse and the arrow keys from point to point."""

import math

from PySide6.QtCore import QMarginsF, QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QGraphicsTextItem, QWidget

from paretone.figures.scatter import Dimension
from paretone.views.figure import COLUMNS, Bars, Figure, HeatMap, Lines, Panel
from paretone_app.plotting import plots
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.frame import Frame, pen
from paretone_app.plotting.plots import ColourScale, PanelLayers, ends_of, legend_text
from paretone_app.shell.colours import Colours

_MOVES = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}
_PAGES = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}
_LEAST_PANEL = {HeatMap: (150.0, 105.0), Lines: (290.0, 220.0), Bars: (290.0, 190.0)}
"""Least width and height of a panel's plot, in pixels, for legible marks and numbers."""
_AXIS_WIDTH, _AXIS_HEIGHT, _TITLE_HEIGHT, _LINE_HEIGHT = 45.0, 20.0, 28.0, 24.0
_TITLE, _RIGHT, _TITLED, _BARE = 1.9, 1.2, 2.8, 1.5
"""Margins around a view: above, right, below with and without the axis's title; in font heights."""
_SCALE = 6.2
"""Width of a colour scale with numbers and title, in font heights."""
_RING = 6.5


class FigureCanvas(Chart):
    """Arrow keys move from point to point, Page Up and Page Down from panel to panel; Esc closes a separate window.
    Frames are reused for the next figure and never removed: items removed from a scene are left to Python's collector,
    which also runs on the engine's thread."""

    read = Signal(str)

    own_keys = (*_MOVES, *_PAGES)
    saved_alone = False

    def __init__(self, colours: Colours, parent: QWidget | None = None, on_paper: bool = False) -> None:
        super().__init__("Figure", colours, parent, on_paper)
        self.figure: Figure | None = None
        self._panels = [PanelLayers(self.frame)]
        self._scales: list[ColourScale] = []
        self._kinds = QGraphicsTextItem()
        self.view.addItem(self._kinds)
        self._marked = False
        self._at = (0, 0, 0)
        self.show_again()

    @property
    def plots(self) -> tuple[Frame, ...]:
        return tuple(one.frame for one in self._panels[: len(self._shown)])

    @property
    def _shown(self) -> tuple[Panel, ...]:
        return () if self.figure is None else self.figure.panels

    def show_figure(self, figure: Figure | None) -> None:
        self.figure, self._at, self._marked = figure, (0, 0, 0), False
        self.show_again()

    def cursor_text(self) -> str:
        return self.figure.caption if self.figure is not None else ""

    def as_text(self) -> str:
        if self.figure is None:
            return ""
        return "\n".join("\t".join(map(str, row)) for row in (COLUMNS, *self.figure.rows()))

    def tip_at(self, _place: QPointF) -> tuple[str, QRectF] | None:
        return (self.toolTip(), QRectF(self.rect())) if self.toolTip() else None

    def show_again(self) -> None:
        panels = self._shown
        while len(self._panels) < len(panels):
            self._panels.append(PanelLayers(self.add_frame()))
        ends = ends_of(panels)
        for number, one in enumerate(self._panels):
            one.frame.setVisible(number < len(panels))
        for one, panel in zip(self._panels, panels, strict=False):
            one.show(panel, ends.get(panel.colour.label, (0.0, 1.0)) if isinstance(panel, HeatMap) else (0.0, 1.0))
        self._share_titles()
        scaled = [(panel.colour.label, ends[panel.colour.label]) for panel in self._scaled]
        scaled = scaled[:1] if self._shared else scaled
        while len(self._scales) < len(scaled):
            self._scales.append(ColourScale(self.add_frame()))
        for number, scale in enumerate(self._scales):
            scale.frame.setVisible(number < len(scaled))
        for scale, (name, found) in zip(self._scales, scaled, strict=False):
            scale.show(name, found)
        kinds = [panel.categories for panel in panels if isinstance(panel, HeatMap) and panel.categories]
        self._kinds.setHtml(legend_text(kinds[0], self.colours) if kinds else "")
        self.set_needed(QSizeF() if self.on_paper or not panels else self._needed(bool(kinds)))
        self.refresh()

    @property
    def _scaled(self) -> list[HeatMap]:
        """Panels whose colours show magnitudes."""
        panels = self._shown
        ends = ends_of(panels)
        return [one for one in panels if isinstance(one, HeatMap) and one.colour.label in ends and not one.categories]

    @property
    def _shared(self) -> bool:
        """Whether all panels share one colour scale."""
        panels = self._shown
        return len(ends_of(panels)) == 1 and all(isinstance(panel, HeatMap) for panel in panels)

    @property
    def _scale_width(self) -> float:
        return _SCALE * self.em

    @property
    def _across(self) -> int:
        return 1 if self.figure is None else min(self.figure.across, len(self.figure.panels))

    def _share_titles(self) -> None:
        """Write labels shared by panels of a column or row once."""
        panels = self._shown
        alike = len({(type(panel), panel.x, panel.y) for panel in panels}) <= 1
        for index, one in enumerate(self._panels[: len(panels)]):
            titled = not alike or index + self._across >= len(panels)
            one.frame.margins = QMarginsF(0.0, _TITLE, _RIGHT, _TITLED if titled else _BARE)
            if not titled:
                one.frame.bottom.set_title(Dimension(""))
            if alike and index % self._across:
                one.frame.left.set_title(Dimension(""))

    def arrange(self, whole: QRectF) -> None:
        if self.figure is None:
            return
        panels, across = self.figure.panels, self._across
        foot = _LINE_HEIGHT if self._kinds.toPlainText() else 0.0
        shared, rows = self._shared, -(-len(panels) // across)
        width = (whole.width() - shared * self._scale_width) / across
        height = (whole.height() - foot) / rows
        scales = iter(self._scales)
        for index, (one, panel) in enumerate(zip(self._panels, panels, strict=False)):
            room = QRectF(index % across * width, index // across * height, width, height)
            if not shared and panel in self._scaled:
                self._place_scale(
                    next(scales), QRectF(room.right() - self._scale_width, room.top(), self._scale_width, height)
                )
                room.setWidth(width - self._scale_width)
            one.frame.setGeometry(room)
            one.frame.arrange()
            one.place_legend()
        if shared:
            self._place_scale(next(scales), QRectF(width * across, 0, self._scale_width, height * rows))
        self._kinds.setPos((whole.width() - self._kinds.boundingRect().width()) / 2, whole.height() - foot)
        if self._marked:
            self._show_mark()

    def _place_scale(self, scale: ColourScale, room: QRectF) -> None:
        scale.frame.margins = QMarginsF(0.0, _TITLE, 0.6, _TITLED)
        scale.frame.setGeometry(room)
        scale.frame.arrange()

    def _needed(self, legend: bool) -> QSizeF:
        panels, across, shared = self._shown, self._across, self._shared
        letters = QFontMetricsF(self.font())
        scaled = not shared and bool(self._scaled)
        widths = [max(_LEAST_PANEL[type(one)][0], letters.horizontalAdvance(one.title)) for one in panels]
        heights = [_LEAST_PANEL[type(one)][1] + _AXIS_HEIGHT + _TITLE_HEIGHT for one in panels]
        rows = -(-len(panels) // across)
        width = across * (max(widths) + _AXIS_WIDTH + scaled * self._scale_width) + shared * self._scale_width
        return QSizeF(width, rows * max(heights) + _AXIS_HEIGHT + legend * _LINE_HEIGHT)

    def go_to(self, panel: int, row: int, column: int) -> None:
        """Put the mark on a point, or the nearest one, and announce its value."""
        if self.figure is None:
            return
        panel = min(max(panel, 0), len(self.figure.panels) - 1)
        shown = self.figure.panels[panel]
        self._at, self._marked = (panel, *plots.within(shown, row, column)), True
        self._show_mark()
        words = plots.words(shown, *self._at[1:])
        if self.isWindow():
            self.setWindowTitle(f"{self.figure.title} of {self.figure.provenance.model}: {words}")
            self.setAccessibleDescription(words)
        self.read.emit(words)

    def _show_mark(self) -> None:
        ring = pen(self.colours.danger, 2)
        for number, one in enumerate(self._panels):
            places = []
            if number == self._at[0]:
                x, y = plots.position(self._shown[number], *self._at[1:])
                places = [(one.frame.place(x, y), _RING)] if math.isfinite(x) and math.isfinite(y) else []
            one.mark.show_rings(places, ring)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Put the mark on the point nearest to the mouse."""
        place = self.view.mapToScene(event.position().toPoint())
        for index, frame in enumerate(self.plots):
            local = frame.mapFromScene(place)
            if frame.area.contains(local):
                point = frame.view.mapToView(frame.view.mapFromParent(local))
                (left, right), (top, bottom) = frame.view.viewRange()
                found = plots.nearest(self._shown[index], point.x(), point.y(), right - left, bottom - top)
                if (index, *found) != self._at or not self._marked:
                    self.go_to(index, *found)
                return

    def keyPressEvent(self, event: QKeyEvent) -> None:
        panel, row, column = self._at
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape and self.isWindow():
            self.close()
        elif self.figure is None or event.modifiers() & ~self.own_modifiers:
            super().keyPressEvent(event)
        elif not self._marked and key in _MOVES:
            self.go_to(panel, row, column)
        elif key in _MOVES:
            down, right = _MOVES[key]
            self.go_to(panel, row + down, column + right)
        elif key in _PAGES:
            self.go_to(panel + _PAGES[key], row, column)
        else:
            super().keyPressEvent(event)
