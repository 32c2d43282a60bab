"""A take: one synthesis under one setting, with its measurements and its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from statistics import median
from typing import Any, TypeVar

import numpy as np

from paretone.sampling.demasking_schedule import Block
from paretone.setting.setting import Setting

BUSY_SHARE = 0.1
"""Share of the cores above which other processes make a take's times doubtful."""
_TICK_SECONDS = 0.02
"""Systems count each core's time in ticks of 10 ms: a difference of two counts is uncertain by two ticks."""


SERVED = "server"
"""Device of replies of a server: nothing within it was measured."""


@dataclass(frozen=True)
class Measurements:
    """Measurements of one synthesis. Seconds are wall seconds without loading and warm-up. The real-time factor is
    ``seconds / audio_seconds`` with *new* audio only (without the prompt)."""

    seconds: float = 0.0
    """0 for takes that were not timed."""
    audio_seconds: float = 0.0
    first_audio_seconds: float = 0.0
    """Seconds from the request to the first playable audio (TTFA)."""
    largest_gap_seconds: float = 0.0
    """Longest wait between two pieces of audio; 0 for a single piece."""
    text_seconds: float = 0.0
    backbone_seconds: float = 0.0
    decoder_seconds: float = 0.0
    evaluations: int = 0
    """Backbone evaluations (each runs all branches); for language models those of target and draft."""
    tokens: int = 0
    """Speech tokens committed; 0 for models without tokens."""
    target_passes: int = 0
    """Passes of the language model over new tokens, without draft and prompt."""
    ops_ratio: float = 1.0
    """Backbone operations over those of the same setting without techniques; see ``OperationCounts``. For language
    models: over those of plain decoding of the same tokens; see :mod:`paretone.models.families.language`."""
    peak_memory_bytes: int = 0
    device: str = ""
    streaming_difference: float | None = None
    """Difference of streamed audio from the same tokens decoded at once: root mean square of the difference over that
    of the audio, in decibels, maximum over the passages. ``None`` if equal, as with every exactly streaming decoder."""
    pause_seconds: float | None = None
    """Seconds that playback, started with the first piece, would have waited for later ones; ``None`` if unknown."""
    cpu_seconds: float | None = None
    """CPU seconds of all threads of the process; ``None`` if not measured: on a GPU, and in earlier versions."""
    other_seconds: float | None = None
    """CPU seconds of other processes on :attr:`cores` during synthesis; ``None`` if unknown."""
    cores: int = 0
    """Number of cores available to the process, hyper-threads included."""
    vocoder_seconds: float | None = None
    """Share of :attr:`decoder_seconds`, if the decoder has a flow and a vocoder; the rest is the flow's."""

    @property
    def real_time_factor(self) -> float:
        """Wall seconds per second of new audio; 0 without audio."""
        return self.seconds / self.audio_seconds if self.audio_seconds else 0.0

    @property
    def untimed(self) -> Measurements:
        """Without times and memory, as of a take that was spoken with others."""
        kept = "audio_seconds", "evaluations", "tokens", "target_passes", "ops_ratio", "device", "streaming_difference"
        return Measurements(**{name: getattr(self, name) for name in kept})

    @property
    def flow_seconds(self) -> float | None:
        """Decoder's time without its vocoder's; ``None`` unless it has both."""
        return None if self.vocoder_seconds is None else self.decoder_seconds - self.vocoder_seconds

    @property
    def backbone_time_factor(self) -> float | None:
        """Backbone wall seconds per second of new audio, LM-RTF of a language model; ``None`` if not measured."""
        return self.backbone_seconds / self.audio_seconds if self.backbone_seconds and self.audio_seconds else None

    @property
    def cpu_time_factor(self) -> float | None:
        """CPU seconds of the process per second of new audio."""
        return None if self.cpu_seconds is None or not self.audio_seconds else self.cpu_seconds / self.audio_seconds

    @property
    def other_share(self) -> float | None:
        """Share of the cores taken by other processes, from 0 to 1; ``None`` if unknown."""
        if self.other_seconds is None or not self.cores or not self.seconds:
            return None
        return min(1.0, self.other_seconds / (self.seconds * self.cores))

    @property
    def busy(self) -> bool:
        """Whether other processes took more than :data:`BUSY_SHARE` of the cores, beyond the uncertainty of the
        system's counts: times are then doubtful."""
        if self.other_seconds is None:
            return False
        return self.other_seconds > (BUSY_SHARE * self.seconds + _TICK_SECONDS) * self.cores

    @property
    def tokens_per_pass(self) -> float:
        """Committed tokens per pass of the language model; 0 for models without tokens."""
        return self.tokens / self.target_passes if self.target_passes else 0.0


