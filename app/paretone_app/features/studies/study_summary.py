"""Summary of a study: the plan in its file, the results in its folder, and problems of both.

Reading is too slow for the window's thread: call :func:`summary` in another one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paretone.errors import PlainError, StudyError
from paretone.measure.estimates import Estimate
from paretone.setting.setting import Setting
from paretone.studies import definition
from paretone.studies import results as found
from paretone.studies.definition import written
from paretone.studies.results import Results
from paretone.studies.search import answer
from paretone.studies.store import DATABASE, RULED_OUT, StudyDamaged
from paretone.studies.study import BASELINE, SEARCH, Study, duration, results_folder
from paretone.studies.wording import (
    REFERENCE,
    answer_lines,
    busy_lines,
    described,
    idle_lines,
    lost_lines,
    reference_lines,
    search_in,
    setting_title,
)
from paretone_app.numbers import counted, grouped, localised


@dataclass(frozen=True)
class Row:
    """One setting of a study."""

    key: str
    title: str
    setting: Setting | None
    """``None`` for reference speech, which is no setting."""
    baseline: bool
    finished: int
    total: int | None
    """``None`` for a setting that the study's file no longer asks for."""
    figures: Mapping[str, Estimate] = field(default_factory=dict, repr=False)
    problem: str = ""
    """Why it cannot be run, or ``""``."""
    answer: bool = False
    """Whether the search chose it."""
    busy: int = 0
    """Finished takes during which the machine was busy with other things."""


@dataclass(frozen=True)
class FailedTake:
    """One take that could not be made, or all of a setting's."""

    setting: str
    text: str
    voice: str
    seed: int | None
    why: str


@dataclass(frozen=True)
class StudySummary:
    """Summary of one study."""

    folder: Path
    file: Path
    """File that describes it; may be missing."""
    study: Study | None = field(default=None, repr=False)
    """As its file says now."""
    results: Results | None = field(default=None, repr=False)
    """As far as it has been run."""
    file_problem: str = ""
    """Why it cannot be run, as a sentence, or ``""``."""
    folder_problem: str = ""
    """Why its results cannot be read or added to, as a sentence, or ``""``."""
    damaged: bool = False
    """Whether its results are damaged, and can be set aside."""
    rows: tuple[Row, ...] = field(default=(), repr=False)
    """All settings: those in the folder, then those that the file adds."""
    failures: tuple[FailedTake, ...] = field(default=(), repr=False)
    """Failures, whole settings first."""
    findings: tuple[str, ...] = ()
    """Findings of search and judges, in sentences."""
    left: int = 0
    """Takes to be made, those of a search included."""
    seconds: float | None = None
    """Estimated time of the remaining takes; ``None`` if unknown."""
    lost_folder: str = ""
    """The model's folder that the study names, if it is gone."""

    @property
    def title(self) -> str:
        """Its title."""
        known = self.study or self.results
        return known.title if known is not None and known.title else self.folder.stem

    @property
    def model(self) -> str:
        """The id of its model, or ``""``."""
        known = self.study or self.results
        return known.model if known is not None else ""

    @property
    def made(self) -> int:
        """Finished takes."""
        return sum(one.finished for one in self.rows)

    @property
    def reference(self) -> Row | None:
        """The judges' scores of the reference speech, shown with the settings; ``None`` without any."""
        references = self.results.references if self.results is not None else {}
        return Row("", REFERENCE, None, False, 0, None, references) if references else None

    @property
    def definition(self) -> str:
        """The study's file as text, or what the folder remembers of it."""
        known = self.study.definition if self.study else self.results.definition if self.results else {}
        return written(known, self.file.name) if known else ""


