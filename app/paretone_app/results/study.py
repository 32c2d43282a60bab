"""An open study: plan, results, and the problems of both. Reading is too slow for the window's thread."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from paretone import files
from paretone.errors import PlainError, StudyError
from paretone.listening.results import listened
from paretone.measure.estimates import Estimate
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import EXAMPLE, Measurements, Take, Trace
from paretone.studies import definition
from paretone.studies.definition import written
from paretone.studies.example import copy_for_user
from paretone.studies.report import write_report
from paretone.studies.results import Results, estimated_seconds, read, results
from paretone.studies.search import answer
from paretone.studies.store import DATABASE, RULED_OUT, Store, StoredTake, StudyDamaged
from paretone.studies.study import BASELINE, SEARCH, SERVER, Study, results_folder
from paretone.studies.wording import (
    REFERENCE,
    answer_lines,
    described,
    note_lines,
    paired_lines,
    search_in,
    setting_title,
    worst_lines,
)
from paretone_app.numbers import localised
from paretone_app.results.points import Point, Scores, study_points, study_title
from paretone_app.state.differences import prepared_entry


@dataclass(frozen=True)
class Row:
    key: str
    title: str
    setting: Setting | None
    """``None`` for reference speech."""
    baseline: bool
    finished: int
    total: int | None
    """``None`` for a setting no longer in the study's file."""
    figures: Mapping[str, Estimate] = field(default_factory=dict, repr=False)
    problem: str = ""
    answer: bool = False
    busy: int = 0
    """Finished takes made while other programs kept the machine busy."""
    served: bool = False


@dataclass(frozen=True)
class FailedTake:
    """A failed take, or all takes of a setting."""

    setting: str
    text: str
    voice: str
    seed: int | None
    why: str


@dataclass(frozen=True)
class OpenStudy:
    folder: Path
    file: Path
    """Its definition; may be missing."""
    study: Study | None = field(default=None, repr=False)
    """From the current file."""
    results: Results | None = field(default=None, repr=False)
    file_problem: str = ""
    """Why it cannot run, as a sentence, or ``""``."""
    folder_problem: str = ""
    """Why its results cannot be read or extended, as a sentence, or ``""``."""
    damaged: bool = False
    """Whether its results are damaged and can be set aside."""
    rows: tuple[Row, ...] = field(default=(), repr=False)
    """All settings: those in the folder, then new ones in the file."""
    failures: tuple[FailedTake, ...] = field(default=(), repr=False)
    findings: tuple[str, ...] = ()
    """Findings of search and judges, in sentences."""
    left: int = 0
    """Remaining takes, including those of a search."""
    seconds: float | None = None
    """Estimated seconds for the remaining takes; ``None`` if unknown."""
    lost_folder: str = ""
    """The model folder named by the study, if it no longer exists."""
    takes: Mapping[str, StoredTake] = field(default_factory=dict, repr=False)
    """Playable takes by id."""
    parts: StudyParts | None = field(default=None, repr=False)
    """Its points and takes; ``None`` while no view shows them."""

    # --- Properties ---------------------------------------------------------------------------------------------------
    @property
    def title(self) -> str:
        known = self.study or self.results
        return known.title if known is not None and known.title else self.folder.stem

    @property
    def model(self) -> str:
        known = self.study or self.results
        return known.model if known is not None else ""

    @property
    def made(self) -> int:
        return sum(one.finished for one in self.rows)

    @property
    def reference(self) -> Row | None:
        """Judges' scores of the reference speech, shown with the settings; ``None`` if there are none."""
        references = self.results.references if self.results is not None else {}
        return Row("", REFERENCE, None, False, 0, None, references) if references else None

    @property
    def definition(self) -> str:
        """The study's file as text, or its copy in the results."""
        known = self.study.definition if self.study else self.results.definition if self.results else {}
        return written(known, self.file.name) if known else ""

    @property
    def measured(self) -> Iterator[tuple[Setting, str, Measurements]]:
        """Its takes in the form for :func:`paretone.studies.results.pace`."""
        settings = {one.key: one.setting for one in self.rows if one.setting is not None}
        return ((settings[one.cell.setting], one.text, one.measurements) for one in self.takes.values())

    # --- Takes --------------------------------------------------------------------------------------------------------
    def load_audio(self, take: str) -> tuple[np.ndarray, int]:
        """Samples float32 (n,) and rate of the take ``take``. Raises :class:`paretone.errors.StudyError`."""
        with Store(self.folder, read_only=True) as store:
            return store.audio(take), self.takes[take].sample_rate

    def load(self, take: str) -> Take:
        """The whole take with the id ``take``, in the library's form. Raises :class:`paretone.errors.StudyError`."""
        assert self.parts is not None, "it is heard by its points"
        with Store(self.folder, read_only=True) as store:
            return self.parts.summaries[take].whole(store.audio(take), Trace(decoding=store.decoding(take)))

    def takes_with(self, setting: Setting) -> Mapping[str, TakeSummary]:
        """Its takes with ``setting``, and their baselines, by id. Raises :class:`paretone.errors.StudyError`."""
        known = self.results.settings if self.results is not None else ()
        one = next((one for one in known if one.key == setting.bare.fingerprint), None)
        if self.results is None or one is None:
            return {}
        takes = {take: each for take, each in self.takes.items() if each.cell.setting in (one.key, one.baseline)}
        return _summaries(self.results, takes, {one.key: self.load_table(one.key)})

    def load_table(self, key: str) -> Artefact | None:
        """The artefact prepared for the setting with this key. Raises :class:`paretone.errors.StudyError`."""
        if self.parts is not None and key in self.parts.tables:
            return self.parts.tables[key]
        with Store(self.folder, read_only=True) as store:
            return store.artefacts().get(key)