@dataclass(frozen=True)
class Metrics:
    """Audio metrics of one take: alone, and relative to a baseline with the same words, timing and noise. ``None``: not
    measured, or not measurable. Definitions: :mod:`paretone.measure.loudness`, :mod:`paretone.measure.fidelity`,
    :mod:`paretone.measure.pitch`; of the judges' metrics at the end, :mod:`paretone.measure.evaluation`."""

    loudness: float | None = None
    """Integrated, LUFS (ITU-R BS.1770-5); ``None`` for silence."""
    true_peak: float | None = None
    """dB of full scale; ``None`` for silence."""
    clipping: float | None = None
    """Share of samples at or beyond full scale."""
    silence: float | None = None
    mel_cepstral_distortion: float | None = None
    """dB, relative to the baseline."""
    pitch_error: float | None = None
    """Root mean square difference from the baseline in semitones, over frames voiced in both."""
    voicing_error: float | None = None
    """Share of frames voiced in only one of the two."""
    timbre_distance: float | None = None
    """dB between the long-term spectral envelopes of take and baseline."""
    naturalness: float | None = None
    """Predicted mean opinion score, 1 to 5."""
    voice_similarity: float | None = None
    """Cosine between the speaker embeddings of the take and of its voice's recording."""
    pitch_range: float | None = None
    """Standard deviation of the natural logarithm of the fundamental frequency over voiced frames."""
    faults: float | None = None
    """Number of faults that the checks found; see :mod:`paretone.checks`."""


EXAMPLE = "An example that came with Paretone"
"""Note of takes that were not made here; see :attr:`paretone.setting.library.TakeSummary.is_example`."""
ACCEPTED, DECODED, RESAMPLED, BONUS = "accepted", "decoded", "resampled", "bonus"
"""Outcomes of tokens: drafted and accepted; decoded by the model alone; resampled after a rejected draft; added by the
model after a fully accepted draft."""


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
    """Outcome of the last of ``tokens``: ``DECODED``, ``RESAMPLED`` or ``BONUS``; after a stop perhaps accepted."""
    acceptance: tuple[float, ...] = ()
    """Acceptance probability of each verified drafted token."""
    draft_seconds: float = 0.0
    target_seconds: float = 0.0


@dataclass(frozen=True)
class DecodingTrace:
    """Decoding of a take's speech tokens, without those of the prompt."""

    token_rate: float
    """Tokens per second of speech."""
    codes: int
    """Size of the codebook."""
    passages: tuple[tuple[DecodingCycle, ...], ...] = ()
    """One entry per chunk of the text."""
    starts: tuple[float, ...] = ()
    """Start of each chunk in the audio, in seconds."""
    run_away: tuple[bool, ...] = ()
    """Whether a chunk was cut off because it did not stop by itself."""

    def to_json(self) -> dict:
        return {
            "token_rate": self.token_rate,
            "codes": self.codes,
            "passages": [[_cycle_json(one) for one in cycles] for cycles in self.passages],
            "starts": list(self.starts),
            "run_away": list(self.run_away),
        }

    @classmethod
    def from_json(cls, data: Mapping) -> DecodingTrace:
        """Inverse of :meth:`to_json`. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError`."""
        passages = tuple(tuple(_cycle(one) for one in cycles) for cycles in data["passages"])
        return cls(data["token_rate"], data["codes"], passages, tuple(data["starts"]), tuple(data["run_away"]))

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(token for cycles in self.passages for cycle in cycles for token in cycle.tokens)

    @property
    def cycles(self) -> tuple[DecodingCycle, ...]:
        return tuple(cycle for cycles in self.passages for cycle in cycles)

    @property
    def outcomes(self) -> tuple[str, ...]:
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
        """Time of each committed token, in seconds from the beginning of the audio."""
        return tuple(
            start + place / self.token_rate
            for start, cycles in zip(self.starts, self.passages, strict=True)
            for place in range(sum(len(cycle.tokens) for cycle in cycles))
        )


def _cycle_json(cycle: DecodingCycle) -> list:
    """Cycle as a list for compactness; default values at its end are left out."""
    acceptance = [round(one, 4) for one in cycle.acceptance]
    seconds = round(cycle.target_seconds, 6), round(cycle.draft_seconds, 6)
    whole = [list(cycle.tokens), *seconds, cycle.outcome, list(cycle.drafted), cycle.accepted, acceptance]
    return whole if cycle.drafted or cycle.outcome != DECODED else whole[:2]


