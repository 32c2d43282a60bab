"""A take: one synthesis under one setting, with what was measured and what was seen inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from paretone.sampling.demasking_schedule import Block
from paretone.setting.setting import Setting

BUSY_SHARE = 0.1
"""Share of the cores above which other processes make a take's times doubtful."""
_TICK_SECONDS = 0.02
"""A system counts the time of each core in ticks of 10 ms, so that a difference of two counts is uncertain by two."""


@dataclass(frozen=True)
class Measurements:
    """Measurements of one synthesis.

    Seconds are wall seconds; load and warm-up are excluded. The real-time factor is ``seconds / audio_seconds`` with
    *new* audio only (the prompt excluded).
    """

    seconds: float = 0.0
    audio_seconds: float = 0.0
    first_audio_seconds: float = 0.0
    """Seconds from the request to the first audio that can be played (TTFA)."""
    largest_gap_seconds: float = 0.0
    """The longest wait from one piece of audio to the next; 0 if it came in one piece."""
    text_seconds: float = 0.0
    backbone_seconds: float = 0.0
    decoder_seconds: float = 0.0
    evaluations: int = 0
    """Backbone evaluations (one evaluation runs all branches); of language models those of target and draft."""
    tokens: int = 0
    """Speech tokens committed; 0 for models without tokens."""
    target_passes: int = 0
    """Number of passes of the language model over new tokens, without draft and prompt."""
    ops_ratio: float = 1.0
    """Backbone operations over those of the same setting without techniques; see ``OperationCounts``. Of language
    models: over those of plain decoding of the same tokens; see :mod:`paretone.models.families.language`."""
    peak_memory_bytes: int = 0
    device: str = ""
    streaming_difference: float | None = None
    """Difference of streamed audio from the same tokens decoded at once: root mean square of the difference over that
    of the audio, in decibels, of the passage if it is most. ``None`` if both are equal, as with every decoder that
    streams exactly."""
    pause_seconds: float | None = None
    """Total seconds that playback, started with the first piece, would have waited for later ones; ``None`` if not
    measured."""
    cpu_seconds: float | None = None
    """CPU seconds of all threads of the process; ``None`` if not measured, as on a GPU, and of earlier versions."""
    other_seconds: float | None = None
    """CPU seconds of other processes on :attr:`cores` meanwhile; ``None`` if the system does not say."""
    cores: int = 0
    """Number of cores, hyper-threads included, that the process may use."""

    @property
    def real_time_factor(self) -> float:
        """Wall seconds per second of new audio; 0 when there is no audio."""
        return self.seconds / self.audio_seconds if self.audio_seconds else 0.0

    @property
    def cpu_time_factor(self) -> float | None:
        """CPU seconds of the process per second of new audio."""
        return None if self.cpu_seconds is None or not self.audio_seconds else self.cpu_seconds / self.audio_seconds

    @property
    def other_share(self) -> float | None:
        """Share of the cores that other processes took meanwhile, from 0 to 1; ``None`` if unknown."""
        if self.other_seconds is None or not self.cores or not self.seconds:
            return None
        return min(1.0, self.other_seconds / (self.seconds * self.cores))

    @property
    def busy(self) -> bool:
        """Whether other processes took more than :data:`BUSY_SHARE` of the cores, by more than the system's counting is
        uncertain: the times are then doubtful."""
        if self.other_seconds is None:
            return False
        return self.other_seconds > (BUSY_SHARE * self.seconds + _TICK_SECONDS) * self.cores

    @property
    def tokens_per_pass(self) -> float:
        """Committed tokens for each pass of the language model; 0 for models without tokens."""
        return self.tokens / self.target_passes if self.target_passes else 0.0


