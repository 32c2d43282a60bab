"""The audio callback's mixer: any number of takes in memory, one clock, no locks.

The interface sends commands through a ``deque`` and reads a snapshot that is replaced as a whole; both are atomic in
CPython. Everything else belongs to the thread that calls :meth:`Mixer.render`, which takes no lock, allocates no take,
touches no Qt object and never raises.

At every jump (another take, a seek, the end of a loop, pause and resume, another gain), the old sound continues for 10
ms under the new one; where a stream is waited for, none fades: its samples end and begin as they are. The weights
follow the great circle between the two signals (spherical interpolation): ``sin(phi * x) / sin(phi)`` for the new sound
and ``sin(phi * (1 - x)) / sin(phi)`` for the old, where ``cos(phi)`` is the correlation of the two 10 ms to be mixed.
This keeps the power constant for *any* correlation: it is the equal-power fade (sine and cosine) for unrelated sounds
and the equal-gain fade (straight lines) for identical ones, where an equal-power fade would swell by 3 dB and betray
the switch. Negative correlations count as zero, so nothing is amplified beyond equal power. A jump during a fade waits
for its end, so that no fade is cut off.

MUSHRA requires another fade (BS.1534-3): the old sound fades out in 5 ms, then the new one fades in, both along a
raised cosine, so that the two never overlap. The clock keeps running."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from sys import maxsize
from typing import Concatenate, NamedTuple, ParamSpec

import numpy as np

FADE_SECONDS = 0.010
LAWS = 33
"""Fade laws are tabulated for correlations 0, 1/32 .. 1."""
OUT_AND_IN = LAWS
"""Index into :attr:`Mixer.fades` of the fade out and then in."""


def fade_laws(length: int) -> np.ndarray:
    """Weights (laws, 2, length) float32 of the entering and the leaving sound; see the module for the formula."""
    along = np.arange(1, length + 1) / (length + 1)
    laws = np.empty((LAWS, 2, length), np.float32)
    for index in range(LAWS):
        angle = np.arccos(index / (LAWS - 1))
        entering = np.sin(angle * along) / np.sin(angle) if angle > 0 else along
        laws[index] = entering, entering[::-1]
    return laws


def out_and_in(length: int) -> np.ndarray:
    """Weights (2, length) float32 of a fade out in the first half and in during the second."""
    half = length // 2
    rising = 0.5 - 0.5 * np.cos(np.pi * np.arange(1, half + 1) / (half + 1))
    law = np.zeros((2, length), np.float32)
    law[0, length - half :], law[1, :half] = rising, rising[::-1]
    return law


class Recording:
    """Mono float32 samples at the device's rate. While it grows, readers see whole appended blocks."""

    def __init__(self, samples: np.ndarray) -> None:
        self._state = (np.ascontiguousarray(samples, np.float32), len(samples), True)

    @classmethod
    def growing(cls) -> Recording:
        """An empty recording that :meth:`append` extends until :meth:`end`."""
        recording = cls(np.zeros(0, np.float32))
        recording._state = (np.zeros(1 << 19, np.float32), 0, False)  # Doubled when needed.
        return recording

    def append(self, samples: np.ndarray) -> None:
        """Append samples. From one thread only; the audio thread may be reading."""
        buffer, length, _ = self._state
        wanted = length + len(samples)
        if wanted > len(buffer):
            larger = np.zeros(max(wanted, 2 * len(buffer)), np.float32)
            larger[:length] = buffer[:length]
            buffer = larger
        buffer[length:wanted] = samples
        self._state = (buffer, wanted, False)  # Last: readers never see samples that are missing.

    def end(self) -> None:
        self._state = (self._state[0], self._state[1], True)

    @property
    def samples(self) -> np.ndarray:
        return self._state[0][: self._state[1]]

    @property
    def length(self) -> int:
        return self._state[1]

    @property
    def complete(self) -> bool:
        return self._state[2]

    def read(self, start: int, gain: float, out: np.ndarray) -> None:
        """Fill ``out`` from ``start`` on, with silence past the end."""
        buffer, length, _ = self._state
        count = min(len(out), max(0, length - start))
        np.multiply(buffer[start : start + count], gain, out=out[:count])
        out[count:] = 0


