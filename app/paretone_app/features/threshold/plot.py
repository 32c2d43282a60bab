"""The plots of the threshold panel: something over normalised error, with a line for δ that mouse and keys move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QMarginsF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from paretone.figures.glyphs import Glyph
from paretone.figures.scales import Scale
from paretone.figures.scatter import Dimension
from paretone.sampling.actions import SkipAction
from paretone_app.features.strategy.grid import action_colours
from paretone_app.numbers import fixed, general
from paretone_app.plotting.curves import CurveLayers, Series
from paretone_app.plotting.frame import pen
from paretone_app.plotting.layers import Block, Blocks, Shape, Shapes
from paretone_app.plotting.points import Points
from paretone_app.plotting.zoom_chart import Wholes, ZoomChart
from paretone_app.shell.colours import Colours

_FAR_STEPS = 10
"""Steps that δ moves with Shift, or by Page Up and Page Down."""
_STEPS = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_PageDown: -_FAR_STEPS,
    Qt.Key.Key_PageUp: _FAR_STEPS,
}
_INTERVAL_ALPHA = 0.28
_LEFT, _MARK = 4.6, 0.32
"""In heights of the font: room for the numbers on the left, so that plots above each other are alike; radius of a
mark."""
_NEAR = 5.0
"""Pixels from the line at which the mouse's cursor says that it can be dragged."""