@dataclass(frozen=True)
class Metrics:
    """Metrics of the sound of one take: alone, and against its baseline if that has the same words, timing and noise.
    ``None``: not measured, or not measurable.

    What each one is, exactly: :mod:`paretone.measure.loudness`, :mod:`paretone.measure.fidelity`,
    :mod:`paretone.measure.pitch`; of those below the line, which judges give, :mod:`paretone.measure.evaluation`.
    """

    loudness: float | None = None
    """Integrated, LUFS (ITU-R BS.1770-5); ``None`` for silence."""
    true_peak: float | None = None
    """dB of full scale; ``None`` for silence."""
    clipping: float | None = None
    """Share of samples at full scale or beyond."""
    silence: float | None = None
    """Share of frames that are silent."""
    mel_cepstral_distortion: float | None = None
    """dB, to the baseline."""
    pitch_error: float | None = None
    """Root mean square difference in semitones to the baseline, where both are voiced."""
    voicing_error: float | None = None
    """Share of frames of which only one of the two is voiced."""
    timbre_distance: float | None = None
    """dB between the long-term spectral envelopes, to the baseline."""
    naturalness: float | None = None
    """Predicted mean opinion score, 1 to 5."""
    voice_similarity: float | None = None
    """Cosine between the speaker embeddings of the take and of its voice's recording."""
    pitch_range: float | None = None
    """Standard deviation of the natural logarithm of the fundamental frequency where voiced."""


ACCEPTED, DECODED, RESAMPLED, BONUS = "accepted", "decoded", "resampled", "bonus"
"""Outcomes of tokens: drafted and accepted; decoded by the model alone; drawn again after a rejected draft; the model's
own after a draft that was accepted in full."""


@dataclass(frozen=True)
class DecodingCycle:
    """One pass of the language model: a single token, or a draft and its verification."""

    tokens: tuple[int, ...]
    """Committed tokens, without a stop."""
    drafted: tuple[int, ...] = ()
    """Drafted tokens; ids from :attr:`DecodingTrace.codes` on are stops."""
    accepted: int = 0
    """Number of accepted drafts; the next one, if any, was rejected."""
    outcome: str = DECODED
    """Outcome of the last of ``tokens``: ``DECODED``, ``RESAMPLED`` or ``BONUS``; it may also be accepted if the cycle
    ended with a stop."""
    acceptance: tuple[float, ...] = ()
    """The probability with which each drafted token that was looked at would be accepted."""
    draft_seconds: float = 0.0
    target_seconds: float = 0.0