@dataclass(frozen=True)
class StudyParts:
    points: tuple[Point, ...]
    summaries: Mapping[str, TakeSummary]
    tables: Mapping[str, Artefact]
    """Artefacts by key of their setting."""


# --- Reading ----------------------------------------------------------------------------------------------------------
Pace = Callable[[str], float | None]
"""Seconds per character of text for a model; see :mod:`paretone.studies.results`."""


def read_study(folder: Path, file: Path, pace: Pace = lambda model: None, scores: Scores | None = None) -> OpenStudy:
    """The study in ``file``, with results in ``folder``; ``scores`` adds its parts."""
    study, file_problem = None, ""
    try:
        study = definition.read(file, folder)
    except PlainError as error:
        file_problem = str(error)
    found, takes, parts, folder_problem, damaged = None, {}, None, "", False
    try:
        if os.path.lexists(folder / DATABASE):
            with Store(folder, read_only=True) as store:
                found, stored = results(store), store.takes()
                tables = store.artefacts() if scores is not None else {}
            lost = frozenset(found.lost)
            takes = {one.take: one for one in stored if one.cell.round == 0 and one.take not in lost}
            if scores is not None:
                parts = _parts(found, stored, takes, tables, scores)
    except PlainError as error:
        found, folder_problem, damaged = None, str(error), isinstance(error, StudyDamaged)
    if found is not None and found.damage:
        damaged = True
        folder_problem = (
            f"{folder / DATABASE} is damaged and read-only ({found.damage}). Set it aside to run the study again; "
            "its content is kept."
        )
    rows = _rows(study, found)
    left = _left(study, found, rows)
    return OpenStudy(
        folder,
        file,
        study,
        found,
        file_problem,
        folder_problem,
        damaged,
        rows,
        _failures(study, found) if found is not None else (),
        _findings(found) if found is not None else (),
        left,
        _seconds(study, found, rows, left, pace),
        _lost_folder(file, found),
        takes,
        parts,
    )


def results_at(path: Path) -> Path | None:
    """The folder of results that ``path`` is, or whose database it is; ``None`` without any."""
    folder = path.parent if path.name == DATABASE else path
    return folder if (folder / DATABASE).is_file() else None


def read_study_at(place: Path, pace: Pace, scores: Scores | None = None) -> OpenStudy:
    """The study at ``place``, a file or a results folder. Raises :class:`StudyError` for a folder without results."""
    if not place.is_dir():
        return read_study(results_folder(place), place, pace, scores)
    if not (place / DATABASE).exists():
        raise StudyError(f"There is no study in {place}; choose another folder.")
    file = place.with_suffix(".toml")
    try:
        with Store(place, read_only=True) as store:
            file = Path(store.about().get("file") or file)
    except PlainError:
        pass  # The view reports the fault.
    return read_study(place, file, pace, scores)