SHORTEST_LOOP_SECONDS = 0.1
SILENCE = -1
"""No take, in a :class:`Jump`."""
NO_FADE = -1
"""No fade, in :attr:`Jump.law`."""


class Programme(NamedTuple):
    recordings: tuple[Recording, ...] = ()
    gains: tuple[float, ...] = ()
    timing: tuple[int, ...] = ()
    """A number per recording: a switch between equal ones keeps the position, others restart. Empty: all are equal."""

    def same_timing(self, one: int, other: int) -> bool:
        return not self.timing or self.timing[one] == self.timing[other]


class Jump(NamedTuple):
    """A discontinuity of the output; the list of jumps suffices to recompute the output."""

    frame: int
    """Clock of the first affected frame."""
    leaving: int
    """Index of the take before, or ``SILENCE``; followed by its position and gain."""
    leaving_position: int
    leaving_gain: float
    entering: int
    entering_position: int
    entering_gain: float
    law: int
    """Index into :attr:`Mixer.fades`, or ``NO_FADE``."""


@dataclass(frozen=True, slots=True)
class State:
    """The audio thread's last report."""

    frame: int = 0
    """Frames rendered since the mixer was made."""
    choice: int = 0
    position: int = 0
    playing: bool = False
    loop: tuple[int, int] | None = None
    starving: bool = False
    obeyed: int = 0


class _Head(NamedTuple):
    choice: int
    recording: Recording
    gain: float
    position: int


_Given = ParamSpec("_Given")


def _queued(command: Callable[Concatenate[Mixer, _Given], None]) -> Callable[Concatenate[Mixer, _Given], None]:
    """``command``, called from the interface's thread and executed by the audio thread, or at once if none renders."""

    @wraps(command)
    def send(mixer: Mixer, /, *given: _Given.args, **named: _Given.kwargs) -> None:
        mixer._sent += 1
        mixer._commands.append(partial(command, mixer, *given, **named))
        if mixer.is_silent():
            mixer.settle()

    return send


