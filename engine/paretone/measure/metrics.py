"""Figures for comparing takes and studies: title, definition, statistic and better direction. Torch-free. Front ends
build axes, columns and reports from these declarations, so all of them agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paretone.by_name import by_name
from paretone.measure.estimates import Estimate, Statistic, estimates, median_interval, tail_interval
from paretone.measure.pitch import diversity
from paretone.setting.take import BUSY_SHARE, SERVED, AnyTake, Measurements, Metrics
from paretone.wording import in_unit, percent

LOWER, HIGHER, NEITHER = "lower", "higher", "neither"
_Of = Callable[[Measurements, Metrics, float | None], float | None]


@dataclass(frozen=True)
class Metric:
    name: str
    title: str
    better: str
    """``LOWER``, ``HIGHER`` or ``NEITHER``."""
    unit: str = ""
    statistic: Statistic = "mean"
    """Statistic over a study's takes."""
    of: _Of | None = None
    """Value of a single take from measurements, metrics and log-mel distance; ``None`` for figures of studies alone."""
    judge: str = ""
    """Judge that provides it; see :mod:`paretone.measure.evaluation.judges`."""
    verdict: Callable[[Mapping[str, float]], complex | None] | None = None
    across_seeds: Callable[[Sequence[np.ndarray]], float | None] | None = None
    """Value for takes of one sentence and voice with different seeds, from the judge's curves (frames,)."""
    relative: bool = False
    """Whether it is relative to the baseline, which has no value itself."""
    wall_time: bool = False
    """Whether it is a wall time, which other processes lengthen."""
    definition: str = ""

    @property
    def of_runs(self) -> bool:
        """Whether it needs several runs of a take or setting."""
        return self.statistic == "p90"

    @property
    def is_timed(self) -> bool:
        """Whether it is a time, or a ratio of times."""
        return self.wall_time or self.name in ("speed_up", "cpu_time_factor", "other_share")

    @property
    def label(self) -> str:
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def spelt(self, value: float) -> str:
        """``value`` without the unit, see :func:`paretone.wording.in_unit`."""
        return in_unit(value, self.unit)

    def said(self, value: float) -> str:
        return f"{self.spelt(value)} {self.unit}".rstrip()


_FROM_OUTSIDE = ("real_time_factor", "first_audio_seconds", "largest_gap_seconds", "pause_seconds")
"""Measurements of a server's replies."""


def _measured(name: str) -> _Of:
    def of(measured: Measurements, heard: Metrics, distance: float | None) -> float | None:
        inside = name not in _FROM_OUTSIDE and measured.device == SERVED
        untimed = name != "ops_ratio" and not measured.seconds
        return None if inside or untimed else getattr(measured, name)

    return of


def _wall(name: str, title: str, unit: str = "s") -> Metric:
    """A wall time; ``name``: its field of :class:`Measurements`."""
    return Metric(name, title, LOWER, unit, "median", _measured(name), wall_time=True)


def _heard(name: str, title: str, better: str, unit: str = "", **more: Any) -> Metric:
    """A figure of the audio; ``name``: its field of :class:`Metrics`."""
    return Metric(name, title, better, unit, of=lambda measured, heard, distance: getattr(heard, name), **more)


def _said(name: str) -> Callable[[Mapping[str, float]], complex | None]:
    return lambda figures: figures.get(name)


def _rate(name: str, title: str, judge: str, verdict: Any) -> Metric:
    return Metric(name, title, LOWER, "%", judge=judge, verdict=verdict)


FAILED = "failed_takes"
"""Ending of the names of metrics of the tail."""
_ZH = (
    "Text and transcript are normalised alike (paretone-zh 1): simplified, one width, numbers as read, no punctuation."
)
TAIL_ERROR = 0.5
"""Word error rate above which an utterance counts as failed."""
_TAIL = "Share of takes with an error rate above 50 %: lost, repeated or never ended, which a mean hides."


def _of_characters(figures: Mapping[str, float]) -> float | None:
    """Character error rate of a take, if the text is Chinese."""
    return figures["character_edits"] / figures["characters"] if figures.get("characters") else None


def _of_words(figures: Mapping[str, float]) -> float | None:
    return figures.get("edits", 0.0) / figures["words"] if figures.get("words") else None


def error_rate(figures: Mapping[str, float]) -> float | None:
    """Errors of words or characters over those spoken, from a judge's figures of one take."""
    return _of_words(figures) if figures.get("words") else _of_characters(figures)


def tail(figures: Mapping[str, float]) -> float | None:
    """1 for a take with more errors than :data:`TAIL_ERROR`, else 0; ``None`` without a judge of words."""
    rate = error_rate(figures)
    return None if rate is None else float(rate > TAIL_ERROR)


def _any(count: float | None) -> float | None:
    return None if count is None else float(count > 0)