def example_session(studies: Path) -> tuple[Path, Take, Take]:
    """The user's copy of the example study in the folder ``studies``, and two of its takes: the one with something
    prepared, after its baseline. Raises :class:`PlainError`."""
    study = read_study(folder := copy_for_user(studies), folder.with_suffix(".toml"), scores=Scores())
    takes = study.parts.summaries if study.parts is not None else {}
    fast = next((one for one in takes.values() if (used := prepared_entry(one.setting)) and used.artefact), None)
    if fast is None or fast.fidelity_to not in takes:
        raise StudyError(f"The example study in {folder} has no take with a table and its baseline.")
    plain, fast_take = (replace(study.load(one), notes=(EXAMPLE,)) for one in (fast.fidelity_to, fast.id))
    return folder, plain, fast_take


def report(study: Path, trials: Path) -> Path:
    """Write a report on a study's folder, with listeners' answers; returns its page. Raises :class:`StudyError`."""
    place = study / "report"
    with files.explained(StudyError, f"{place} could not be created"):
        place.mkdir(exist_ok=True)
    return write_report(read(study), place, listened(trials))[0]


def _parts(
    found: Results,
    stored: tuple[StoredTake, ...],
    takes: Mapping[str, StoredTake],
    tables: Mapping[str, Artefact],
    scores: Scores,
) -> StudyParts:
    machines: dict[str, dict[str, None]] = defaultdict(dict)
    for one in stored:
        machines[one.cell.setting].setdefault(one.machine)
    points = study_points(found, scores, {key: tuple(known) for key, known in machines.items()})
    return StudyParts(points, _summaries(found, takes, tables), tables)


def _summaries(
    found: Results, takes: Mapping[str, StoredTake], tables: Mapping[str, Artefact | None]
) -> Mapping[str, TakeSummary]:
    titles = {one.key: study_title(one) for one in found.settings}
    settings = {one.key: _as_made(one.setting, tables.get(one.key)) for one in found.settings}
    baselines = {one.key: one.baseline for one in found.settings}
    ids = {one.cell: take for take, one in takes.items()}

    def summary(one: StoredTake) -> TakeSummary:
        key = one.cell.setting
        fidelity = ""
        if one.log_mel_distance is not None and baselines[key] != key:
            fidelity = ids.get(replace(one.cell, setting=baselines[key]), "")
        return TakeSummary(
            one.take,
            one.created,
            one.text,
            one.voice,
            replace(settings[key], seed=one.cell.seed),
            one.sample_rate,
            one.frames,
            measurements=one.measurements,
            label=titles[key],
            fidelity_to=fidelity,
            log_mel_distance=one.log_mel_distance if fidelity else None,
            notes=one.notes,
            machine=one.machine,
            metrics=one.metrics,
            checkpoint=found.checkpoint,
        )

    return {take: summary(one) for take, one in takes.items()}


def _as_made(setting: Setting, table: Artefact | None) -> Setting:
    used = prepared_entry(setting)
    if used is None or table is None or used.artefact:
        return setting
    return setting.with_technique(replace(used, artefact=table.fingerprint))


def _lost_folder(file: Path, results: Results | None) -> str:
    try:
        values = definition.values(file)
    except PlainError:
        values = results.definition if results is not None else {}
    folder = values.get("folder") if isinstance(values, Mapping) else ""
    return folder if isinstance(folder, str) and folder and not os.path.exists(folder) else ""


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
            one.origin == SERVER,
        )
        for one in (results.settings if results else ())
    ]
    there = {one.key for one in rows}
    for key, one in planned.items():
        if key not in there:
            title = one.name if one.name not in ("", BASELINE) else described(one.setting)
            rows.append(Row(key, title, one.setting, one.origin == BASELINE, 0, each, served=one.origin == SERVER))
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
        *note_lines(results),
        *paired_lines(results),
        *worst_lines(results),
    )
    return tuple(map(localised, lines))


def _seconds(
    study: Study | None, results: Results | None, rows: tuple[Row, ...], left: int, pace: Pace
) -> float | None:
    made = sum(one.finished for one in rows)
    if study is None:
        return None
    if results is None or not made:
        return estimated_seconds(study, pace(study.model))
    return results.busy_seconds / made * left
