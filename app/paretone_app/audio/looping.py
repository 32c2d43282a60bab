"""The part of what is in the player that is repeated."""

from __future__ import annotations

from paretone_app.audio.player import Player

Part = tuple[float, float]
"""Start and end, in seconds."""


class Looping:
    """Has ``player`` repeat a part, and knows which one was repeated last."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.part: Part | None = None
        """What is repeated."""
        self.last: Part | None = None
        """What was repeated last, if that is still in the player."""

    def put(self, part: Part | None) -> None:
        """Repeat ``part``, or nothing if it is empty."""
        self.part = part if part is not None and part[0] < part[1] else None
        self.last = self.part or self.last
        if self.part is None:
            self._player.clear_loop()
        else:
            self._player.set_loop(*self.part)

    def toggle(self, seen: Part | None, length: float) -> None:
        """Repeat what was repeated last, else what is ``seen``, else all of ``length`` seconds; or stop repeating."""
        if self.part is not None:
            self.put(None)
        else:
            start, end = self.last or seen or (0.0, length)
            self.put((max(0.0, start), min(end, length)))

    def put_end(self, which: int, length: float) -> None:
        """Put the start (0) or the end (1) where the player is, unless nothing would be left between them."""
        ends = [*(self.part or (0.0, length))]
        ends[which] = self._player.position
        if ends[0] < ends[1]:
            self.put((ends[0], ends[1]))

    def forget(self) -> None:
        """Something else comes into the player."""
        self.put(None)
        self.last = None

    def recall(self, part: Part | None, last: Part | None) -> None:
        """What was in the player before is there again, with what was repeated of it then."""
        self.put(part)
        self.last = last

    def fit(self, duration: float) -> None:
        """What is in the player lasts ``duration`` seconds now."""
        if self.part is not None and self.part[1] > duration:
            self.put(None)
        self.last = None if self.part is None else self.last

    def put_again(self) -> None:
        """Tell the player again, which forgets what it repeats when it is loaded."""
        if self.part is not None:
            self._player.set_loop(*self.part)
