"""Judging any recordings: words, naturalness, similarity to a reference, melody and loudness of each file. Judges
without their packages and files that cannot be judged are skipped with a sentence; the rest continues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from paretone.audio.recording import Recording, read_recording
from paretone.checks.faults import Checked, checked
from paretone.checks.speech import Speech, prompt_of
from paretone.errors import AudioError, PlainError, TextError
from paretone.measure.estimates import Estimate
from paretone.measure.evaluation.judges import Judge, JudgeKind, judge_named
from paretone.measure.loudness import signal_metrics
from paretone.measure.metrics import FAILED, JUDGED, error_rate, estimate, metric, tail
from paretone.measure.pitch import diversity, log_pitch, pitch_range
from paretone.models.base import Voice
from paretone.observer import Check

if TYPE_CHECKING:
    from paretone.measure.evaluation.naturalness import NaturalnessJudge
    from paretone.measure.evaluation.speakers import VoiceJudge
    from paretone.measure.intelligibility import Judge as WordJudge


def naturalness_judge() -> NaturalnessJudge | None:
    """Judge of naturalness; ``None`` if its weights are not installed."""
    return None if judge_named("naturalness").problem() else cast("NaturalnessJudge", _loaded("naturalness"))


def voice_judge() -> VoiceJudge | None:
    """Judge of voices; ``None`` if its weights are not installed."""
    return None if judge_named("voice").problem() else cast("VoiceJudge", _loaded("voice"))


@lru_cache(maxsize=2)
def _loaded(name: str) -> object:
    return judge_named(name).ready(())


def heard_figures(
    samples: np.ndarray, rate: int, reference: np.ndarray | None, check: Check
) -> tuple[dict[str, float], str]:
    """Naturalness of mono ``samples`` (n,) at ``rate`` Hz, and similarity to the voice with the embedding ``reference``
    (256,), by their names in :mod:`paretone.measure.metrics`, without those of missing judges. With the reason why
    judging failed, or ``""``. ``check`` is called every third of a second and may raise to cancel."""
    naturalness, voices = naturalness_judge(), voice_judge() if reference is not None else None
    found: dict[str, float] = {}
    check()
    try:
        if voices is not None and reference is not None:
            found["voice_similarity"] = voices.similarity(reference, voices.voice_of(samples, rate))
        if naturalness is not None:
            found["naturalness"] = naturalness.naturalness(samples, rate, check)
    except AudioError as error:
        return found, str(error)
    return found, ""


JUDGED_FIGURES = ("naturalness", "voice_similarity", "pitch_range")
"""Possible judged figures of a single take, by their names in :mod:`paretone.measure.metrics`."""


def judged_figures(samples: np.ndarray, rate: int, prompt: str = "", check: Check = lambda: None) -> dict[str, float]:
    """Naturalness, similarity to the recording ``prompt`` and pitch range of mono ``samples`` (n,) at ``rate`` Hz, by
    their names in :mod:`paretone.measure.metrics`; unmeasurable figures and those of missing judges are left out.
    ``check`` is called every third of a second and may raise to cancel."""
    spread = pitch_range(log_pitch(samples, rate))
    found = {} if spread is None else {"pitch_range": spread}
    check()
    voices = voice_judge() if prompt else None
    reference = None
    # A prompt may be gone or silent; measure the rest.
    with suppress(AudioError):
        reference = None if voices is None else voices.voice_in(prompt)
    return found | heard_figures(samples, rate, reference, check)[0]


def reference_speech(text: str, voice: Voice, recording: str = "") -> tuple[np.ndarray, int]:
    """Mono samples and rate of a natural reading of ``text``: the ``recording``, or the bundled voice's speaker. Raises
    :class:`PlainError` if there is neither."""
    if recording:
        read = read_recording(recording, LONGEST_SECONDS)
        return read.samples, read.sample_rate
    from paretone.models.f5.config import SAMPLE_RATE
    from paretone.training.natural_teacher import original_speech

    return original_speech(text, voice), SAMPLE_RATE


Loaded = TypeVar("Loaded")
LONGEST_SECONDS = 3600.0
AVERAGED = (*(one.name for one in JUDGED), "loudness")


@dataclass(frozen=True)
class Judgement:
    file: str
    seconds: float = 0.0
    sample_rate: int = 0
    figures: Mapping[str, float] = field(default_factory=dict)
    """Measured figures by their names in :mod:`paretone.measure.metrics`, and ``edits`` and ``words``."""
    error_rate: float | None = None
    """Errors over words or characters by the first judge of words."""
    heard: str = ""
    """Transcript of the judge of words."""
    notes: tuple[str, ...] = ()
    """Changes on reading and figures that could not be measured, as sentences."""
    problem: str = ""
    """Reason why the file was not judged, or ``""``."""
    faults: Checked = field(default_factory=Checked)
    curve: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)
    """Pitch curve; see :func:`paretone.measure.pitch.log_pitch`."""


@dataclass(frozen=True)
class Judgements:
    files: tuple[Judgement, ...]
    missing: tuple[str, ...] = ()
    """Skipped judges with reasons, as sentences."""

    @cached_property
    def means(self) -> dict[str, Estimate]:
        """Means over files with bootstrap intervals, by metric; word errors over all words. Empty for one file."""
        found = {}
        for name in AVERAGED:
            of_all = metric(name).statistic == "rate"
            figures = [one.figures for one in self.files if name in one.figures]
            values = [complex(one["edits"], one["words"]) if of_all else one[name] for one in figures]
            if len(values) > 1:
                found[name] = estimate(name, values)
        return found

    @property
    def diversity(self) -> float | None:
        """Diversity of the files, which must be takes of one sentence in one voice; ``None`` if unmeasurable."""
        return diversity([one.curve for one in self.files if len(one.curve)])


class FileJudges:
    """Judges of files, loaded on first use; ``texts``: what the files say, if known. ``reference``: recording of the
    voice that the files should have; ``further``: names of judges in addition to the offline ones. Raises
    :class:`AudioError` if the reference is unusable."""

    def __init__(
        self, texts: Sequence[str] = (), reference: Path | None = None, further: Sequence[str] = (), device: str = "cpu"
    ) -> None:
        self._texts = tuple(texts)
        self._voice = Voice("", "", str(reference or ""), "")
        self._prompt = None if reference is None else prompt_of(str(reference))
        self.missing: tuple[str, ...] = ()
        """Skipped judges with reasons, as sentences."""
        self._words = self._ready("words", self._load_words) if self._texts else None
        self._ready("naturalness", naturalness_judge)
        voices = self._ready("voice", voice_judge) if reference is not None else None
        self._reference: np.ndarray | None = None
        if reference is not None and voices is not None:
            self._reference = voices.voice_in(str(reference), LONGEST_SECONDS)
        self._further: list[tuple[JudgeKind, Judge]] = []
        for kind in map(judge_named, further):
            lacks = _lacking(kind, bool(self._texts), reference is not None)
            self.missing = (*self.missing, lacks) if lacks else self.missing
            one = None if lacks else self._ready(kind.name, partial(kind.ready, self._texts, device))
            self._further += [(kind, one)] if one is not None else []

    def judge(
        self, path: Path, text: str = "", check: Check = lambda: None, recording: Recording | None = None
    ) -> Judgement:
        """Judge the file at ``path``, or its ``recording``, which says ``text``. ``check`` is called repeatedly and may
        raise to cancel."""
        try:
            recording = read_recording(path, LONGEST_SECONDS) if recording is None else recording
        except AudioError as error:
            return Judgement(str(path), problem=str(error))
        samples, rate = recording.samples, recording.sample_rate
        curve = log_pitch(samples, rate)
        check()
        signal = signal_metrics(samples, rate)
        found = {name: getattr(signal, name) for name in ("loudness", "clipping", "silence")}
        found["pitch_range"] = pitch_range(curve)
        notes, heard = list(recording.notes), ""
        if found["pitch_range"] is None:
            notes.append(f"{path.name}: too little of it is voiced to measure its pitch range.")
        judged, problem = heard_figures(samples, rate, self._reference, check)
        found |= judged
        notes += [f"{path.name}: {problem}"] if problem else []
        if self._words is not None and text:
            check()
            errors = self._words.word_errors([text], [(samples, rate)], check)
            heard = errors.heard[0]
            counts: dict[str, float] = {"edits": errors.edits[0], "words": errors.words[0]}
            found |= {**counts, "word_error_rate": errors.rate, FAILED: tail(counts)}
        rate_of_errors = found.get("word_error_rate")
        for kind, judge in self._further:
            check()
            try:
                verdict = judge.hear(text, self._voice, samples, rate)
            except PlainError as error:
                notes.append(f"{path.name}: {error}")
                continue
            heard = heard or verdict.heard
            rate_of_errors = error_rate(verdict.figures) if rate_of_errors is None else rate_of_errors
            values = {name: of(verdict.figures) for name in kind.metrics if (of := metric(name).verdict) is not None}
            found |= {name: value.real for name, value in values.items() if value is not None}
        check()
        faults = checked(Speech(samples, rate, text, prompt=self._prompt, similarity=found.get("voice_similarity")))
        found["faulty_takes"] = float(bool(faults.findings))
        figures = {name: float(value) for name, value in found.items() if value is not None}
        length = recording.seconds
        return Judgement(str(path), length, rate, figures, rate_of_errors, heard, tuple(notes), "", faults, curve)

    def _ready(self, name: str, load: Callable[[], Loaded | None]) -> Loaded | None:
        problem = judge_named(name).problem()
        if problem:
            self.missing = (*self.missing, problem)
            return None
        return load()

    def _load_words(self) -> WordJudge:
        from paretone.measure.intelligibility import Judge

        return Judge(self._texts)


def judge_files(
    paths: Sequence[Path],
    texts: Sequence[str] = (),
    reference: Path | None = None,
    further: Sequence[str] = (),
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
    check: Check = lambda: None,
    recordings: Sequence[Recording] = (),
) -> Judgements:
    """Judge the files at ``paths``, which say ``texts``: one per file, one for all, or none.

    ``reference``: recording of the voice that they should have; ``further``: judges in addition to the offline ones, on
    ``device``. ``progress`` receives finished and total files. ``recordings``: what the files hold, if they are not to
    be read. Raises :class:`TextError` for another number of texts, and :class:`AudioError` if the reference or every
    file is unusable.
    """
    if texts and len(texts) not in (1, len(paths)):
        raise TextError(f"There are {len(paths)} recordings and {len(texts)} texts; give one text, or one for each.")
    each = list(texts) * len(paths) if len(texts) == 1 else list(texts) or [""] * len(paths)
    judges = FileJudges(tuple(dict.fromkeys(texts)), reference, further, device)
    found = []
    for place, (path, text) in enumerate(zip(paths, each, strict=True)):
        progress(place, len(paths))
        check()
        found.append(judges.judge(path, text, check, recordings[place] if recordings else None))
    progress(len(paths), len(paths))
    if found and all(one.problem for one in found):
        raise AudioError(found[0].problem)
    return Judgements(tuple(found), judges.missing)


def reply_figures(
    texts: Sequence[str],
    sounds: Sequence[tuple[np.ndarray, int]],
    reference: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    check: Check = lambda: None,
) -> tuple[dict[str, tuple[float, float, float]], tuple[dict[str, float], ...]]:
    """Words, naturalness, variety and faults of a server's replies to one load, and similarity to the voice of
    ``reference``: values with the ends of their 95 % intervals, by metric, and the figures that takes have, of each
    reply. ``sounds``: mono samples (n,) and their rate, of each text. Raises :class:`PlainError`."""
    names = [Path(f"reply {number}") for number, _ in enumerate(texts, start=1)]
    recordings = [Recording(*one) for one in sounds]
    found = judge_files(names, texts, reference, progress=progress, check=check, recordings=recordings)
    ends = {name: one.ends for name, one in found.means.items()}
    takes: dict[str, list[Judgement]] = defaultdict(list)
    for text, one in zip(texts, found.files, strict=True):
        takes[text].append(one)
    varied = [value for each in takes.values() if (value := Judgements(tuple(each)).diversity) is not None]
    if len(varied) > 1:
        ends["diversity"] = estimate("diversity", varied).ends
    of_takes = []
    for one in found.files:
        known = {name: one.figures[name] for name in JUDGED_FIGURES if name in one.figures}
        of_takes.append({**known, "faults": float(len(one.faults.findings))})
    return ends, tuple(of_takes)


def _lacking(kind: JudgeKind, says: bool, refers: bool) -> str:
    """What a judge cannot do without, as a sentence, or ``""``."""
    if not says and any(name.endswith("error_rate") for name in kind.metrics):
        return f"{kind.title} compares with a text; give --text."
    return "" if refers or kind.name != "similarity" else f"{kind.title} compares with a voice; give --reference."