@dataclass(frozen=True)
class DecodingTrace:
    """Decoding of a take's speech tokens, without those of the prompt."""

    token_rate: float
    """Tokens a second of speech."""
    codes: int
    """Size of the codebook."""
    passages: tuple[tuple[DecodingCycle, ...], ...] = ()
    """One entry per chunk of the text."""
    starts: tuple[float, ...] = ()
    """When each chunk begins in the audio, in seconds."""
    run_away: tuple[bool, ...] = ()
    """Whether a chunk was cut off because it did not stop by itself."""

    def to_json(self) -> dict:
        """Plain JSON values; :meth:`from_json` reads them back. Probabilities and times are rounded."""
        return {
            "token_rate": self.token_rate,
            "codes": self.codes,
            "passages": [[_cycle_json(one) for one in cycles] for cycles in self.passages],
            "starts": list(self.starts),
            "run_away": list(self.run_away),
        }

    @classmethod
    def from_json(cls, data: Mapping) -> DecodingTrace:
        """Read what :meth:`to_json` wrote. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError`."""
        passages = tuple(tuple(_cycle(*one) for one in cycles) for cycles in data["passages"])
        return cls(data["token_rate"], data["codes"], passages, tuple(data["starts"]), tuple(data["run_away"]))

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(token for cycles in self.passages for cycle in cycles for token in cycle.tokens)

    @property
    def cycles(self) -> tuple[DecodingCycle, ...]:
        return tuple(cycle for cycles in self.passages for cycle in cycles)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Outcome of each committed token."""
        return tuple(
            ACCEPTED if place < cycle.accepted else cycle.outcome
            for cycle in self.cycles
            for place in range(len(cycle.tokens))
        )

    @property
    def cycle_of(self) -> tuple[int, ...]:
        return tuple(number for number, cycle in enumerate(self.cycles) for _ in cycle.tokens)

    @property
    def seconds_of(self) -> tuple[float, ...]:
        """When each committed token is heard, in seconds from the beginning of the audio."""
        return tuple(
            start + place / self.token_rate
            for start, cycles in zip(self.starts, self.passages, strict=True)
            for place in range(sum(len(cycle.tokens) for cycle in cycles))
        )


def _cycle_json(cycle: DecodingCycle) -> list:
    """As a list: there are many of them, and what is left out at its end is as by default."""
    acceptance = [round(one, 4) for one in cycle.acceptance]
    seconds = round(cycle.target_seconds, 6), round(cycle.draft_seconds, 6)
    whole = [list(cycle.tokens), *seconds, cycle.outcome, list(cycle.drafted), cycle.accepted, acceptance]
    return whole if cycle.drafted or cycle.outcome != DECODED else whole[:2]


def _cycle(
    tokens: list[int],
    target_seconds: float,
    draft_seconds: float = 0.0,
    outcome: str = DECODED,
    drafted: Sequence[int] = (),
    accepted: int = 0,
    acceptance: Sequence[float] = (),
) -> DecodingCycle:
    return DecodingCycle(
        tuple(tokens), tuple(drafted), accepted, outcome, tuple(acceptance), draft_seconds, target_seconds
    )


@dataclass(frozen=True)
class DemaskedPassage:
    """Demasking of the codes of one chunk. All arrays are (codebooks, frames)."""

    codes: np.ndarray = field(repr=False, compare=False)
    """Committed codes, int32."""
    order: np.ndarray = field(repr=False, compare=False)
    """The step, from 0, that committed each code, int16."""
    probability: np.ndarray = field(repr=False, compare=False)
    """Probability of each code when it was committed, after guidance, float32."""
    steps: int
    start: float
    """When the first frame begins in the audio, in seconds; below 0 if silence was cut off at the beginning."""
    blocks: tuple[Block, ...] = ()
    """Blocks in their order; a single one if the canvas was filled in as a whole."""

    def known(self, step: int, mask: int) -> np.ndarray:
        """The codes (codebooks, frames) as they were after ``step``, ``mask`` if none was committed yet."""
        return np.where(self.order <= step, self.codes, mask)

    def to_json(self) -> dict:
        """Plain JSON values; :meth:`from_json` reads them back. Probabilities are rounded."""
        return {
            "codes": self.codes.tolist(),
            "order": self.order.tolist(),
            "probability": np.round(self.probability.astype(np.float64), 4).tolist(),
            "steps": self.steps,
            "start": self.start,
            "blocks": [[one.start, one.end, one.steps] for one in self.blocks],
        }

    @classmethod
    def from_json(cls, data: Mapping) -> DemaskedPassage:
        """Read what :meth:`to_json` wrote. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError`."""
        codes, order = np.array(data["codes"], np.int32), np.array(data["order"], np.int16)
        probability = np.array(data["probability"], np.float32)
        if not codes.ndim == 2 or not codes.shape == order.shape == probability.shape:
            raise ValueError(f"Codes {codes.shape}, steps {order.shape} and probabilities {probability.shape} differ.")
        blocks = tuple(Block(*one) for one in data["blocks"])
        return cls(codes, order, probability, int(data["steps"]), float(data["start"]), blocks)


@dataclass(frozen=True)
class DemaskingTrace:
    """Demasking of a take's codes, without those of the prompt."""

    frame_seconds: float
    mask: int
    """The code that stands for none."""
    passages: tuple[DemaskedPassage, ...] = ()
    """One entry per chunk of the text."""

    def to_json(self) -> dict:
        """Plain JSON values; :meth:`from_json` reads them back."""
        passages = [one.to_json() for one in self.passages]
        return {"frame_seconds": self.frame_seconds, "mask": self.mask, "passages": passages}

    @classmethod
    def from_json(cls, data: Mapping) -> DemaskingTrace:
        """Read what :meth:`to_json` wrote. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError`."""
        passages = tuple(map(DemaskedPassage.from_json, data["passages"]))
        return cls(float(data["frame_seconds"]), int(data["mask"]), passages)


@dataclass(frozen=True)
class Trace:
    """Internals of a synthesis: one entry per chunk and step."""

    step_seconds: tuple[tuple[float, ...], ...] = ()
    chunk_texts: tuple[str, ...] = ()
    chunk_seconds: tuple[float, ...] = ()
    mel: np.ndarray | None = field(default=None, repr=False, compare=False)
    """The generated log-mel spectrogram, (frames, bands), natural logarithm; ``None`` for models without one."""
    computed: tuple[tuple[float, ...], ...] = ()
    """Computed share of each backbone evaluation, by operations: 1 if nothing was skipped."""
    decoding: DecodingTrace | None = None
    demasking: DemaskingTrace | None = None

    @property
    def drawn_mel(self) -> np.ndarray:
        """:attr:`mel`, of models that draw one. Raises :class:`ValueError` for others."""
        if self.mel is None:
            raise ValueError("The model draws no mel spectrogram.")
        return self.mel


@dataclass(frozen=True)
class Take:
    """One synthesis as people listen to it. ``samples`` are float32 mono."""

    id: str
    created: str
    """UTC, ISO 8601."""
    text: str
    voice: str
    setting: Setting
    sample_rate: int
    samples: np.ndarray = field(repr=False, compare=False)
    measurements: Measurements = field(default_factory=Measurements)
    trace: Trace = field(default_factory=Trace, repr=False, compare=False)
    label: str = ""
    starred: bool = False
    fidelity_to: str = ""
    """Id of the baseline take that ``log_mel_distance`` is measured against, or ``""``."""
    log_mel_distance: float | None = None
    notes: tuple[str, ...] = ()
    machine: str = ""
    metrics: Metrics = field(default_factory=Metrics)
    checkpoint: str = ""
    """SHA-256 of the model's weights, hexadecimal; ``""`` for takes of earlier versions, which did not keep it."""
    unfinished: str = ""
    """Why passages of the text are missing, such as ``cancelled after 12 of 126 passages``; ``""`` if none is. Such a
    take is heard, but not compared."""
    repeats: tuple[Measurements, ...] = field(default=(), repr=False)
    """Measurements of the same setting timed again; :attr:`measurements` then has the medians of their times."""

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.sample_rate


class Timed(Protocol):
    """A take that can be timed again, with its audio or without."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def measurements(self) -> Measurements: ...
    @property
    def repeats(self) -> tuple[Measurements, ...]: ...


AnyTimed = TypeVar("AnyTimed", bound=Timed)


def repeated(take: AnyTimed, runs: Sequence[Measurements]) -> AnyTimed:
    """``take`` timed again in ``runs``: its times are the medians of all repeats."""
    repeats = (*take.repeats, *runs)
    medians: dict[str, Any] = {}
    for name in _TIMES:
        values = [value for one in repeats if (value := getattr(one, name)) is not None]
        medians[name] = median(values) if values else None
    measured = replace(take.measurements, cores=repeats[-1].cores, **medians)
    return replace(take, measurements=measured, repeats=repeats)


_TIMES = (
    "seconds",
    "first_audio_seconds",
    "largest_gap_seconds",
    "text_seconds",
    "backbone_seconds",
    "decoder_seconds",
    "pause_seconds",
    "cpu_seconds",
    "other_seconds",
)
"""Times of a take, which differ between repeats."""
