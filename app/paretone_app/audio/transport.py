"""Going to a place of what is in the player, and repeating a part of it, whatever is in it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from paretone_app.audio.looping import Looping, Part
from paretone_app.audio.player import Player


class Transport(QObject):
    """Subclasses define seeking and looping."""

    changed = Signal()
    """Choice, takes, loop or gains changed."""

    def __init__(self, player: Player, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.player = player
        self.seen: Part | None = None
        """The part of A and B that is in view, in seconds: what a loop repeats first."""
        self._looping = Looping(player)
        self._lent = False
        """Whether a listening test has the player."""

    # --- What a subclass adds ----------------------------------------------------------------------------------------
    @property
    def length(self) -> float:
        """Duration of what is in the player, in seconds."""
        raise NotImplementedError

    @property
    def complete(self) -> bool:
        """Whether A and B are both in the player."""
        raise NotImplementedError

    def seek(self, seconds: float) -> None:
        """Go to a time."""
        raise NotImplementedError

    # --- Going -------------------------------------------------------------------------------------------------------
    @Slot()
    def go_to_start(self) -> None:
        """Go to the start, or to the loop's; continues playing."""
        self.seek(self.loop[0] if self.loop else 0.0)

    def move(self, seconds: float) -> None:
        """Go so much further."""
        self.seek(self.player.position + seconds)

    # --- Loop --------------------------------------------------------------------------------------------------------
    @property
    def loop(self) -> Part | None:
        """Start and end of the loop, in seconds."""
        return self._looping.part

    def set_loop(self, loop: Part | None) -> None:
        """Repeat what lies between these seconds, or nothing."""
        self._looping.put(loop)
        self.changed.emit()

    @Slot()
    def toggle_loop(self) -> None:
        """Repeat the region drawn last, or what is in view; or stop repeating."""
        if not self._lent:
            self._looping.toggle(self.seen if self.complete else None, self.length)
            self.changed.emit()

    def set_loop_end(self, which: int) -> None:
        """Put the loop's start (0) or end (1) where the player is."""
        if not self._lent:
            self._looping.put_end(which, self.length)
            self.changed.emit()