_DECLARED = {
    _wall("real_time_factor", "RTF", unit=""): "Wall-clock seconds of synthesis per second of new audio, without "
    "prompt and warm-up; the median in studies.",
    _wall("backbone_time_factor", "Backbone RTF", unit=""): "Wall-clock seconds of the backbone per second of new "
    "audio, without front end and decoder: the DiT time of papers or, for language models, LM-RTF; the median in "
    "studies.",
    Metric("cpu_time_factor", "RTF in CPU time", LOWER, statistic="median", of=_measured("cpu_time_factor")): (
        "CPU seconds of the process (all its threads) per second of new audio; on a CPU only. Other processes hardly "
        "change it. With several threads it is above RTF."
    ),
    Metric("other_share", "Other processes", NEITHER, "%", "median", _measured("other_share")): (
        f"Share of the cores that other processes took during synthesis. Above {percent(BUSY_SHARE)} a take is "
        "marked: its RTF, TTFA and waits are doubtful."
    ),
    Metric("speed_up", "Speed-up", HIGHER, "times", "median", relative=True): "Seconds of the baseline over its own, "
    "as the median of ratios of the same sentence, voice, seed and round on one machine; CPU seconds of the process "
    "on a CPU, seconds between events on a GPU.",
    _wall("first_audio_seconds", "TTFA"): "Seconds from the request to the first audio that can be played; in a "
    "study, the median.",
    Metric("first_audio_p90", "TTFA (P90)", LOWER, "s", "p90", _measured("first_audio_seconds"), wall_time=True): (
        "90th percentile of TTFA over all runs, without warm-up; of a take, over its repeats. Needs two runs or more."
    ),
    _wall("largest_gap_seconds", "Longest wait"): "Longest wait between two pieces of audio.",
    _wall("pause_seconds", "Playback waits"): "Total time for which playback, started with the first piece of audio, "
    "would wait for later ones.",
    _wall("text_seconds", "Front end time"): "Wall-clock seconds for reading the text.",
    _wall("backbone_seconds", "Backbone time"): "Wall-clock seconds of the backbone or language model.",
    _wall("decoder_seconds", "Decoder time"): "Wall-clock seconds of the decoder.",
    _wall("flow_seconds", "Flow time"): "Wall-clock seconds of the decoder's flow from tokens to mel frames, of "
    "decoders with a vocoder after it.",
    _wall("vocoder_seconds", "Vocoder time"): "Wall-clock seconds of the decoder's vocoder, of models whose decoder "
    "has a flow before it.",
    Metric(
        "ops_ratio", "Ops ratio", LOWER, "%", of=_measured("ops_ratio")
    ): "Operations of the backbone, with a language model's flow, over those of the same setting without techniques.",
    Metric(
        "peak_memory",
        "Peak memory",
        LOWER,
        "MiB",
        "median",
        lambda measured, heard, distance: measured.peak_memory_bytes / 2**20 if measured.peak_memory_bytes else None,
    ): "Peak memory during synthesis: of the process on a CPU, allocated on a GPU.",
    Metric(
        "log_mel_distance",
        "Log-mel distance",
        LOWER,
        "nat. log",
        of=lambda measured, heard, distance: distance,
        relative=True,
    ): "Mean absolute difference of the natural-log mel spectrogram to the baseline's from the same noise.",
    _heard("mel_cepstral_distortion", "Mel-cepstral distortion", LOWER, "dB", relative=True): "Root mean square "
    "difference of the spectral envelopes (cosines 1 to 13 of the log-mel spectrum), mean over the frames, to the "
    "baseline from the same noise.",
    _heard("timbre_distance", "Timbre distance", LOWER, "dB", relative=True): "Root mean square difference of the "
    "long-term spectral envelopes to the baseline's: change of the voice's timbre, independent of timing. The two "
    "shipped voices are 4.7 dB apart.",
    _heard("pitch_error", "F0 error", LOWER, "semitones", relative=True): "Root mean square difference of the "
    "fundamental frequency to the baseline's, over frames voiced in both.",
    _heard(
        "voicing_error", "Voicing error", LOWER, "%", relative=True
    ): "Share of frames that are voiced in either the take or its baseline, but not in both.",
    Metric(
        "word_error_rate",
        "Word error rate",
        LOWER,
        "%",
        "rate",
        judge="words",
        verdict=lambda figures: complex(figures["edits"], figures["words"]),
    ): "Words that the judge got wrong (substituted, deleted, inserted) over words spoken, of text and transcript in "
    "lower case without punctuation (paretone-words 1); compare it only with the same judge's rate on the reference "
    "speech.",
    _rate("failed_takes", "Failed takes", "words", tail): _TAIL,
    _heard("naturalness", "Naturalness", HIGHER, "MOS", judge="naturalness", verdict=_said("naturalness")): (
        "Mean opinion score, 1 to 5, that DistillMOS predicts of listeners, without silence at the ends. It does not "
        "fall when speech turns flat: see pitch range and diversity."
    ),
    _heard("voice_similarity", "Voice similarity", HIGHER, judge="voice", verdict=_said("voice_similarity")): (
        "Cosine between the speaker embeddings (Resemblyzer) of the take and of the voice's recording; not comparable "
        "with SIM-o."
    ),
    _heard("pitch_range", "Pitch range", HIGHER, "nat. log", judge="melody", verdict=_said("pitch_range")): (
        "Standard deviation of the natural logarithm of the fundamental frequency over a take's voiced frames."
    ),
    Metric("diversity", "Diversity", HIGHER, "nat. log", judge="melody", across_seeds=diversity): "Standard deviation "
    "of the natural logarithm of the fundamental frequency over takes of one sentence with different seeds, mean over "
    "the frames that are voiced in all of them.",
    _rate("whisper_word_error_rate", "Word error rate (Whisper)", "whisper", _of_words): "Mean over takes of each "
    "one's word error rate by Whisper-large-v3, with text and transcript normalised as in Seed-TTS's evaluation "
    "(seed-tts-eval-en 1).",
    _rate("whisper_character_error_rate", "Character error rate (Whisper)", "whisper", _of_characters): (
        f"Mean over takes of Chinese texts of each one's character error rate by Whisper-large-v3. {_ZH}"
    ),
    _rate("paraformer_character_error_rate", "Character error rate (Paraformer)", "paraformer", _of_characters): (
        f"Mean over takes of each one's character error rate by Paraformer-zh. {_ZH}"
    ),
    _rate("paraformer_failed_takes", "Failed takes (Paraformer)", "paraformer", tail): _TAIL,
    Metric("dnsmos", "DNSMOS", HIGHER, judge="dnsmos", verdict=_said("overall")): "Overall quality from 1 to 5 "
    "(P.835), predicted by DNSMOS: noise and distortion, not naturalness.",
    Metric("dnsmos_p808", "DNSMOS P.808", HIGHER, judge="dnsmos", verdict=_said("p808")): "Overall quality from 1 to "
    "5 (P.808), predicted by DNSMOS: noise and distortion, not naturalness.",
    _rate("whisper_failed_takes", "Failed takes (Whisper)", "whisper", tail): _TAIL,
    Metric("speaker_similarity", "SIM-o", HIGHER, judge="similarity", verdict=_said("similarity")): "Cosine between "
    "the speaker embeddings (WavLM-large, fine-tuned for speaker verification) of the take and of the voice's "
    "recording.",
    Metric("utmos", "UTMOS", HIGHER, judge="utmos", verdict=_said("utmos")): "Naturalness from 1 to 5, predicted by "
    "UTMOS22 (strong learner).",
    Metric(
        "faulty_takes",
        "Faulty takes",
        LOWER,
        "%",
        of=lambda measured, heard, distance: _any(heard.faults),
        judge="faults",
        verdict=lambda figures: _any(figures.get("faults")),
    ): "Share of takes in which a check finds a fault, such as a click, a loop or a missing word.",
    _heard("loudness", "Loudness", NEITHER, "LUFS"): "Integrated loudness, ITU-R BS.1770-5.",
    _heard("true_peak", "True peak", NEITHER, "dBTP"): "Highest level, between samples as well (fourfold "
    "oversampling, ITU-R BS.1770-5). Above 0 dB a take is turned down for playback and for 16-bit files.",
    _heard("clipping", "Clipping", LOWER, "%"): "Share of samples at full scale or beyond.",
    _heard("silence", "Silence", NEITHER, "%"): "Share of frames 40 dB below the loudest one of the take.",
    Metric("audio_seconds", "Length", NEITHER, "s", of=_measured("audio_seconds")): "Seconds of new audio.",
}
METRICS = tuple(replace(one, definition=words) for one, words in _DECLARED.items())

