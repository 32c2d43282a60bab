"""The take of the chosen point is seen inside, too: its tokens follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Slot

from paretone.errors import PlainError
from paretone.models.base import LANGUAGE
from paretone.setting.take import Take
from paretone_app.results.reader import Results
from paretone_app.state.comparison import Comparison
from paretone_app.state.differences import family_of

if TYPE_CHECKING:
    from paretone_app.features.tradeoff.panel import TradeoffPanel

REST_MILLISECONDS = 150
"""How long a point stays chosen before its take is read, so that nothing is read on the way."""


class ChosenTake(QObject):
    """Between the panel and Decoding, which shows a take of a language model inside."""

    def __init__(
        self,
        panel: TradeoffPanel,
        results: Results,
        comparison: Comparison,
        run: Callable[[Callable[[], Take], Callable[[Take | BaseException], None]], object],
    ) -> None:
        """``run(work, callback)`` runs ``work`` in another thread, and ``callback`` with its result in this one."""
        super().__init__(panel)
        self._panel, self._results, self._comparison, self._run = panel, results, comparison, run
        self._wanted = ""
        self._rest = QTimer(self, singleShot=True, interval=REST_MILLISECONDS)
        self._rest.timeout.connect(self._read)
        for signal in (panel.chosen, panel.scene_changed, panel.details.sentence.activated):
            signal.connect(self._point_chosen)

    @Slot()
    def _point_chosen(self) -> None:
        self._rest.start()

    @Slot()
    def _read(self) -> None:
        point, sound = self._panel.plot.current, self._panel.details.sound
        seen = point is not None and point.setting is not None and family_of(point.setting) == LANGUAGE
        if not seen or sound is None:
            self._wanted = ""
            self._comparison.set_chosen(None)
        elif sound.take != self._wanted:
            self._wanted = wanted = sound.take
            take = self._results.take_reader(wanted)
            self._run(take, lambda found: self._take_over(wanted, found))

    def _take_over(self, wanted: str, found: Take | BaseException) -> None:
        if wanted != self._wanted:
            return
        if isinstance(found, BaseException) and not isinstance(found, PlainError):
            raise found
        # A take that cannot be read says so where it is heard.
        self._comparison.set_chosen(None if isinstance(found, BaseException) else found)