def _cycle(values: list) -> DecodingCycle:
    names = ("tokens", "target_seconds", "draft_seconds", "outcome", "drafted", "accepted", "acceptance")
    given: dict[str, Any] = dict(zip(names[: len(values)], values, strict=True))
    given |= {name: tuple(given[name]) for name in ("tokens", "drafted", "acceptance") if name in given}
    return DecodingCycle(**given)


@dataclass(frozen=True)
class DemaskedPassage:
    """Demasking of one chunk's codes. All arrays are (codebooks, frames)."""

    codes: np.ndarray = field(repr=False, compare=False)
    """Committed codes, int32."""
    order: np.ndarray = field(repr=False, compare=False)
    """Step, from 0, that committed each code, int16."""
    probability: np.ndarray = field(repr=False, compare=False)
    """Probability of each code when committed, after guidance, float32."""
    steps: int
    start: float
    """Start of the first frame in the audio, in seconds; negative if leading silence was cut."""
    blocks: tuple[Block, ...] = ()
    """Blocks in order; a single one if the canvas was filled in as a whole."""

    def known(self, step: int, mask: int) -> np.ndarray:
        """Codes (codebooks, frames) after ``step``, ``mask`` where not yet committed."""
        return np.where(self.order <= step, self.codes, mask)

    def to_json(self) -> dict:
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
        """Inverse of :meth:`to_json`. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError`."""
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
    passages: tuple[DemaskedPassage, ...] = ()
    """One entry per chunk of the text."""

    def to_json(self) -> dict:
        passages = [one.to_json() for one in self.passages]
        return {"frame_seconds": self.frame_seconds, "mask": self.mask, "passages": passages}

    @classmethod
    def from_json(cls, data: Mapping) -> DemaskingTrace:
        """Inverse of :meth:`to_json`. Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError`."""
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
    phones: tuple[tuple[str, float, float], ...] = ()
    """Phones that the model was told to speak, with start and end in seconds; empty if the model times it itself."""

    @property
    def drawn_mel(self) -> np.ndarray:
        """:attr:`mel`. Raises :class:`ValueError` for models without one."""
        if self.mel is None:
            raise ValueError("The model draws no mel spectrogram.")
        return self.mel


@dataclass(frozen=True, kw_only=True)
class Timed:
    """What can be timed again: a synthesis, or a take of it."""

    measurements: Measurements = field(default_factory=Measurements)
    repeats: tuple[Measurements, ...] = field(default=(), repr=False)
    """Measurements of repeated runs; :attr:`measurements` then has the medians of their times."""


@dataclass(frozen=True)
class AnyTake(Timed):
    """A take, with or without its audio."""

    id: str
    created: str
    """UTC, ISO 8601."""
    text: str
    voice: str
    setting: Setting
    sample_rate: int
    _: KW_ONLY
    label: str = ""
    starred: bool = False
    fidelity_to: str = ""
    """Id of the baseline take of ``log_mel_distance``, or ``""``."""
    log_mel_distance: float | None = None
    notes: tuple[str, ...] = ()
    machine: str = ""
    metrics: Metrics = field(default_factory=Metrics)
    checkpoint: str = ""
    """SHA-256 of the model's weights, hexadecimal; ``""`` for takes of earlier versions, which did not store it."""
    unfinished: str = ""
    """Reason for missing passages, such as ``cancelled after 12 of 126 passages``; ``""`` if complete. An unfinished
    take is playable, but not compared."""
    remark: str = ""
    """The user's note; its words with ``#`` are tags."""


@dataclass(frozen=True)
class Take(AnyTake):
    """One synthesis for listening. ``samples`` are float32 mono."""

    samples: np.ndarray = field(repr=False, compare=False)
    trace: Trace = field(default_factory=Trace, repr=False, compare=False)

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.sample_rate


AnyTimed = TypeVar("AnyTimed", bound=Timed)


def repeated(take: AnyTimed, runs: Sequence[Measurements]) -> AnyTimed:
    """``take`` with further repeats ``runs``; its times become the medians of all repeats."""
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
    "vocoder_seconds",
    "pause_seconds",
    "cpu_seconds",
    "other_seconds",
)
"""Times of a take, which vary between repeats."""