def summary(folder: Path, file: Path, pace: Callable[[str], float | None] = lambda model: None) -> StudySummary:
    """Summary of the study that ``file`` describes, with results in ``folder``.

    ``pace`` gives a model's seconds per character of text; see :mod:`paretone.studies.results`.
    """
    study, file_problem = _planned(file)
    results, folder_problem, damaged = _found(folder)
    rows = _rows(study, results)
    left = _left(study, results, rows)
    return StudySummary(
        folder,
        file,
        study,
        results,
        file_problem,
        folder_problem,
        damaged,
        rows,
        _failures(study, results) if results is not None else (),
        _findings(results) if results is not None else (),
        left,
        _seconds(study, results, rows, left, pace),
        _lost_folder(file, results),
    )


def summary_at(place: Path, pace: Callable[[str], float | None]) -> StudySummary:
    """Summary of the study at ``place``, its file or the folder of its results. Raises :class:`StudyError` for a folder
    without any."""
    if not place.is_dir():
        return summary(results_folder(place), place, pace)
    if not (place / DATABASE).exists():
        raise StudyError(f"There is no study in {place}; choose another folder.")
    return summary(place, _file_of(place), pace)


def plan_words(study: Study, seconds: float | None) -> str:
    """Size of a study, in sentences."""
    searched = study.search.trials if study.search else 0
    parts = [
        counted(len(study.candidates) + searched, "setting", "settings"),
        counted(len({one.text for one in study.utterances}), "sentence", "sentences"),
        counted(len({one.voice.id for one in study.utterances}), "voice", "voices"),
        counted(len(study.seeds), "seed", "seeds"),
        counted(study.rounds, "round", "rounds"),
    ]
    product = " × ".join(parts)
    words = " ".join(filter(None, (f"{_takes(study.takes)}: {product}.", _further(study), _omitted(study))))
    if seconds is None:
        return f"{words} Make one take with this model to get a time estimate."
    return (
        f"{words} About {duration(seconds)}, judging by takes without techniques; calibrating and judging take "
        "longer, techniques less."
    )


def lost_words(summary: StudySummary) -> str:
    """That the model's folder is gone, as a sentence, or ``""``."""
    return f"The model's folder {summary.lost_folder} is gone: choose where it is now." if summary.lost_folder else ""


def progress_words(summary: StudySummary) -> str:
    """Progress of a study, in sentences."""
    about = "" if summary.seconds is None else f", about {duration(summary.seconds)}"
    if summary.study is None:
        return f"{_takes(summary.made)}. It cannot be run: {summary.file_problem}"
    unknown = "" if summary.seconds is not None else "; the time is known after the first takes"
    if not summary.made:
        plan = f"{counted(len(summary.rows), 'setting', 'settings')}, {_takes(summary.left)}{about}{unknown}."
        return f"{plan} {_omitted(summary.study)}".strip()
    if summary.left:
        failed = f" {len(summary.failures)} failed and will be tried again." if summary.failures else ""
        return f"{_takes(summary.made)} finished, {grouped(summary.left)} left{about}.{failed}"
    return f"Finished: {_takes(summary.made)}. {_omitted(summary.study)}".strip()


def _omitted(study: Study) -> str:
    count = len(study.ruled_out)
    if not count:
        return ""
    omitted = counted(count, "combination is omitted", "combinations are omitted, the first")
    return f"{omitted} because: {study.ruled_out[0][1]}"


def _further(study: Study) -> str:
    """What a study makes apart from takes, as a sentence, or ``""``; progress counts it as well."""
    prepared = sum(bool(one.unprepared) for one in study.candidates)
    parts = [
        counted(len(study.utterances), "recording", "recordings") + " of reference speech" if study.judges else "",
        counted(prepared, "calibration", "calibrations") if prepared else "",
    ]
    found = " and ".join(filter(None, parts))
    return f"In addition {found}." if found else ""


def _takes(count: int) -> str:
    return counted(count, "take", "takes")