class Mixer:
    """Plays takes at ``rate`` hertz into blocks of any size. See the module for the fades."""

    def __init__(self, rate: int, fade_seconds: float = FADE_SECONDS) -> None:
        self.rate = rate
        self.fade_length = max(1, round(fade_seconds * rate))
        self.fades = np.concatenate([fade_laws(self.fade_length), out_and_in(self.fade_length)[None]])
        self.jumps: deque[Jump] = deque(maxlen=4096)
        self.starvations = 0
        """Number of times a stream ran dry before its end."""
        self.starved_frames = 0
        self.fault = ""
        """Error in :meth:`render`, which then played silence; ``""`` if none."""
        self.is_silent: Callable[[], bool] = lambda: False
        """Whether nothing calls :meth:`render`."""
        self.state = State()
        self._commands: deque[Callable[[], None]] = deque()
        self._sent = 0
        self._handled = 0
        self.programme = Programme()
        self._choice = 0
        self._position = 0
        self._playing = False
        self._starving = False
        self._loop: tuple[int, int] | None = None
        self._clock = 0
        self._leaving: _Head | None = None
        self._law = 0
        self._out_and_in = False
        self._faded = self.fade_length
        self._scratch = np.zeros(self.fade_length, np.float32)
        self._ahead = np.zeros((2, self.fade_length), np.float32)

    # Commands, from the interface's thread.

    @_queued
    def load(self, programme: Programme, choice: int = 0, position: int = 0, keep_playing: bool = False) -> None:
        """Replace all recordings. Paused unless ``keep_playing`` and already playing."""
        before = self._head()
        self.programme, self._choice, self._starving = programme, choice, False
        _, end, _ = self._bounds(choice)
        self._position = max(0, min(position, end))
        self._playing = self._playing and keep_playing and self._position < end
        self._jump(before)

    @_queued
    def choose(self, index: int, position: int | None = None) -> None:
        """Switch to another take, at ``position``; by default at the same one for equal timing, else at the start."""
        if not 0 <= index < len(self.programme.recordings) or index == self._choice:
            return
        before, kept = self._head(), self.programme.same_timing(self._choice, index)
        self._choice = index
        start, end, _ = self._bounds(index)
        if position is not None:
            self._position = min(max(position, start), max(start, end - 1))
        elif not kept:
            self._position = start
        self._jump(before)

    @_queued
    def play(self) -> None:
        """Resume; at the end, restart from the beginning (or the loop's)."""
        start, end, _ = self._bounds(self._choice)
        if self._playing or not end:
            return
        if self._position >= end:
            self._position = start
        self._playing = True
        self._starving = not self.programme.recordings[self._choice].length
        self._jump(None)

    @_queued
    def pause(self) -> None:
        before = self._head()
        self._playing = False
        self._jump(before)

    @_queued
    def seek(self, position: int) -> None:
        """Go to a position in samples, limited to the loop if there is one."""
        before = self._head()
        start, end, looped = self._bounds(self._choice)
        if end == maxsize:
            end = self.programme.recordings[self._choice].length
        self._position = max(start, min(position, end - 1 if looped else end))
        if self._starving:
            self._starving = self._position >= self.programme.recordings[self._choice].length
        self._jump(before)

    @_queued
    def set_loop(self, loop: tuple[int, int] | None) -> None:
        """Loop over ``start <= position < end``, at least 0.1 s; ``None`` for no loop."""
        before = self._head()
        if loop is not None:
            start = max(0, loop[0])
            loop = (start, max(loop[1], start + self._shortest_loop))
        self._loop = loop
        start, end, looped = self._bounds(self._choice)
        if looped and not start <= self._position < end:
            self._position = start
        self._jump(before)

    @_queued
    def set_gains(self, gains: tuple[float, ...]) -> None:
        if len(gains) != len(self.programme.recordings):
            return  # Gains of takes replaced meanwhile.
        before = self._head()
        self.programme = self.programme._replace(gains=gains)
        self._jump(before, exact=self._position == 0)

    @_queued
    def fade_out_and_in(self, on: bool) -> None:
        """Fade out before fading in, instead of cross-fading; see the module."""
        self._out_and_in = on

    def settle(self) -> None:
        """Execute pending commands without sound. Only while nothing calls :meth:`render`."""
        self._faded = self.fade_length
        while self._commands:
            self._obey_next()
            self._faded = self.fade_length
        self._publish()

    @property
    def settled(self) -> bool:
        """Whether :attr:`state` reflects all commands sent."""
        return self.state.obeyed == self._sent

    # The audio thread.

    def render(self, out: np.ndarray) -> None:
        """Fill ``out`` (frames,) float32 with the next samples. Never raises."""
        done = 0
        try:
            while done < len(out):
                if self._faded >= self.fade_length:
                    self._obey_next()
                count = self._render_some(out[done:])
                done += count
                self._clock += count
        except Exception as error:
            # PortAudio would end the stream for good; pause and report instead.
            self.fault = f"The player failed and was paused ({type(error).__name__}: {error})."
            self._playing, self._leaving, self._faded = False, None, self.fade_length
            out[done:] = 0
            self._clock += len(out) - done
        self._publish()

    def _obey_next(self) -> None:
        while self._commands and self._faded >= self.fade_length:
            self._commands.popleft()()
            self._handled += 1

    def _render_some(self, out: np.ndarray) -> int:
        """Render until the next change; returns the number of frames, 0 if the change is immediate."""
        fading = self._faded < self.fade_length
        count = min(len(out), self.fade_length - self._faded) if fading else len(out)
        if not self._playing:
            out[:count] = 0
        else:
            recording = self.programme.recordings[self._choice]
            start, end, looped = self._bounds(self._choice)
            if not fading:
                if self._position >= end:
                    before = self._head()
                    self._position, self._playing = start if looped else self._position, looped
                    self._jump(before, exact=not looped)
                    return 0
                count = min(count, end - self._position)
            available = count if recording.complete else min(count, recording.length - self._position)
            if available > 0:
                count = available
                recording.read(self._position, self.programme.gains[self._choice], out[:count])
                if self._starving:
                    self._starving = False
                    self._jump(None, exact=True)
                self._position += count
            else:
                out[:count] = 0
                if recording.length:  # Waiting for the very first samples is latency, not starvation.
                    self.starvations += not self._starving
                    self.starved_frames += count
                if not self._starving:
                    before, self._starving = self._head(), True
                    self._jump(before, exact=True)
        if fading:
            self._mix_leaving(out[:count])
        return count

    def _mix_leaving(self, out: np.ndarray) -> None:
        part = slice(self._faded, self._faded + len(out))
        entering, leaving = self.fades[self._law]
        np.multiply(out, entering[part], out=out)
        if self._leaving is not None:
            scratch = self._scratch[: len(out)]
            self._leaving.recording.read(self._leaving.position + self._faded, self._leaving.gain, scratch)
            np.multiply(scratch, leaving[part], out=scratch)
            np.add(out, scratch, out=out)
        self._faded += len(out)
        if self._faded >= self.fade_length:
            self._leaving = None

    def _head(self) -> _Head | None:
        """What sounds: nothing while a stream is waited for, whose next samples begin as they are."""
        if not self._playing or self._starving:
            return None
        programme = self.programme
        return _Head(self._choice, programme.recordings[self._choice], programme.gains[self._choice], self._position)

    def _jump(self, before: _Head | None, exact: bool = False) -> None:
        """Record a jump and fade, unless ``exact`` or a take starts at its beginning."""
        after = self._head()
        if after == before:
            return
        if exact or (before is None and after is not None and after.position == 0):
            law = NO_FADE
        else:
            law = self._choose_law(before, after)
            self._law, self._leaving, self._faded = law, before, 0
        self.jumps.append(
            Jump(
                self._clock,
                *((SILENCE, 0, 0.0) if before is None else (before.choice, before.position, before.gain)),
                *((SILENCE, 0, 0.0) if after is None else (after.choice, after.position, after.gain)),
                law,
            )
        )

    def _choose_law(self, before: _Head | None, after: _Head | None) -> int:
        if self._out_and_in:
            return OUT_AND_IN
        if before is None or after is None:
            return 0
        for head, ahead in zip((before, after), self._ahead, strict=True):
            head.recording.read(head.position, 1.0, ahead)
        power = float(self._ahead[0] @ self._ahead[0]) * float(self._ahead[1] @ self._ahead[1])
        if power <= 0:
            return 0
        correlation = float(self._ahead[0] @ self._ahead[1]) / power**0.5
        return round(min(1.0, max(0.0, correlation)) * (LAWS - 1))

    def _bounds(self, index: int) -> tuple[int, int, bool]:
        """First position, end, and whether the end loops back."""
        programme = self.programme
        considered = (one for at, one in enumerate(programme.recordings) if programme.same_timing(index, at))
        length = max((one.length if one.complete else maxsize for one in considered), default=0)
        if self._loop is not None:
            start, end = self._loop[0], min(self._loop[1], length)
            if end - start >= self._shortest_loop:
                return start, end, True
        return 0, length, False

    @property
    def _shortest_loop(self) -> int:
        return max(2 * self.fade_length, round(SHORTEST_LOOP_SECONDS * self.rate))

    def _publish(self) -> None:
        starving = self._playing and self._starving
        self.state = State(
            self._clock, self._choice, self._position, self._playing, self._loop, starving, self._handled
        )
