"""The player: one output stream, opened once and kept open, silent when idle.

The stream's callback renders the :class:`~paretone_app.audio.mixer.Mixer`, which receives all commands. Without a
device, or after its loss, the player keeps takes, choice and position but makes no sound, and :attr:`Player.problem`
gives the reason. Use it from one thread, the interface's; only :meth:`Player.prepare` may be called from others."""

import contextlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from paretone.audio.resampling import Resampler, resample
from paretone.audio.sound_system import OutputDevice, Sound, probe
from paretone.errors import DeviceError
from paretone_app.audio.mixer import Mixer, Programme, Recording, State
from paretone_app.numbers import fixed

ALIGNMENT_TOLERANCE = 0.020
"""Never switch sample-synchronously between takes whose lengths differ by more than this many seconds."""


class Mode(StrEnum):
    """Effect of a switch on the position."""

    SYNC = "sync"
    RESTART = "restart"
    STREAM = "stream"
    ALONE = "alone"


@dataclass(frozen=True)
class Switching:
    """The active mode, and the reason as a sentence."""

    mode: Mode
    reason: str
    timing: tuple[int, ...] = ()
    """See :class:`~paretone_app.audio.mixer.Programme`."""


def comparison(seconds: Sequence[float], aligned: bool | Sequence[bool] = True) -> Switching:
    """The mode for takes of these lengths. ``aligned``: whether their models keep the timing between takes. Given for
    each, switches between some may keep the position; given for all, either all do or none."""
    keeps = [aligned] * len(seconds) if isinstance(aligned, bool) else aligned
    timing: list[int] = []
    for at, length in enumerate(seconds):
        near = (one for one in range(at) if keeps[one] and abs(seconds[one] - length) <= ALIGNMENT_TOLERANCE)
        timing.append(next((timing[one] for one in near if keeps[at]), at))
    apart = len(set(timing))
    if apart <= 1:
        return Switching(Mode.SYNC, "The takes have the same timing, so a switch keeps the position.", tuple(timing))
    if apart < len(timing) and not isinstance(aligned, bool):
        reason = "Takes with the same timing keep the position; a switch to others starts from the beginning."
        return Switching(Mode.RESTART, reason, tuple(timing))
    reason = "Timing differs between takes, so a switch starts from the beginning."
    if all(keeps):
        spread = fixed(max(seconds) - min(seconds), 2)
        reason = f"The takes differ by {spread} s in length, so a switch starts from the beginning."
    return Switching(Mode.RESTART, reason, tuple(range(len(timing))))


DEFAULT_RATE = 48000
BLOCK_SECONDS = 0.010
LATENCY_SECONDS = 0.2
"""Less gives underruns when a busy engine thread shares the interpreter with the callback."""
_BLOCKS_REMEMBERED = 256


class BlockTimes:
    """When blocks are heard, less a constant latency, if a device asks for several at once: one after the other."""

    def __init__(self) -> None:
        self._end = 0.0

    def begin(self, now: float, seconds: float, buffered: float) -> float:
        """Begin of a block of ``seconds`` that is asked for ``now``, by a device that buffers ``buffered`` seconds."""
        began = max(now, min(now + buffered, self._end))
        self._end = began + 0.98 * seconds  # A little earlier: after a delay, times return to the device's.
        return began