def _file_of(folder: Path) -> Path:
    """The file that describes the study in ``folder``, as the folder remembers it, or where it should be."""
    usual = folder.with_suffix(".toml")
    try:
        known = found.read(folder).file
    except PlainError:
        # What is wrong with it is said if it is shown.
        return usual
    return Path(known) if known else usual


def _planned(file: Path) -> tuple[Study | None, str]:
    try:
        return definition.read(file), ""
    except PlainError as error:
        return None, str(error)


def _lost_folder(file: Path, results: Results | None) -> str:
    try:
        values = definition.values(file)
    except PlainError:
        values = results.definition if results is not None else {}
    folder = values.get("folder") if isinstance(values, Mapping) else ""
    return folder if isinstance(folder, str) and folder and not Path(folder).exists() else ""


def _found(folder: Path) -> tuple[Results | None, str, bool]:
    """Results, what is wrong with them, and whether they are damaged."""
    if not os.path.lexists(folder / DATABASE):
        return None, "", False
    try:
        results = found.read(folder)
    except StudyDamaged as error:
        return None, str(error), True
    except PlainError as error:
        return None, str(error), False
    if not results.damage:
        return results, "", False
    problem = (
        f"{folder / DATABASE} is damaged and read-only ({results.damage}). Set it aside to run the study again; "
        "its content is kept."
    )
    return results, problem, True


def _rows(study: Study | None, results: Results | None) -> tuple[Row, ...]:
    planned = {one.key: one for one in study.candidates} if study else {}
    each = study.takes_each if study else 0
    searches = study is not None and study.search is not None
    search = search_in(results) if results else None
    chosen = {one.setting for one in answer(search, results.trials).trials} if search and results else set()
    rows = [
        Row(
            one.key,
            setting_title(one),
            one.setting,
            one.origin == BASELINE,
            one.finished,
            each if one.key in planned or (searches and one.origin == SEARCH) else None,
            one.figures,
            one.problem,
            one.key in chosen,
            one.busy,
        )
        for one in (results.settings if results else ())
    ]
    there = {one.key for one in rows}
    for key, one in planned.items():
        if key not in there:
            title = one.name if one.name and one.origin != BASELINE else described(one.setting)
            rows.append(Row(key, title, one.setting, one.origin == BASELINE, 0, each))
    return tuple(rows)


def _left(study: Study | None, results: Results | None, rows: tuple[Row, ...]) -> int:
    if study is None:
        return 0
    known = sum(max(0, one.total - one.finished) for one in rows if one.total is not None and not one.problem)
    if study.search is None:
        return known
    begun = sum(one.state != RULED_OUT for one in results.trials) if results else 0
    return known + max(0, study.search.trials - begun) * study.takes_each


def _failures(study: Study | None, results: Results) -> tuple[FailedTake, ...]:
    said = {one.key: (one.text, one.voice.id) for one in study.utterances} if study else {}
    titles = {one.key: setting_title(one) for one in results.settings}
    whole = [FailedTake(titles[one.key], "", "", None, one.problem) for one in results.settings if one.problem]
    takes = [
        FailedTake(
            titles.get(one.cell.setting, one.cell.setting),
            *((one.text, one.voice) if one.text else said.get(one.cell.utterance, ("", ""))),
            one.cell.seed,
            one.sentence,
        )
        for one in results.failed
    ]
    return (*whole, *takes)


def _findings(results: Results) -> tuple[str, ...]:
    search = search_in(results)
    lines = (
        *(answer_lines(search, results) if search else ()),
        *reference_lines(results),
        *lost_lines(results),
        *busy_lines(results),
        *idle_lines(results),
    )
    return tuple(map(localised, lines))


def _seconds(
    study: Study | None,
    results: Results | None,
    rows: tuple[Row, ...],
    left: int,
    pace: Callable[[str], float | None],
) -> float | None:
    made = sum(one.finished for one in rows)
    if study is None:
        return None
    if results is None or not made:
        return found.estimated_seconds(study, pace(study.model))
    return results.busy_seconds / made * left
