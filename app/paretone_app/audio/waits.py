"""How often and how long the last stream waited for more audio."""

from __future__ import annotations

from paretone_app.audio.player import Player


class Waits:
    """Counts what ``player`` waits from :meth:`begin` on."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._before = (0, 0.0)

    def begin(self) -> None:
        """Reset the underrun counters for another stream."""
        self._before = self._player.starvations, self._player.starved_seconds

    @property
    def counted(self) -> tuple[int, float]:
        """How often, and for how many seconds in all."""
        times, seconds = self._before
        return self._player.starvations - times, self._player.starved_seconds - seconds