class Player:
    """Plays takes and streams through one device; silent before :meth:`open`."""

    def __init__(self, device: int | str | None = None, latency: float = LATENCY_SECONDS) -> None:
        self.device = device
        """A PortAudio index, part of a name, or ``None`` for the system default. Read by :meth:`open`."""
        self.latency = latency
        self.comparison = comparison(())
        self.underruns = 0
        """Blocks that came too late while something was playing."""
        self.device_name = ""
        self.opening = False
        """Whether a device is looked for: what is played meanwhile comes before the silence that it would buffer."""
        self._stream: Any = None
        self._finished = False
        self._problem = "The audio device has not been opened yet."
        self._blocks: list[tuple[float, State, int]] = []
        self._use_mixer(DEFAULT_RATE)
        self._loaded: tuple[tuple[np.ndarray, int], ...] = ()
        self._gains: tuple[float, ...] = ()
        self._loop: tuple[float, float] | None = None
        self._out_and_in = False
        self._converted: dict[tuple[int, int, int], tuple[np.ndarray, Recording]] = {}
        self._incoming: tuple[Recording, Resampler] | None = None
        self._turn = 0
        self._times = BlockTimes()
        self._last_block = 0.0
        self._mono = np.zeros(0, np.float32)

    @property
    def usable(self) -> bool:
        return not self.problem

    @property
    def problem(self) -> str:
        """Why nothing can be heard, as a sentence; ``""`` if all is well. Cheap to poll."""
        if self._stream is None:
            return self._problem
        try:
            active = not self._finished and self._stream.active
        except Exception:
            active = False
        if not active:
            return (
                f"The audio device '{self.device_name}' is gone. Playback is off; everything else works. "
                "Plug it in and press Reconnect."
            )
        if time.monotonic() - self._last_block > 3.0 + self.latency:
            return (
                f"The audio device '{self.device_name}' has stopped playing. Press Reconnect, or choose another device."
            )
        return self.mixer.fault

    def open(self, sound: Sound | None = None) -> None:
        """Open the device and start its stream; ``sound``: a recent :func:`probe`. Raises :class:`DeviceError`."""
        self.close()
        sound = probe() if sound is None else sound
        if not sound.usable:
            raise self._fail(sound.reason)
        chosen = sound.device(self.device)
        if chosen is None:
            raise self._fail(f"There is no audio output device '{self.device}'. Choose another one.")
        # Imported here because the import touches the sound system; the probe has checked it.
        known = "sounddevice" in sys.modules
        import sounddevice

        try:
            if known:
                # PortAudio lists devices once, at initialisation; there is no public call to refresh the list.
                sounddevice._terminate()
                sounddevice._initialize()
            rate = _best_rate(sounddevice, chosen)
            self._use_rate(rate)
            self.device_name, self._finished, self.underruns = chosen.name, False, 0
            self._last_block = time.monotonic()
            self._stream = sounddevice.OutputStream(
                samplerate=rate,
                blocksize=round(BLOCK_SECONDS * rate),
                device=chosen.index,
                channels=min(2, chosen.channels),
                dtype="float32",
                latency=self.latency,
                callback=self._play_block,
                finished_callback=self._on_finished,
            )
            self._stream.start()
        except sounddevice.PortAudioError as error:
            self.close()
            raise self._fail(
                f"The audio device '{chosen.name}' could not be opened ({error.args[0]}). "
                "Close other programs that use it, or choose another device."
            ) from error
        self._problem = ""

    def close(self) -> None:
        """Stop and close the stream at once; keep takes, choice and position."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        self._problem = "The audio device is closed."
        stream.abort(ignore_errors=True)
        stream.close(ignore_errors=True)
        self.mixer.pause()
        self._blocks = [(0.0, self.mixer.state, 0)] * _BLOCKS_REMEMBERED

    @property
    def rate(self) -> int:
        return self.mixer.rate

    def prepare(self, samples: np.ndarray, rate: int) -> Recording:
        """Convert to the device's rate, once: ahead of :meth:`load`, callable from other threads."""
        key = (id(samples), rate, self.rate)
        if key not in self._converted:
            # Keep the samples, so that no other array can get the same id.
            self._converted[key] = (samples, Recording(resample(samples, rate, self.rate)))
        return self._converted[key][1]

    def load(
        self,
        takes: Sequence[tuple[np.ndarray, int]],
        gains: Sequence[float] | None = None,
        *,
        aligned: bool | Sequence[bool] = True,
        choice: int = 0,
        keep_place: bool = False,
        alone: bool = False,
    ) -> None:
        """Load these takes, (samples (n,), rate) each, with linear gains, paused. ``aligned``: as for
        :func:`comparison`; ``keep_place``: continue at the same position, for a take that replaces the stream or its
        own earlier version; ``alone``: a single sound, not a comparison."""
        self._incoming = None
        self._loaded = tuple((samples, rate) for samples, rate in takes)
        self._gains = tuple(gains) if gains is not None else (1.0,) * len(self._loaded)
        self.comparison = comparison([len(samples) / rate for samples, rate in self._loaded], aligned)
        if alone:
            self.comparison = Switching(Mode.ALONE, "This sound plays separately from A and B.")
        programme = self._programme()
        kept = {(id(samples), rate, self.rate) for samples, rate in self._loaded}
        # list() is a snapshot: another thread may be preparing a take.
        self._converted = {key: value for key, value in list(self._converted.items()) if key in kept}
        position = self.mixer.state.position if keep_place else 0
        self.mixer.load(programme, min(choice, max(0, len(takes) - 1)), position, keep_place)

    def set_gains(self, gains: Sequence[float]) -> None:
        self._gains = tuple(gains)
        self.mixer.set_gains(self._gains)

    def begin_stream(self, rate: int) -> None:
        """Play the samples from :meth:`append` as they arrive, instead of the loaded takes."""
        recording = Recording.growing()
        self._incoming = (recording, Resampler(rate, self.rate))
        self._loaded, self._gains = (), ()
        self.comparison = Switching(Mode.STREAM, "The take plays while it is synthesised.")
        self.set_loop(None)
        self.mixer.load(Programme((recording,), (1.0,)))
        if self.usable:
            self.mixer.play()

    def append(self, samples: np.ndarray) -> None:
        """Append to the stream, (n,) mono at the rate given to :meth:`begin_stream`. Ignored without a stream."""
        if self._incoming is not None:
            recording, converter = self._incoming
            recording.append(converter.push(samples))

    def end_stream(self) -> None:
        """End the stream; its samples are played to the end."""
        if self._incoming is not None:
            recording, converter = self._incoming
            recording.append(converter.finish())
            recording.end()
            self._incoming = None

    @property
    def streaming(self) -> bool:
        """Whether a stream is being received or heard."""
        if self.comparison.mode is not Mode.STREAM:
            return False
        return self._incoming is not None or self.busy

    @property
    def busy(self) -> bool:
        """Whether something plays or is about to: the callback may not have executed the commands yet."""
        return self.playing or not (self._finished or self.mixer.settled)

    # Transport. Without a device, these move the position silently.

    def play(self) -> None:
        """Play from the current position; ignored without a device."""
        if self.usable or self.opening:
            self.mixer.play()

    def pause(self) -> None:
        self.mixer.pause()

    def seek(self, seconds: float) -> None:
        self.mixer.seek(round(seconds * self.rate))

    def choose(self, index: int, seconds: float | None = None) -> None:
        """Switch to the take with this index, at ``seconds``; by default as :attr:`comparison` says."""
        self.mixer.choose(index, None if seconds is None else round(seconds * self.rate))

    def set_loop(self, loop: tuple[float, float] | None) -> None:
        """Loop from and to these seconds; ``None`` for no loop."""
        self._loop = loop
        self.mixer.set_loop(None if loop is None else (round(loop[0] * self.rate), round(loop[1] * self.rate)))

    def fade_out_and_in(self, on: bool) -> None:
        """Fade out for 5 ms before fading in for 5 ms, as MUSHRA requires, instead of cross-fading."""
        self._out_and_in = on
        self.mixer.fade_out_and_in(on)

    @property
    def playing(self) -> bool:
        return self.mixer.state.playing and self._stream is not None and not self._finished

    @property
    def choice(self) -> int:
        return self.mixer.state.choice

    @property
    def position(self) -> float:
        """Position in the take of the sound leaving the loudspeaker now, in seconds: device latency subtracted."""
        if self._stream is None or self._finished:
            return self.mixer.state.position / self.rate
        heard = time.monotonic() - self.output_latency
        newest = (0.0, self.mixer.state, 0)
        for entry in tuple(self._blocks):
            if newest[0] <= entry[0] <= heard:
                newest = entry
        written, state, frames = newest
        if not state.playing:
            # Nothing is on its way to the loudspeaker, so a seek shows at once.
            return self.mixer.state.position / self.rate if not self.playing else state.position / self.rate
        return (state.position + min(frames, round((heard - written) * self.rate))) / self.rate

    @property
    def output_latency(self) -> float:
        """Seconds from the callback to the loudspeaker, according to PortAudio."""
        return float(self._stream.latency) if self._stream is not None else 0.0

    @property
    def starvations(self) -> int:
        """Times that playback waited for a stream; device underruns are counted separately."""
        return self.mixer.starvations

    @property
    def starved_seconds(self) -> float:
        """Total seconds that playback waited for streams."""
        return self.mixer.starved_frames / self.rate

    def _play_block(self, out: np.ndarray, frames: int, _time: object, status: Any) -> None:
        before = self.mixer.state
        if frames > len(self._mono):
            self._mono = np.zeros(frames, np.float32)
        mono = self._mono[:frames]
        self.mixer.render(mono)
        out[:] = mono[:, None]
        after = self.mixer.state
        if status.output_underflow and (before.playing or after.playing):
            self.underruns += 1
        now = time.monotonic()
        begun = self._times.begin(now, frames / self.rate, self.output_latency)
        # One assignment each: readers see a complete entry, old or new.
        self._blocks[self._turn % _BLOCKS_REMEMBERED] = (begun, before if after.playing else after, frames)
        self._turn += 1
        self._last_block = now

    def _on_finished(self) -> None:
        self._finished = True

    def _fail(self, sentence: str) -> DeviceError:
        self._problem = sentence
        return DeviceError(sentence)

    def _use_mixer(self, rate: int) -> None:
        self.mixer = Mixer(rate)
        self.mixer.is_silent = lambda: self._stream is None or self._finished
        self._blocks = [(0.0, self.mixer.state, 0)] * _BLOCKS_REMEMBERED

    def _programme(self) -> Programme:
        recordings = tuple(self.prepare(samples, rate) for samples, rate in self._loaded)
        return Programme(recordings, self._gains, self.comparison.timing)

    def _use_rate(self, rate: int) -> None:
        if rate == self.rate:
            return
        before, seconds = self.mixer.state, self.mixer.state.position / self.rate
        self._use_mixer(rate)
        self._incoming = None  # A stream under way cannot be converted again: drop the rest.
        self.set_loop(self._loop)
        self._converted = {}
        self.mixer.fade_out_and_in(self._out_and_in)
        self.mixer.load(self._programme(), before.choice, round(seconds * rate))
        if before.playing:
            self.mixer.play()


def _best_rate(sounddevice: Any, device: OutputDevice) -> int:
    """The rate to open ``device`` with. PortAudio reports 44100 Hz for every ALSA device that supports it, although
    sound servers usually run at 48000 and would convert again. All other hosts report the real rate of their mixer."""
    if device.host == "ALSA":
        with contextlib.suppress(sounddevice.PortAudioError):
            sounddevice.check_output_settings(device=device.index, channels=1, dtype="float32", samplerate=DEFAULT_RATE)
            return DEFAULT_RATE
    return device.rate
