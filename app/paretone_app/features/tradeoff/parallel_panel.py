"""The panel of parallel axes, linked with the trade-off view: both show the same points and share the filter."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent, QUndoStack
from PySide6.QtWidgets import QScrollArea, QWidget

from paretone_app.features.tradeoff.model.filtering import Range
from paretone_app.features.tradeoff.model.parallel import DRAWN, parallel
from paretone_app.features.tradeoff.model.points import Point
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.parallel_axes import ParallelAxes
from paretone_app.features.tradeoff.styles import PointStyles
from paretone_app.numbers import counted
from paretone_app.shell.colours import Colours
from paretone_app.state.editing import Edit
from paretone_app.widgets import build
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout

_FIRST_ID = 10_000
"""Ids of edits that are merged, from here on: one for each brush."""
_PAUSE_MILLISECONDS = 600
"""Pause after which another change is another brush."""


class ParallelPanel(QWidget):
    """Shows the points of a :class:`TradeoffPanel`, and filters them by ranges."""

    shown = Signal()
    """The panel can be seen from now on."""
    rank_wanted = Signal()
    """Rank the points in all ranges by ear, blind."""
    study_wanted = Signal()
    """Make a study within the ranges."""

    def __init__(self, colours: Colours, undo_stack: QUndoStack, parent: QWidget | None = None) -> None:
        """What is brushed can be undone by ``undo_stack``."""
        super().__init__(parent)
        self._colours = colours
        self._undo_stack = undo_stack
        self._brushes = _FIRST_ID
        self._goes_on = QTimer(self, singleShot=True, interval=_PAUSE_MILLISECONDS)
        """While it runs, a brush goes on that began before."""
        self._tradeoff: TradeoffPanel | None = None
        self.axes = ParallelAxes(colours)
        area = QScrollArea()
        area.setWidget(self.axes)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._counts = build.label(look="muted", name="What is brushed")
        self.clear_button = build.button("Clear ranges", lambda: self._brush(()), "Brush nothing on any axis")
        self.rank_button = build.button(
            "Rank by ear…", self.rank_wanted, "Hear the points in all ranges blind, in pairs, and rank them (Enter)"
        )
        self.study_button = build.button("Study within…", self.study_wanted)
        foot = HBoxLayout()
        foot.addWidget(self._counts, 1)
        foot.addWidget(self.study_button)
        foot.addWidget(self.rank_button)
        foot.addWidget(self.clear_button)
        build.fill(VBoxLayout(self), ((area, 1), foot))
        self.setFocusProxy(self.axes)
        self.axes.ranges_changed.connect(self._brush)
        self.axes.chosen.connect(self._choose)
        self.axes.activated.connect(self.rank_wanted)
        self.axes.reached.connect(lambda x: area.ensureVisible(x, 0, round(self.axes.width_of_axis), 0))

    def follow(self, tradeoff: TradeoffPanel | None) -> None:
        """Show the points of ``tradeoff`` from now on; ``None`` if there is none yet."""
        self._tradeoff = tradeoff
        if tradeoff is not None:
            tradeoff.scene_changed.connect(self.refresh)
            tradeoff.chosen.connect(self._show_current)
            self.refresh()

    def refresh(self) -> None:
        """The trade-off view shows something else."""
        tradeoff = self._tradeoff
        if tradeoff is None or not self.isVisible():
            return
        shown, current = parallel(tradeoff.pool, tradeoff.filter), tradeoff.plot.current
        looks = PointStyles(self._colours)
        self.axes.show_points(shown, looks, "" if current is None else current.key)
        kept, total = int(shown.inside.sum()), counted(len(shown.points), "point", "points")
        text = f"{kept} of {total} in all ranges" if shown.ranges else f"{total}; drag along an axis"
        self._counts.setText(text + (f" ({DRAWN} lines drawn)" if len(shown.points) > DRAWN else ""))
        reason = "" if shown.ranges else "Nothing is brushed."
        build.allow(self.clear_button, reason, "Brush nothing on any axis")
        build.allow(self.study_button, reason, "A new study: knobs as far as brushed, figures within their ranges")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()
        self.shown.emit()

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self.axes.set_colours(colours)
        self.refresh()

    def _show_current(self, current: Point | None) -> None:
        self.axes.show_current("" if current is None else current.key)

    def _brush(self, ranges: tuple[Range, ...]) -> None:
        if self._tradeoff is None or ranges == self._tradeoff.filter.ranges:
            return
        if not self._goes_on.isActive():
            self._brushes += 1
        self._goes_on.start()
        text = "brush ranges" if ranges else "clear ranges"
        self._undo_stack.push(Edit(text, self._tradeoff.filter.ranges, ranges, self._put, self._brushes))

    def _put(self, ranges: tuple[Range, ...]) -> None:
        if self._tradeoff is not None:
            self._tradeoff.set_filter(replace(self._tradeoff.filter, ranges=ranges))

    def _choose(self, key: str) -> None:
        if self._tradeoff is not None:
            self._tradeoff.plot.take_selection({key})