JUDGED = tuple(one for one in METRICS if one.judge)


def metric(name: str) -> Metric:
    """Metric by ``name``. Raises :class:`SettingError` for unknown names."""
    return by_name(name, {one.name: one for one in METRICS}, "metric", "metrics")


def estimate(name: str, values: Sequence[complex]) -> Estimate:
    """Estimate of the metric ``name`` from single recordings of different sentences."""
    one, matrix = metric(name), np.array(values)[:, None]
    return estimates(matrix if one.statistic == "rate" else matrix.real, one.statistic, [len(values)])[0]


def figure_of(one: Metric, take: AnyTake) -> Estimate | None:
    """A take's figure, with an interval over the repeats for times measured repeatedly. ``None``: not measured."""
    if one.of is None:
        return None
    if take.repeats and one.statistic in ("median", "p90"):
        values = [one.of(run, take.metrics, take.log_mel_distance) for run in take.repeats]
        found = [value for value in values if value is not None]
        if found and (len(found) > 1 or not one.of_runs):
            interval = tail_interval(found) if one.of_runs else median_interval(found)
            return Estimate(*interval, len(found), len(found))
    if one.of_runs:
        return None
    value = one.of(take.measurements, take.metrics, take.log_mel_distance)
    return None if value is None else Estimate(value, value, value, 1, 1)
