"""The player's content: the takes of up to eight lanes, of which the first two are A and B, a take being made, or other
sounds; and which of them is heard."""

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QObject, Signal

from paretone.measure.loudness import headroom
from paretone.setting.take import Take
from paretone_app.audio.analysis import Analyser, Analysis
from paretone_app.audio.player import Player, Switching, comparison
from paretone_app.audio.sound import Envelope, Sound, same_place
from paretone_app.state.playing import LANES, SIDES

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
        self._player.set_loop(self.part)

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
        self.recall(None, None)

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
            self._player.set_loop(self.part)


class Deck(QObject):
    """Takes arrive by :meth:`set_take`, other sounds by :meth:`hear_row`, streams by :meth:`begin_stream`."""

    changed = Signal()
    """Choice, takes, loop or gains changed."""
    analysed = Signal()
    """The takes can be drawn and played: see :attr:`analysis`."""
    lent_changed = Signal(bool)
    """Whether a listening test has taken over the player."""

    def __init__(self, player: Player, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.player = player
        self.seen: Part | None = None
        """The part of A and B in view, in seconds: the first choice for a loop."""
        self.lent = False
        self._looping = Looping(player)
        self.takes: dict[str, Take | None] = dict.fromkeys(LANES)
        self._aligned = dict.fromkeys(LANES, True)
        """Whether each take's model keeps the timing between takes (autoregressive ones do not)."""
        self.analysis = Analysis()
        """Analysis of the takes being played; newer takes may still be under analysis."""
        self.analyser = Analyser(player.prepare, self)
        self.analyser.done.connect(self._take_over)
        self.analyser.failed.connect(self._give_up)
        self.row: tuple[Sound, ...] = ()
        """Sounds in the player instead of A and B: one, or several to switch between."""
        self._at = 0
        self._row_aligned = self._repeats = True
        self._envelope: Envelope | None = None
        """Of the current stream."""
        self._stream_gain = 1.0
        self._waits_before = (0, 0.0)
        self._matching = True
        self.heard, self._heard_before = SIDES
        self.loaded: tuple[tuple[str, Take], ...] = ()
        self._left: tuple[tuple[str, Take], ...] = ()
        self._loop_left: tuple[Part | None, Part | None] = None, None
        """Their loop, and their last loop."""
        self._load_pending = False
        self._play_wanted = False
        self.late: Analysis | None = None
        self._patient = False
        """Whether A and B are heard to their end before new ones replace them."""
        self._later_take = False
        """Whether a take was set after the current sound was loaded; earlier takes do not replace the sound."""

    @property
    def sound(self) -> Sound | None:
        return self.row[self._at] if self.row else None

    # --- Takes -------------------------------------------------------------------------------------------------------
    def set_take(self, lane: str, take: Take | None, aligned: bool = True, later: bool = False) -> None:
        """Put ``take`` into a lane; ``aligned``: whether its model keeps the timing between takes. A worker thread
        analyses it; then ``analysed`` is emitted. ``later``: let the takes being heard end first."""
        before, self.takes[lane] = self.takes[lane], take
        if take is not before and _sounds_the_same(before, take) and aligned == self._aligned[lane]:
            return  # Same sound with other measurements, such as a take timed again.
        self._later_take |= take is not before
        self._patient = later and self.sound is None and self.player.busy
        self._aligned[lane] = aligned
        there = [at for at, one in enumerate(self.takes.values()) if one is not None]
        self.analyser.analyse(tuple(self.takes.values())[: max(len(SIDES), *(at + 1 for at in there), 0)])

    @property
    def duration(self) -> float:
        return max((take.seconds for take in self.takes.values() if take is not None), default=0.0)

    @property
    def complete(self) -> bool:
        return len(self.loaded) > 1

    @property
    def analysed_takes(self) -> dict[str, Take]:
        """The takes that can be drawn and played, by lane."""
        return {lane: take for lane, take in zip(LANES, self.analysis.takes, strict=False) if take is not None}

    @property
    def comparison(self) -> Switching:
        takes = self.analysed_takes
        return comparison([take.seconds for take in takes.values()], [self._aligned[lane] for lane in takes])

    def same_timing(self, one: str, other: str) -> bool:
        lanes, timing = list(self.analysed_takes), self.comparison.timing
        return one in lanes and other in lanes and timing[lanes.index(one)] == timing[lanes.index(other)]

    def _give_up(self) -> None:
        self._play_wanted = False

    def _take_over(self, analysis: Analysis) -> None:
        if self.lent:
            self.late = analysis
            return
        self.analysis = analysis
        if self.sound is None:
            self._looping.fit(self.duration)
        if self.sound is None or self._later_take:
            self._load_pending = True
            self.load_when_silent()
        if self._play_wanted:
            self._play_wanted = False
            self.player.play()
        self.analysed.emit()

    # --- Loading -----------------------------------------------------------------------------------------------------
    def _index(self, side: str) -> int | None:
        return next((index for index, (name, _) in enumerate(self.loaded) if name == side), None)

    def _load(self) -> None:
        self._load_pending = self._patient = False
        after_row = bool(self.row)
        self.row, self._envelope = (), None
        before = dict(self.loaded).get(self.heard)
        loaded = tuple(self.analysed_takes.items())
        sides = [side for side, _ in loaded]
        if self.takes[self.heard] is None and sides:
            self.heard = sides[0]
        self.loaded = loaded
        if after_row:
            same = [id(take) for _, take in self._left] == [id(take) for _, take in loaded]
            self._looping.recall(*(self._loop_left if same else (None, None)))
        self._left, self._loop_left = (), (None, None)
        # Keep playing an unchanged take, and a stream when its finished take replaces it.
        kept = self.player.streaming or _sounds_the_same(before, dict(loaded).get(self.heard))
        self.player.load(
            [(take.samples, take.sample_rate) for _, take in loaded],
            [self.gain_of(lane) for lane, _ in loaded],
            aligned=[self._aligned[lane] for lane, _ in loaded],
            choice=self._index(self.heard) or 0,
            keep_place=kept,
        )
        self._looping.put_again()
        self.changed.emit()

    def load_if_pending(self) -> None:
        """Reload A and B after another sound."""
        if self._load_pending:
            self._load()

    def load_when_silent(self) -> None:
        """Reload A and B after a stream was heard, or after another sound has ended."""
        waits = self.player.streaming or ((self.sound is not None or self._patient) and self.player.busy)
        if self._load_pending and not waits:
            self._load()

    def leave_sound(self) -> None:
        if self.sound is not None:
            self._load()

    @property
    def gains(self) -> tuple[float, ...]:
        """Linear gain of each lane."""
        return self.analysis.gains if self._matching else (self.analysis.headroom,) * len(self.analysis.gains)

    def gain_of(self, lane: str) -> float:
        return dict(zip(LANES, self.gains, strict=False)).get(lane, 1.0)

    @property
    def gain(self) -> float:
        """Linear gain of the sound being heard."""
        if self.sound is not None:
            return self._gain_of(self.sound)
        return self._stream_gain if self.player.streaming else self.gain_of(self.heard)

    def _gain_of(self, sound: Sound) -> float:
        if sound.part_of is not None:
            return self.gain_of(sound.part_of[0])
        return sound.gain if self._matching else sound.headroom

    def set_matching(self, matching: bool) -> None:
        """Whether to make all takes equally loud."""
        self._matching = matching
        if self.row and not self.lent:
            self.player.set_gains([self._gain_of(one) for one in self.row])
        elif not self._load_pending and not self.lent:
            self.player.set_gains([self.gain_of(lane) for lane, _ in self.loaded])
        self.changed.emit()

    # --- Lending -----------------------------------------------------------------------------------------------------
    def lend(self) -> Player:
        """Lend the player to a listening test until :meth:`take_back`; do not touch it meanwhile."""
        self.lent = True
        self._play_wanted = False
        self.row, self._envelope = (), None
        self.player.pause()
        self.lent_changed.emit(True)
        return self.player

    def take_back(self) -> None:
        """Take the player back after a listening test, and restore A and B."""
        self.lent = False
        self.player.set_loop(None)
        self.player.fade_out_and_in(False)
        self.lent_changed.emit(False)
        # The test's sounds are loaded; they fall silent before the next poll of the player.
        self.loaded, self._load_pending = (), True
        late, self.late = self.late, None
        if late is not None:
            self._take_over(late)

    # --- Streams and other sounds ------------------------------------------------------------------------------------
    def begin_stream(self, rate: int, side: str = "") -> None:
        """Play a take while it is made, as ``side``; A and B return when it has been heard, or at the next key."""
        self._leave_takes()
        if side not in ("", self.heard):
            self._heard_before, self.heard = self.heard, side
        self._load_pending = True
        self._envelope, self._stream_gain = Envelope(rate), 1.0
        self.expect_stream()
        self.player.begin_stream(rate)
        self.changed.emit()

    def expect_stream(self) -> None:
        """A take will stream: start counting waits."""
        self._waits_before = self.player.starvations, self.player.starved_seconds

    def append(self, samples: np.ndarray) -> None:
        """Append to the stream. If it would clip, lower the gain of the whole stream, with a fade."""
        needed = headroom(samples)
        if needed < self._stream_gain:
            self._stream_gain = needed
            self.player.set_gains((needed,))  # Before the samples are heard.
        self.player.append(samples)
        if self._envelope is not None:
            self._envelope.append(samples)

    @property
    def waits(self) -> tuple[int, float]:
        """Number of times the last stream waited for audio, and total seconds."""
        times, seconds = self._waits_before
        return self.player.starvations - times, self.player.starved_seconds - seconds

    def hear_row(self, sounds: Sequence[Sound], at: int = 0, aligned: bool = True, repeat: bool = True) -> None:
        """Play ``sounds``, starting with number ``at``; :meth:`go_in_row` switches between them, at the same
        position if ``aligned``, else at the same word. Several sounds are looped unless ``repeat`` is off. They stay in
        the player until A, B or others are chosen."""
        if self.lent:
            return
        self._leave_takes()
        self._load_pending = self._later_take = False
        self.row, self._at, self._row_aligned, self._repeats = tuple(sounds), at, aligned, repeat
        self._load_row()
        if len(sounds) > 1 and repeat:
            self._looping.put((0.0, max(one.seconds for one in sounds)))
        self.player.play()
        self.changed.emit()

    def begin_in_row(self, at: int) -> None:
        if not self.lent:
            self.go_in_row(at)
            self.player.seek(0.0)
            self.player.play()
            self.changed.emit()

    def go_in_row(self, at: int) -> None:
        if not self.lent and at != self._at:
            was, self._at = self._at, at
            place, timing = None, self.player.comparison.timing
            if timing[was] != timing[at]:
                place = same_place(self.row[was].frames, self.row[at].frames, self.player.position)
            self.player.choose(at, place)
            self.changed.emit()

    def exchange_row(self, sounds: Sequence[Sound], at: int) -> None:
        """Replace the sounds of the row; number ``at`` is the one being heard, which continues."""
        if not self.lent and self.row:
            part, length = self._looping.part, max(one.seconds for one in self.row)
            whole = part == (0.0, length) or (part is None and len(self.row) == 1)
            self.row, self._at = tuple(sounds), at
            self._load_row(keep_place=True)
            if whole and len(sounds) > 1 and self._repeats:
                self._looping.put((0.0, max(one.seconds for one in sounds)))
            else:
                self._looping.put_again()
            self.changed.emit()

    def _load_row(self, keep_place: bool = False) -> None:
        recordings, gains = [(one.samples, one.rate) for one in self.row], [self._gain_of(one) for one in self.row]
        alone, aligned = len(self.row) == 1, self._row_aligned
        self.player.load(recordings, gains, aligned=aligned, choice=self._at, keep_place=keep_place, alone=alone)

    def _leave_takes(self) -> None:
        if self.loaded:
            self._left, self._loop_left = self.loaded, (self._looping.part, self._looping.last)
        self._looping.forget()
        self._play_wanted = False
        self.loaded, self.row, self._at, self._envelope = (), (), 0, None

    @property
    def length(self) -> float:
        if self.sound is not None:
            return self.sound.seconds
        if self.player.streaming and self._envelope is not None:
            return self._envelope.seconds
        return self.duration

    @property
    def envelope(self) -> Envelope | None:
        """Outline of the sound being heard, without gain; ``None`` if none."""
        if self.sound is not None:
            return self.sound.envelope
        if self._envelope is not None:
            return self._envelope
        return dict(zip(LANES, self.analysis.envelopes, strict=False)).get(self.heard)

    # --- Transport ---------------------------------------------------------------------------------------------------
    def choose(self, side: str) -> None:
        """Hear a lane unless it is empty; from its beginning if another sound was in the player."""
        if self.takes[side] is not None and not self.lent and (side != self.heard or self.sound is not None):
            instead = self.sound is not None
            self.leave_sound()
            self.load_if_pending()
            if side != self.heard:
                self._heard_before = self.heard
            self.heard = side
            index = self._index(side)
            if index is not None:
                self.player.choose(index)
            if instead:
                self.player.play()
        self.changed.emit()

    def switch(self) -> None:
        """Hear the lane heard before; at first the other of A and B."""
        there = [lane for lane in (self._heard_before, *SIDES) if self.takes[lane] is not None and lane != self.heard]
        self.choose(self.heard if self.sound is not None or not there else there[0])

    def toggle_play(self) -> None:
        if self.lent:
            return
        if self.player.playing or self._play_wanted:
            self._play_wanted = False
            self.player.pause()
        elif self.sound is not None:
            self.player.play()
        elif self.analyser.busy:
            self._play_wanted = True
        else:
            self.load_if_pending()
            self.player.play()
        self.changed.emit()

    def stop(self) -> None:
        """Pause, and go to the start of the take or loop."""
        if not self.lent:
            self._play_wanted = False
            self.player.pause()
            self.go_to_start()

    def seek(self, seconds: float) -> None:
        if self.lent:
            return
        if not self.player.streaming and self.sound is None:
            self.load_if_pending()
        self.player.seek(max(0.0, min(seconds, self.length)))
        self.changed.emit()

    def seek_in_takes(self, seconds: float) -> None:
        """Go to a time in A and B, removing another sound from the player."""
        if not self.lent:
            self.leave_sound()
            self.seek(seconds)

    def loop_in_takes(self, start: float, end: float) -> None:
        if not self.lent:
            self.leave_sound()
            self.set_loop((start, end))

    def go_to_start(self) -> None:
        """Go to the start of the take or loop; keep playing."""
        self.seek(self.loop[0] if self.loop else 0.0)

    def move(self, seconds: float) -> None:
        self.seek(self.player.position + seconds)

    @property
    def loop(self) -> Part | None:
        return self._looping.part

    def set_loop(self, loop: Part | None) -> None:
        self._looping.put(loop)
        self.changed.emit()

    def toggle_loop(self) -> None:
        """Loop the region drawn last, or the part in view; or end the loop."""
        if not self.lent:
            self._looping.toggle(self.seen if self.complete else None, self.length)
            self.changed.emit()

    def set_loop_end(self, which: int) -> None:
        """Put the loop's start (0) or end (1) at the player's position."""
        if not self.lent:
            self._looping.put_end(which, self.length)
            self.changed.emit()

    def hear_from(self, side: str, seconds: float) -> None:
        if self.lent:
            return
        self.leave_sound()
        self.choose(side)
        self.seek(seconds)
        if not self.player.playing:
            self.toggle_play()

    def shut_down(self) -> None:
        self.player.close()
        self.analyser.shut_down()


def _sounds_the_same(one: Take | None, other: Take | None) -> bool:
    return one is not None and other is not None and one.id == other.id and one.samples is other.samples
