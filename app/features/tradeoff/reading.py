"""Reading takes and studies for the trade-off view, in a thread of its own, so that the window never waits for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Signal

from app.features.tradeoff.model.points import Point, Scores, study_points, take_points
from app.listening import results as listening_results
from app.shell.background import Background
from app.state.artefacts import prepared_entry
from engine.errors import PlainError
from engine.setting.library import Library, TakeSummary
from engine.setting.setting import Setting
from engine.setting.take import Take
from engine.studies.results import results
from engine.studies.store import Store
from engine.studies.stored import StoredTake
from engine.studies.study import Cell
from engine.techniques.base import Artefact


@dataclass(frozen=True)
class ReadStudy:
    """What the trade-off view knows of one study."""

    folder: Path
    points: tuple[Point, ...] = field(repr=False)
    settings: Mapping[str, Setting] = field(repr=False)
    titles: Mapping[str, str] = field(repr=False)
    baselines: Mapping[str, str] = field(repr=False)
    """Of each setting its baseline, by their keys."""
    takes: Mapping[str, StoredTake] = field(repr=False)
    """Those that can be heard, by their ids."""
    tables: Mapping[str, Artefact] = field(repr=False)
    """By the key of the setting that they were calibrated for."""
    damage: str = ""

    def table(self, take: str) -> Artefact | None:
        """The strategy table that a take was made with."""
        return self.tables.get(self.takes[take].cell.setting)

    def summary(self, take: str) -> TakeSummary:
        """The take with the id ``take`` as the library knows its own."""
        stored = self.takes[take]
        cell, title = stored.cell, self.titles[stored.cell.setting]
        setting, table = replace(self.settings[cell.setting], seed=cell.seed), self.tables.get(cell.setting)
        engaged = prepared_entry(setting)
        if engaged is not None and table is not None and not engaged.artefact:
            setting = setting.with_technique(replace(engaged, artefact=table.fingerprint))
        fidelity = ""
        if stored.log_mel_distance is not None and self.baselines[cell.setting] != cell.setting:
            fidelity = self._ids.get(replace(cell, setting=self.baselines[cell.setting]), "")
        return TakeSummary(
            take,
            stored.created,
            stored.text,
            stored.voice,
            setting,
            stored.sample_rate,
            stored.frames,
            stored.measurements,
            title,
            fidelity_to=fidelity,
            log_mel_distance=stored.log_mel_distance if fidelity else None,
            notes=stored.notes,
            machine=stored.machine,
            metrics=stored.metrics,
        )

    @cached_property
    def _ids(self) -> dict[Cell, str]:
        """Of takes, by what identifies them in the study."""
        return {one.cell: take for take, one in self.takes.items()}

    def load_audio(self, take: str) -> np.ndarray:
        """The samples of the take ``take``, float32, (n,). Raises :class:`engine.errors.StudyError`."""
        with Store(self.folder, read_only=True) as store:
            return store.audio(take)

    def load(self, take: str) -> Take:
        """The take with the id ``take``, whole, as the library keeps takes. Raises
        :class:`engine.errors.StudyError`."""
        summary = self.summary(take)
        values = {name: getattr(summary, name) for name in TakeSummary.__dataclass_fields__ if name != "frames"}
        return Take(**values, samples=self.load_audio(take))


def read_study(folder: Path, scores: Scores) -> ReadStudy:
    """The study in ``folder``. Raises :class:`engine.errors.StudyError`."""
    with Store(folder, read_only=True) as store:
        found, takes, tables = results(store), store.takes(), store.artefacts()
    machines: dict[str, dict[str, None]] = defaultdict(dict)
    for one in takes:
        machines[one.cell.setting].setdefault(one.machine)
    points = study_points(found, scores, {key: tuple(known) for key, known in machines.items()})
    return ReadStudy(
        folder,
        points,
        {one.key: one.setting for one in found.settings},
        {one.key: point.title for one, point in zip(found.settings, points, strict=True)},
        {one.key: one.baseline for one in found.settings},
        {one.take: one for one in takes if one.cell.round == 0},
        tables,
        found.damage,
    )


class Reader(QObject):
    """Reads on demand. What is asked for again while it is read is read once more afterwards, however often it was."""

    study_read = Signal(object)
    """A :class:`ReadStudy`."""
    study_failed = Signal(object, str)
    """The folder of what could not be read as a study, and why, as a sentence."""
    takes_read = Signal(object)
    """The library's points, a tuple."""
    takes_failed = Signal(str)

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        """``folder`` is where trials of listening tests are kept."""
        super().__init__(parent)
        self._folder = folder
        self._background = Background("tradeoff", self)
        self._under_way: dict[object, Callable[[], object] | None] = {}

    @property
    def busy(self) -> bool:
        """Whether something is being read."""
        return bool(self._under_way)

    def read_study(self, folder: Path) -> None:
        """Read the study in ``folder``."""
        self._run(folder, lambda: read_study(folder, self._scores()))

    def read_takes(self, library: Library) -> None:
        """Read the takes of ``library``."""
        self._run(None, lambda: take_points(library.summaries(), self._scores()))

    def shut_down(self) -> None:
        """End the thread."""
        self._background.shut_down()

    def _scores(self) -> Scores:
        try:
            return Scores(listening_results.scores(self._folder))
        except PlainError:
            # The lab says what is wrong with its records; what was measured is there without them.
            return Scores()

    def _run(self, what: object, work: Callable[[], object]) -> None:
        if what in self._under_way:
            self._under_way[what] = work
            return
        self._under_way[what] = None
        self._background.run(work, lambda found: self._deliver(what, found))

    def _deliver(self, what: object, found: object) -> None:
        again = self._under_way.pop(what)
        if again is not None:
            self._run(what, again)
        if isinstance(found, PlainError):
            if isinstance(what, Path):
                self.study_failed.emit(what, str(found))
            else:
                self.takes_failed.emit(str(found))
        elif isinstance(found, BaseException):
            raise found
        elif isinstance(found, ReadStudy):
            self.study_read.emit(found)
        else:
            self.takes_read.emit(found)