class ErrorPlot(ZoomChart):
    """An axis of normalised errors, the interval of δ for which the table is exact, and δ."""

    moved_to = Signal(float)
    """δ was dragged or clicked to this value."""
    steps_wanted = Signal(int)
    """Move δ by a number of steps."""
    home_wanted = Signal()
    """Return δ to where it was calibrated."""
    copy_wanted = Signal()
    """Copy the data of all plots."""

    own_keys = (*_STEPS, Qt.Key.Key_Home)
    own_modifiers = ZoomChart.own_modifiers | Qt.KeyboardModifier.ShiftModifier
    both_axes = False
    ideal, least = (32.0, 12.0), (18.0, 6.0)

    def __init__(self, name: str, vertical: str, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(name, colours, parent)
        self._whole, self._up = Scale(), Scale()
        self.threshold = 0.0
        self.interval: tuple[float, float] | None = None
        """The δ for which the table is exact."""
        self.summary = ""
        """Text for screen readers."""
        self._dragged = False
        self._exact, self._line = Shapes(self.frame, 1), Shapes(self.frame, 8)
        self.frame.left.set_title(Dimension(vertical))
        self.frame.margins = QMarginsF(_LEFT, 0.5, 0.8, 2.7)

    # --- Methods in --------------------------------------------------------------------------------------------------
    def show_axes(self, across: Scale, up: Scale) -> None:
        """Show everything between the ends of these."""
        self._whole, self._up = across, up
        self.show_everything()
        self.draw_section()

    def show_threshold(self, threshold: float, interval: tuple[float, float] | None) -> None:
        """Put δ here; ``interval``: the δ for which the table is exact."""
        self.threshold, self.interval = threshold, interval
        self.draw_section()
        if self.zoomed and not self._dragged:
            self.bring_into_view(QPointF(float(self.frame.to_x(threshold)), self.frame.area.center().y()))

    @property
    def wholes(self) -> Wholes:
        """Also with room for δ."""
        whole = self._whole
        return Scale(whole.low, max(whole.high, 1.05 * self.threshold), whole.logarithmic), self._up

    def draw_section(self) -> None:
        across, up = self.sections[0] or self.wholes[0], self._up
        good, ends = QColor(self.colours.good), (up.low, up.high)
        fill = QColor(good)
        fill.setAlphaF(_INTERVAL_ALPHA)
        self._exact.shapes = []
        if self.interval is not None:
            low, high = (min(max(one, across.low), across.high) for one in self.interval)
            corners = [(low, up.low), (low, up.high), (high, up.high), (high, up.low)]
            # Intervals may be narrower than a pixel.
            edges = [Shape((one, one), ends, pen(good)) for one in (low, high)]
            self._exact.shapes = [Shape.through(corners, fill=QBrush(fill)), *edges]
        # Left of a logarithmic axis lies 0, too.
        at = max(self.threshold, across.low) if across.logarithmic else self.threshold
        self._line.shapes = [Shape((at, at), ends, pen(self.colours.danger, 4.0 if self._dragged else 2.0))]
        self.frame.set_scales(across, up)

    def show_again(self) -> None:
        self.draw_section()

    def cursor_text(self) -> str:
        return self.summary

    def copy(self) -> None:
        self.copy_wanted.emit()

    # --- Mouse and keys ----------------------------------------------------------------------------------------------
    def figure_at(self, place: QPointF) -> float:
        """The normalised error at a place in widget coordinates."""
        area = self.frame.area
        return self.frame.across.at((place.x() - area.left()) / max(1.0, area.width()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.begins_move(event):
            return
        if event.button() is not Qt.MouseButton.LeftButton or not self.frame.area.contains(event.position()):
            super().mousePressEvent(event)
            return
        self._dragged = True
        self.moved_to.emit(self.figure_at(event.position()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragged:
            self.moved_to.emit(self.figure_at(event.position()))
        elif not self.goes_on_moving(event):
            self.show_shape(event)
            line = float(self.frame.to_x(self.threshold))
            if self.frame.area.contains(event.position()) and abs(line - event.position().x()) < _NEAR:
                self.setCursor(Qt.CursorShape.SplitHCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._dragged:
            self._dragged = False
            self.draw_section()
        elif not self.ends_move(event):
            super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, modifiers = Qt.Key(event.key()), event.modifiers() & ~self.own_modifiers
        if modifiers or key not in self.own_keys:
            super().keyPressEvent(event)
        elif key == Qt.Key.Key_Home:
            self.home_wanted.emit()
        else:
            steps = _STEPS[key]
            shifted = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            self.steps_wanted.emit(steps * _FAR_STEPS if shifted and abs(steps) == 1 else steps)


class Histogram(ErrorPlot):
    """Number of trials by error: temporal skips, and branch skips on top of them."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__("Histogram of the measured errors", "Trials", colours, parent)
        self.edges = np.empty(0)
        self.counts: dict[SkipAction, np.ndarray] = {}
        self._bars = Blocks(self.frame, 2)
        self.frame.bottom.hide()
        self.frame.margins = QMarginsF(_LEFT, 0.5, 0.8, 0.4)

    def show_counts(self, across: Scale, edges: np.ndarray, counts: dict[SkipAction, np.ndarray]) -> None:
        """Show how many errors of each action lie between neighbouring ``edges``."""
        self.edges, self.counts = edges, counts
        most = max(1.0, float(np.sum(list(counts.values()), axis=0).max(initial=0)))
        self.show_axes(across, Scale(0.0, 1.1 * most))

    def draw_section(self) -> None:
        fills, bars = action_colours(self.colours), []
        below = np.zeros(max(0, len(self.edges) - 1))
        for action, counts in self.counts.items():
            ink = QColor(fills[action][0])
            fill = QBrush(ink, Qt.BrushStyle.Dense3Pattern) if action == SkipAction.BS else ink
            outline = pen(ink if action == SkipAction.BS else self.colours.base)
            bars += [
                Block((self.edges[one], self.edges[one + 1]), (below[one], below[one] + counts[one]), fill, outline)
                for one in np.flatnonzero(counts).tolist()
            ]
            below = below + counts
        self._bars.blocks = bars
        super().draw_section()

    @property
    def blocks(self) -> Sequence[Block]:
        """The bars that are drawn."""
        return self._bars.blocks

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        error, index = self.figure_at(place), 0
        if not self.counts or not self.frame.area.contains(place):
            return None
        index = min(max(int(np.searchsorted(self.edges, error)) - 1, 0), len(self.edges) - 2)
        temporal, branch = (int(self.counts[one][index]) for one in (SkipAction.TS, SkipAction.BS))
        ends = f"{general(self.edges[index], 4)} to {general(self.edges[index + 1], 4)}"
        words = f"{ends}: {temporal} temporal, {branch} branch skips"
        return words, QRectF(self.rect())

    def as_text(self) -> str:
        lines = ["from\tto\ttemporal skip trials\tbranch skip trials"]
        for index in range(len(self.edges) - 1):
            counts = "\t".join(str(int(one[index])) for one in self.counts.values())
            lines.append(f"{self.edges[index]:.6g}\t{self.edges[index + 1]:.6g}\t{counts}")
        return "\n".join(lines)


class SharePlot(ErrorPlot):
    """Share of skipped cells over δ."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__("Share of skipped cells over δ", "Skip, %", colours, parent)
        self.thresholds = self.shares = np.empty(0)
        """The curve; shares in per cent."""
        self.share: float | None = None
        """Share skipped at δ, in per cent, if known."""
        self._curve, self._point = CurveLayers(self.frame, 4), Points(self.frame, 9)

    def show_curve(self, across: Scale, thresholds: np.ndarray, shares: np.ndarray) -> None:
        """Show the ``shares`` (per cent) of cells skipped at ``thresholds``."""
        self.thresholds, self.shares = thresholds, shares
        self.show_axes(across, Scale(0.0, 108.0))

    def draw_section(self) -> None:
        curve = Series("skipped", self.thresholds, self.shares, self.colours.accent)
        self._curve.show([curve], self.sections[0] or self.wholes[0], self._up)
        there = [] if self.share is None else [self.share]
        self._point.across, self._point.up = np.full(len(there), self.threshold), np.array(there, float)
        self._point.glyphs = [Glyph((self.colours.danger,), "circle")] * len(there)
        self._point.order, self._point.radius = np.arange(len(there)), _MARK * self.em
        super().draw_section()

    def tip_at(self, place: QPointF) -> tuple[str, QRectF] | None:
        if not len(self.thresholds) or not self.frame.area.contains(place):
            return None
        index = int(np.argmin(np.abs(self.frame.to_x(self.thresholds) - place.x())))
        return f"δ = {general(self.thresholds[index], 4)}: {fixed(self.shares[index], 1)} % skipped", QRectF(
            self.rect()
        )

    def as_text(self) -> str:
        rows = zip(self.thresholds.tolist(), self.shares.tolist(), strict=True)
        return "\n".join(["δ\tskipped, %", *(f"{delta:.6g}\t{share:.4g}" for delta, share in rows)])
