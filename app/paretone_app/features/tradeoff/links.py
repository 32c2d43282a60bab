"""Links between the trade-off view, Takes and Strategy: a selection in one is selected in the others; A, B and the
setting in Setup are marked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from paretone_app.features.takes.panel import TakesPanel
from paretone_app.results.reader import Results
from paretone_app.state.app_state import AppState

if TYPE_CHECKING:
    from paretone_app.features.tradeoff.panel import TradeoffPanel
    from paretone_app.results.points import Point

_SETUP = "Setup"
"""Mark of the points with the setting in Setup."""


class TradeoffLinks(QObject):
    """Between the panel and the rest of the window."""

    followed = Signal()
    """Another point was chosen from elsewhere."""

    def __init__(
        self,
        panel: TradeoffPanel,
        results: Results,
        state: AppState,
        takes: TakesPanel,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._panel = panel
        self._results = results
        self._state = state
        self._takes = takes
        self._linking = False
        self._wanted: tuple[Point, ...] = ()
        self._follow_in_takes = QTimer(self, singleShot=True, interval=0)
        self._follow_in_takes.timeout.connect(self._select_takes)
        self._in_setup: tuple[str, str] | None = None
        panel.chosen.connect(self._point_chosen)
        panel.selection_changed.connect(self._points_selected)
        takes.table.selectionModel().selectionChanged.connect(self._takes_selected)
        state.comparison.changed.connect(self.show_sides)
        state.selection.changed.connect(self.show_setup)

    @contextmanager
    def _linked(self) -> Iterator[None]:
        """Within the block, selections made in other panels are not sent back here."""
        before, self._linking = self._linking, True
        try:
            yield
        finally:
            self._linking = before

    # --- From here ---------------------------------------------------------------------------------------------------
    @Slot(object)
    def _point_chosen(self, point: Point | None) -> None:
        self._state.artefacts.compare_with(self._results.table_of(point) if point is not None else None)

    @Slot(object)
    def _points_selected(self, points: tuple[Point, ...]) -> None:
        """Takes follows in a separate turn, so that thousands of points are drawn first."""
        if not self._linking:
            self._wanted = points
            self._follow_in_takes.start()

    @Slot()
    def _select_takes(self) -> None:
        with self._linked():
            self._takes.select(self._results.takes_of(self._wanted))

    # --- From elsewhere ----------------------------------------------------------------------------------------------
    @Slot()
    def _takes_selected(self) -> None:
        if self._linking:
            return
        selected = self._takes.selected()
        with self._linked():
            self._panel.select(self._results.of_takes({one.id for one in selected}, self._panel.scene.index.keys()))
        point = self._panel.plot.current
        if len(selected) == 1 and point is not None:
            self._state.artefacts.compare_with(self._results.table_of(point))
        self.followed.emit()

    @Slot()
    def show_sides(self) -> None:
        """Mark A, B and the setting in Setup; the label of a point is its difference from A."""
        from paretone_app.features.tradeoff.model.words import Reference

        take = self._state.comparison.take_a
        reference = None if take is None else Reference("A", take.setting, take.text, take.voice)
        self._panel.set_a(reference, "" if take is None else take.id)
        sides: dict[str, str] = dict.fromkeys(self._results.of_setup(), _SETUP)
        for side, compared in (("A", self._state.comparison.take_a), ("B", self._state.comparison.take_b)):
            for key in () if compared is None else self._results.of_take.get(compared.id, ()):
                sides[key] = f"{sides[key]}/{side}" if sides.get(key, _SETUP) != _SETUP else side
        self._panel.set_marks(sides)

    @Slot()
    def show_setup(self) -> None:
        """Follow Setup and Strategy: what is selected there is chosen here, as soon as there is a point of it."""
        if not self._panel.isVisible():
            return
        self.show_sides()
        setup = self._results.setup
        if setup == self._in_setup:
            return
        first, self._in_setup = self._in_setup is None, setup
        found = [] if first else self._results.of_setup()
        if found:
            with self._linked():
                self._panel.choose(found[0])
            self.followed.emit()
