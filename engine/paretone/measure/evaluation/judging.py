"""Judging any recordings: words, naturalness, similarity to a reference, melody and loudness of each file. Judges
without their packages and files that cannot be judged are skipped with a sentence; the rest continues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from paretone.audio.recording import Recording, read_recording
from paretone.checks.faults import Checked, checked
from paretone.checks.speech import Speech, prompt_of
from paretone.errors import AudioError, PlainError, TextError
from paretone.measure.estimates import Estimate
from paretone.measure.evaluation.judges import LONGEST_SECONDS, Judge, JudgeKind, Verdict, judge_named
from paretone.measure.loudness import signal_metrics
from paretone.measure.metrics import JUDGED, error_rate, estimate, metric
from paretone.measure.pitch import diversity
from paretone.models.base import Voice
from paretone.observer import Check, may_stop, stoppable

if TYPE_CHECKING:
    from paretone.measure.evaluation.speakers import VoiceJudge


ALONE = ("naturalness", "voice", "melody")
"""Judges that need no text. Their networks stay loaded."""
JUDGED_FIGURES = ("naturalness", "voice_similarity", "pitch_range")
"""Their figures, by their names in :mod:`paretone.measure.metrics`."""
_kept = lru_cache(maxsize=len(ALONE))(lambda name: judge_named(name).ready(()))


def judged_figures(samples: np.ndarray, rate: int, prompt: str = "", check: Check = lambda: None) -> dict[str, float]:
    """:data:`JUDGED_FIGURES` of mono ``samples`` (n,) at ``rate`` Hz, whose voice should be that of the recording
    ``prompt``; unmeasurable figures and those of missing judges are left out. ``check`` is called every third of a
    second and may raise to cancel."""
    there = [name for name in ALONE if (prompt or name != "voice") and not judge_named(name).problem()]
    judges = {name: _kept(name) for name in there}
    return _figures(_asked(judges, "", Voice("", "", prompt, ""), samples, rate, check)[0])


def _asked(
    judges: Mapping[str, Judge], text: str, voice: Voice, samples: np.ndarray, rate: int, check: Check
) -> tuple[dict[str, Verdict], list[str]]:
    """Verdicts by judge, and the reasons why others gave none, once each."""
    found, reasons = {}, []
    with stoppable(check):
        for name, judge in judges.items():
            may_stop()
            try:
                found[name] = judge.hear(text, voice, samples, rate)
            except PlainError as error:
                reasons.append(str(error))
    return found, list(dict.fromkeys(reasons))


def _figures(verdicts: Mapping[str, Verdict]) -> dict[str, float]:
    """Figures of one recording by their names in :mod:`paretone.measure.metrics`."""
    found = {}
    for one in JUDGED:
        said = verdicts.get(one.judge)
        value = None if said is None or one.verdict is None else one.verdict(said.figures)
        if value is not None:
            found[one.name] = value.real / value.imag if one.statistic == "rate" else value.real
    return found


def reference_speech(text: str, voice: Voice, recording: str = "") -> tuple[np.ndarray, int]:
    """Mono samples and rate of a natural reading of ``text``: the ``recording``, or the bundled voice's speaker. Raises
    :class:`PlainError` if there is neither."""
    if recording:
        read = read_recording(recording, LONGEST_SECONDS)
        return read.samples, read.sample_rate
    from paretone.models.f5.config import SAMPLE_RATE
    from paretone.training.natural_teacher import original_speech

    return original_speech(text, voice), SAMPLE_RATE


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
        self._voice = Voice("", "", str(reference or ""), "")
        self._prompt = None if reference is None else prompt_of(str(reference))
        self._judges: dict[str, Judge] = {}
        self.missing: tuple[str, ...] = ()
        """Skipped judges with reasons, as sentences."""
        offline = [name for name in ALONE if reference is not None or name != "voice"]
        for kind in map(judge_named, (*(["words"] if texts else []), *offline, *further)):
            if lacks := _lacking(kind, bool(texts), reference is not None) or kind.problem():
                self.missing = (*self.missing, lacks)
            else:
                self._judges[kind.name] = _kept(kind.name) if kind.name in ALONE else kind.ready(texts, device)
        if "voice" in self._judges:
            cast("VoiceJudge", self._judges["voice"]).voice_in(str(reference))

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
        judges = {name: one for name, one in self._judges.items() if text or name != "words"}
        verdicts, reasons = _asked(judges, text, self._voice, samples, rate, check)
        signal = signal_metrics(samples, rate)
        measured = {name: getattr(signal, name) for name in ("loudness", "clipping", "silence")}
        found = {name: float(value) for name, value in measured.items() if value is not None} | _figures(verdicts)
        if "pitch_range" not in found:
            reasons.insert(0, "too little of it is voiced to measure its pitch range.")
        if "words" in verdicts:
            found |= verdicts["words"].figures
        with stoppable(check):
            faults = checked(Speech(samples, rate, text, prompt=self._prompt, similarity=found.get("voice_similarity")))
        found["faulty_takes"] = float(bool(faults.findings))
        rates = (error_rate(one.figures) for one in verdicts.values())
        return Judgement(
            str(path),
            recording.seconds,
            rate,
            found,
            next((one for one in rates if one is not None), None),
            next((one.heard for one in verdicts.values() if one.heard), ""),
            (*recording.notes, *(f"{path.name}: {one}" for one in reasons)),
            faults=faults,
            curve=np.array(verdicts["melody"].curve),
        )


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
    if found and all(one.problem for one in found):
        raise AudioError(found[0].problem)
    progress(len(paths), len(paths))
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
