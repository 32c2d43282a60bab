"""The player's position in a take: seeking, loops, and audible waits."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from paretone_app.audio.player import Player

Part = tuple[float, float]
"""Start and end, in seconds."""


class Looping:
    """Loops a part in ``player`` and remembers the last one."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.part: Part | None = None
        self.last: Part | None = None
        """The last loop, if its sound is still in the player."""

    def put(self, part: Part | None) -> None:
        """Loop ``part``; ``None`` or an empty part ends the loop."""
        self.part = part if part is not None and part[0] < part[1] else None
        self.last = self.part or self.last
        if self.part is None:
            self._player.clear_loop()
        else:
            self._player.set_loop(*self.part)

    def toggle(self, seen: Part | None, length: float) -> None:
        """End the loop, or loop the last part, else the part in view (``seen``), else all of ``length`` seconds."""
        if self.part is not None:
            self.put(None)
        else:
            start, end = self.last or seen or (0.0, length)
            self.put((max(0.0, start), min(end, length)))

    def put_end(self, which: int, length: float) -> None:
        """Put the start (0) or the end (1) at the player's position, unless the loop would be empty."""
        ends = [*(self.part or (0.0, length))]
        ends[which] = self._player.position
        if ends[0] < ends[1]:
            self.put((ends[0], ends[1]))

    def forget(self) -> None:
        self.put(None)
        self.last = None

    def recall(self, part: Part | None, last: Part | None) -> None:
        """Restore the loop and last loop of a sound that is back in the player."""
        self.put(part)
        self.last = last

    def fit(self, duration: float) -> None:
        """Adapt to a sound of ``duration`` seconds: end a loop beyond it."""
        if self.part is not None and self.part[1] > duration:
            self.put(None)
        self.last = None if self.part is None else self.last

    def put_again(self) -> None:
        if self.part is not None:
            self._player.set_loop(*self.part)


class Waits:
    """Counts the waits of ``player`` since :meth:`begin`."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._before = (0, 0.0)

    def begin(self) -> None:
        self._before = self._player.starvations, self._player.starved_seconds

    @property
    def counted(self) -> tuple[int, float]:
        """Number and total seconds."""
        times, seconds = self._before
        return self._player.starvations - times, self._player.starved_seconds - seconds


class Transport(QObject):
    changed = Signal()
    """Choice, takes, loop or gains changed."""

    def __init__(self, player: Player, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.player = player
        self.seen: Part | None = None
        """The part of A and B in view, in seconds: the first choice for a loop."""
        self._looping = Looping(player)
        self._lent = False

    # --- For subclasses -----------------------------------------------------------------------------------------------
    @property
    def length(self) -> float:
        raise NotImplementedError

    @property
    def complete(self) -> bool:
        raise NotImplementedError

    def seek(self, seconds: float) -> None:
        raise NotImplementedError

    # --- Seeking ------------------------------------------------------------------------------------------------------
    @Slot()
    def go_to_start(self) -> None:
        """Go to the start of the take or loop; keep playing."""
        self.seek(self.loop[0] if self.loop else 0.0)

    def move(self, seconds: float) -> None:
        self.seek(self.player.position + seconds)

    # --- Loop --------------------------------------------------------------------------------------------------------
    @property
    def loop(self) -> Part | None:
        return self._looping.part

    def set_loop(self, loop: Part | None) -> None:
        self._looping.put(loop)
        self.changed.emit()

    @Slot()
    def toggle_loop(self) -> None:
        """Loop the region drawn last, or the part in view; or end the loop."""
        if not self._lent:
            self._looping.toggle(self.seen if self.complete else None, self.length)
            self.changed.emit()

    def set_loop_end(self, which: int) -> None:
        """Put the loop's start (0) or end (1) at the player's position."""
        if not self._lent:
            self._looping.put_end(which, self.length)
            self.changed.emit()
