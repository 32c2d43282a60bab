"""The only reader of results: takes, open studies, and listening tests. Imports code for studies on use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from PySide6.QtCore import QObject, Signal

from paretone.errors import PlainError
from paretone.listening import trials
from paretone.setting.library import Library, TakeSummary
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import Take
from paretone_app.results.takes import KeptTakes, open_library
from paretone_app.shell.bridge import Background, arrived
from paretone_app.state.app_state import AppState

if TYPE_CHECKING:
    from paretone.listening.results import HeardFrom
    from paretone.studies.results import Results as StudyResults
    from paretone_app.results.points import MadePoint, Point, Scores, Sound
    from paretone_app.results.study import OpenStudy, Pace
    from paretone_app.widgets.panel_parts import ShownPanel

_MARKED = 8
"""Most marked points with the setting in Setup: those of studies first, then the newest takes."""
_TAKES, _LISTENED, _SERVERS = "takes", "listened", "servers"
"""Sources other than the folders of studies."""
_Found = TypeVar("_Found")


class Results(QObject):
    """Reads in one thread, each source again after a change. Points are computed only while a view shows them."""

    study_changed = Signal(object)
    """The study in this folder (a :class:`~pathlib.Path`) was opened, read again, or closed: see :attr:`studies`."""
    points_changed = Signal()
    problem = Signal(str)

    def __init__(self, state: AppState, folder: Path, parent: QObject | None = None) -> None:
        """``folder``: the user's data."""
        super().__init__(parent)
        self._state = state
        self.takes = KeptTakes(open_library(folder / "takes"), self)
        self._trials = folder / trials.FOLDER
        self._background = Background("results", self)
        self._under_way: dict[object, Callable[[], None] | None] = {}
        """Reads under way, each with the repeat requested meanwhile."""
        self._watching: list[ShownPanel] = []
        self.servers_folder = folder / "servers"
        self.stale: set[str | Path] = {_LISTENED, _TAKES, _SERVERS}
        """Sources of points that changed."""
        self.studies: dict[Path, OpenStudy] = {}
        """Open studies by results folder, in the order of opening."""
        self.points: tuple[Point, ...] = ()
        """All known points, those of studies first."""
        self.heard: tuple[HeardFrom, ...] = ()
        """Results of staircases."""
        self.of_take: dict[str, list[str]] = {}
        """Keys of the points of each take, by take id."""
        self._of_setting: dict[tuple[str, str], list[str]] = {}
        """Keys of each setting's points, studies' first (key in studies, fingerprint of its strategy table)."""
        self._of_takes: tuple[Point, ...] = ()
        self._of_servers: tuple[Point, ...] = ()
        self.taken: frozenset[str] = frozenset()
        """Ids of the library's takes that are points."""
        self._said: dict[tuple[str, tuple[str, str, int]], Sound] | None = None
        """The library's takes by setting and content; ``None`` until needed."""
        self._scores: Scores | None = None
        self._made: dict[str, MadePoint] = {}
        """Used by the worker thread only, as :attr:`_scores` is."""
        self.takes.changed.connect(self._takes_changed)

    def shut_down(self) -> None:
        self._background.shut_down()
        self.takes.library.close()

    @property
    def library(self) -> Library:
        return self.takes.library

    # --- Reading ------------------------------------------------------------------------------------------------------
    @property
    def busy(self) -> bool:
        return bool(self._under_way)

    def watch(self, panel: ShownPanel) -> None:
        """Keep points up to date while ``panel`` is visible."""
        self._watching.append(panel)
        panel.when_seen(self.read)

    @property
    def _is_seen(self) -> bool:
        return any(one.is_seen for one in self._watching)

    def read(self, *changed: str | Path) -> None:
        """Compute the points of sources that changed, now or earlier, as soon as a view shows them."""
        self.stale.update(changed)
        if not self._is_seen:
            for panel in self._watching:
                panel.when_seen(self.read)
            return
        stale, self.stale = self.stale, set()
        for what in sorted(stale, key=lambda one: one != _LISTENED):  # Points need scores.
            if what == _LISTENED:
                self._run(what, self._listened, self._take_heard)
            elif what == _TAKES:
                self._run(what, partial(self._points_of, self.takes.measured), self._take_points)
            elif what == _SERVERS:
                replies = tuple(one for one in self.takes.finished if one.is_reply)
                self._run(what, partial(_points_of_servers, self.servers_folder, replies), self._take_servers)
            elif isinstance(what, Path):
                self.read_study(what)

    def read_servers(self) -> None:
        """Read the measured servers again after one was measured or forgotten."""
        self.read(_SERVERS)

    def _take_servers(self, points: tuple[Point, ...]) -> None:
        self._of_servers = points
        self._arrange()

    def _takes_changed(self) -> None:
        """A method, not a partial: Qt ends its connection with the reader."""
        self.read(_TAKES)

    def read_listened(self) -> None:
        """Read the results of listening tests after one has ended; points depend on them."""
        self.read(_LISTENED, _TAKES, *self.studies)

    def _run(self, what: object, work: Callable[[], Any], take: Callable[[Any], object]) -> None:
        """Run ``work`` in the worker. Requests during a read of the same source cause one repeat."""
        if what in self._under_way:
            self._under_way[what] = partial(self._run, what, work, take)
            return
        self._under_way[what] = None
        self._background.run(work, lambda found: self._deliver(what, found, take))

    def _deliver(self, what: object, found: object, take: Callable[[Any], object]) -> None:
        again = self._under_way.pop(what)
        if again is not None:
            again()
        if arrived(found, self.problem.emit):
            take(found)

    def open(self, place: Path, then: Callable[[OpenStudy], object] = lambda study: None) -> None:
        """Open the study with the file ``place`` or the results folder ``place``, then call ``then`` with it."""
        from paretone_app.results.study import read_study_at

        place = Path(place).expanduser().resolve()
        pace, whole = self.pace(), self._is_seen
        self._run(object(), lambda: read_study_at(place, pace, self._known_scores(whole)), partial(self._opened, then))

    def _opened(self, then: Callable[[OpenStudy], object], study: OpenStudy) -> None:
        if study.study is None and study.results is None and not study.folder_problem:
            self.problem.emit(study.file_problem)
            return
        damage = study.results.damage if study.results is not None else ""
        if damage and study.folder not in self.studies:
            self.problem.emit(f"The study in {study.folder} is damaged ({damage}); its readable part is shown.")
        self.studies.setdefault(study.folder, study)
        self._take_study(study)
        then(study)

    def read_study(self, folder: Path) -> None:
        """Read a study again; ignored if it is not open."""
        from paretone_app.results.study import read_study

        study = self.studies.get(folder)
        if study is not None:
            pace, whole = self.pace(), self._is_seen
            self._run(folder, lambda: read_study(folder, study.file, pace, self._known_scores(whole)), self._take_study)

    def close(self, folder: Path) -> None:
        study = self.studies.pop(folder, None)
        if study is not None:
            self.stale.discard(folder)
            self.study_changed.emit(folder)
            if study.parts is not None:
                self._arrange()

    def set_aside(self, folder: Path) -> Path:
        """Set the damaged results of a study aside, so that it can run again; returns the backup."""
        from paretone.studies.running import set_aside

        backup = set_aside(folder)
        self.read_study(folder)
        return backup

    def write_report(self, folder: Path, written: Callable[[Path | BaseException], object]) -> None:
        """Write the report of the study in ``folder``; ``written`` receives its page."""
        from paretone_app.results.study import report

        self.run(lambda: report(folder, self._trials), written)

    def run(self, work: Callable[[], _Found], done: Callable[[_Found | BaseException], object]) -> None:
        """Run ``work`` in the worker thread, after pending reads; ``done`` receives the result."""
        self._background.run(work, done)

    @property
    def measured(self) -> dict[Path, StudyResults]:
        """Results of the open studies that have any, by folder."""
        return {folder: one.results for folder, one in self.studies.items() if one.results is not None}

    def pace(self) -> Pace:
        """Speed of models, from stored takes and open studies."""
        from paretone.studies.results import pace as seconds_per_character

        takes, studies = self.takes.measured, tuple(self.studies.values())

        def pace(model: str) -> float | None:
            known = [(one.setting, one.text, one.measurements) for one in takes]
            known += (one for study in studies if study.model == model for one in study.measured)
            return seconds_per_character(model, known)

        return pace

    def _take_study(self, study: OpenStudy) -> None:
        before = self.studies.get(study.folder)
        if before is None:
            return  # Closed meanwhile.
        lost = study.results is None and study.folder_problem and before.results is not None
        if study.results is not None and study.parts is None:
            self.stale.add(study.folder)
        if study.parts is None and (study.results is not None or study.folder_problem):
            # Keep its former points until a view shows them and they can be read.
            study = replace(study, takes=study.takes or before.takes, parts=before.parts)
        self.studies[study.folder] = study
        self.study_changed.emit(study.folder)
        if study is before or study.parts is not before.parts:
            self._arrange()
        if lost:
            self.problem.emit(study.folder_problem)
        self.read()

    # --- Listening tests ----------------------------------------------------------------------------------------------
    def keep_trial(self, trial: trials.TrialRecord) -> None:
        trials.append(trial, self._trials)

    @property
    def trials(self) -> trials.Records:
        return trials.read(self._trials)

    def _listened(self) -> tuple[HeardFrom, ...]:
        """In the worker: read the results of listening tests; the lab reports damaged records."""
        from paretone.listening import results
        from paretone_app.results.points import Scores

        self._scores = Scores()
        try:
            self._scores = Scores(results.scores(self._trials))
            return results.heard_from(self._trials)
        except PlainError:
            return ()

    def _known_scores(self, whole: bool) -> Scores | None:
        """In the worker: the scores for points; ``None`` unless ``whole``."""
        if whole and self._scores is None:
            self._listened()
        return self._scores if whole else None

    def _take_heard(self, heard: tuple[HeardFrom, ...]) -> None:
        if heard != self.heard:
            self.heard = heard
            self.points_changed.emit()

    def _points_of(self, takes: tuple[TakeSummary, ...]) -> tuple[Point, ...]:
        """In the worker: the points of the library's takes."""
        from paretone_app.results.points import Scores, take_points

        return take_points(takes, self._known_scores(True) or Scores(), self._made)

    def _take_points(self, points: tuple[Point, ...]) -> None:
        self._of_takes, self._said, self.taken = points, None, frozenset(one.key for one in points)
        self._arrange()

    def _arrange(self) -> None:
        """Rebuild the indices of points by take and by setting."""
        parts = [one.parts for one in self.studies.values() if one.parts is not None]
        self.points = (*(point for one in parts for point in one.points), *self._of_servers, *self._of_takes)
        self.of_take, self._of_setting = {}, {}
        for point in self.points:
            # A study calibrates automatically, so its points also match settings without a table.
            own = self._artefact(point)
            for artefact in {own, ""} if point.folder is not None else (own,):
                self._of_setting.setdefault((point.candidate, artefact), []).append(point.key)
            for sound in point.sounds:
                self.of_take.setdefault(sound.take, []).append(point.key)
        self.points_changed.emit()

    @property
    def setup(self) -> tuple[str, str]:
        """Identity of the setting in Setup: its key in studies, and the fingerprint of its strategy table."""
        setting = self._state.selection.setting
        used = self._state.artefacts.entry(setting)
        return setting.bare.fingerprint, used.artefact if used is not None else ""

    def of_setup(self) -> list[str]:
        """Keys of the points with the setting in Setup, table included: those of studies, then the newest takes."""
        return self._of_setting.get(self.setup, [])[:_MARKED] if self._state.selection.info is not None else []

    def of_takes(self, takes: Collection[str], shown: Collection[str]) -> set[str]:
        """Keys of the points of these takes: their own if ``shown``, else those of studies with their settings."""
        own = {take for take in takes if take in shown}
        settings = {one.candidate for one in self._of_takes if one.key in takes and one.key not in own}
        known = {key for (setting, _), keys in self._of_setting.items() if setting in settings for key in keys}
        return own | (known - self.taken)

    def takes_of(self, points: Iterable[Point]) -> set[str]:
        """Ids of the library's takes for these points, and of takes with the settings of study points."""
        points = [one for one in points if one.setting is not None]
        settings = {one.candidate for one in points if one.folder is not None}
        own = {one.key for one in points if one.folder is None}
        return own | {one.key for one in self._of_takes if one.candidate in settings} if settings else own

    def sound_of(self, point: Point, spoken: tuple[str, str, int]) -> Sound | None:
        """The take of ``point``, or else a library take with its setting, with this text, voice and seed."""
        own = next((one for one in point.sounds if one.spoken == spoken), None)
        if own is not None or point.setting is None:
            return own
        if self._said is None:
            every = ((one.candidate, sound) for one in reversed(self._of_takes) for sound in one.sounds)
            self._said = {(candidate, sound.spoken): sound for candidate, sound in every}  # Newest wins.
        return self._said.get((point.candidate, spoken))

    # --- Takes --------------------------------------------------------------------------------------------------------
    @property
    def all_takes(self) -> tuple[TakeSummary, ...]:
        """Finished takes: the library's, newest first, then open studies' with visible points. Examples are both."""
        parts = (one.parts for one in self.studies.values() if one.parts is not None)
        found = (*self.takes.finished, *(take for one in parts for take in one.summaries.values()))
        return tuple({one.id: one for one in reversed(found)}.values())[::-1]

    def takes_with(self, setting: Setting) -> tuple[TakeSummary, ...]:
        """The library's measured takes, and those of open studies with ``setting`` and their baselines."""
        found = list(self.takes.measured)
        for study in self.studies.values():
            with suppress(PlainError):  # Its panel reports damage.
                found += study.takes_with(setting).values()
        return tuple(found)

    def take_reader(self, take: str) -> Callable[[], Take]:
        """A function that reads the whole take, in any thread. It raises :class:`PlainError` if that fails."""
        studied = (one for one in self.studies.values() if one.parts is not None and take in one.parts.summaries)
        study = next(studied, None)
        return partial(self.library.load if study is None else study.load, take)

    def take_of(self, point: Point, sound: Sound) -> Take:
        """Read one of a point's takes. Raises :class:`PlainError` if that fails."""
        return self.library.load(sound.take) if point.folder is None else self.studies[point.folder].load(sound.take)

    def load_audio(self) -> Callable[[str], tuple[np.ndarray, int]]:
        """As :meth:`take_reader`, for samples and rate of currently known takes by id."""
        studies, library = tuple(self.studies.values()), self.library

        def load(take: str) -> tuple[np.ndarray, int]:
            study = next((one for one in studies if take in one.takes), None)
            if study is not None:
                return study.load_audio(take)
            return library.load_audio(take), library.summary(take).sample_rate

        return load

    # --- Artefacts ----------------------------------------------------------------------------------------------------
    def table_of(self, point: Point) -> Artefact | None:
        """The strategy table of a point's takes, if known."""
        if point.setting is None:
            return None
        if point.folder is not None:
            study = self.studies.get(point.folder)
            return None if study is None or study.parts is None else study.parts.tables.get(point.candidate)
        return self._artefact_of(point.setting)

    def _artefact_of(self, setting: Setting) -> Artefact | None:
        """The artefact named by ``setting``: one at hand, or one of a study."""
        found, used = self._state.artefacts.find(setting), self._state.artefacts.entry(setting)
        if found is not None or used is None:
            return found
        parts = (one.parts for one in self.studies.values() if one.parts is not None)
        tables = (table for one in parts for table in one.tables.values())
        made = self._state.making.artefacts.get(used.artefact)
        return made or next((one for one in tables if one.fingerprint == used.artefact), None)

    def _artefact(self, point: Point) -> str:
        """Fingerprint of the strategy table of a point's takes, or ``""``."""
        if point.folder is not None:
            table = self.table_of(point)
            return "" if table is None else table.fingerprint
        used = self._state.artefacts.entry(point.setting) if point.setting is not None else None
        return "" if used is None else used.artefact

    def prepared(self, setting: Setting, table: Artefact | None = None) -> tuple[Setting, tuple[Artefact, ...]]:
        """``setting`` with ``table``, or with the artefact it names, and that artefact. An unavailable artefact is
        removed from the setting, to be prepared again."""
        entry, found = self._state.artefacts.entry(setting), table or self._artefact_of(setting)
        if entry is None:
            return setting, ()
        named = setting.with_technique(replace(entry, artefact="" if found is None else found.fingerprint))
        return named, () if found is None else (found,)


def _points_of_servers(folder: Path, replies: tuple[TakeSummary, ...]) -> tuple[Point, ...]:
    """In the worker: the points of measured servers; the panel reports damaged records."""
    from paretone.serving.records import read_all
    from paretone_app.results.points import server_points

    return server_points(read_all(folder)[0], replies)
