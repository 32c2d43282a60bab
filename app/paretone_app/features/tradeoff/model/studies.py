"""Reading a study: its points, its takes and the artefacts that they were made with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from paretone.setting.library import TakeSummary
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import Take, Trace
from paretone.studies.results import results
from paretone.studies.store import Store
from paretone.studies.stored import StoredTake
from paretone.studies.study import Cell
from paretone_app.features.tradeoff.model.points import Point, Scores, study_points
from paretone_app.state.differences import prepared_entry


@dataclass(frozen=True)
class ReadStudy:
    """Contents of one study for the trade-off view."""

    folder: Path
    points: tuple[Point, ...] = field(repr=False)
    settings: Mapping[str, Setting] = field(repr=False)
    titles: Mapping[str, str] = field(repr=False)
    baselines: Mapping[str, str] = field(repr=False)
    """The key of the baseline of each setting, by the key of the setting."""
    takes: Mapping[str, StoredTake] = field(repr=False)
    """Those that can be heard, by their ids."""
    tables: Mapping[str, Artefact] = field(repr=False)
    """By the key of the setting that they were calibrated for."""
    damage: str = ""
    checkpoint: str = ""
    """SHA-256 of the weights that it is of."""

    @cached_property
    def summaries(self) -> Mapping[str, TakeSummary]:
        """Its takes as the library knows its own, by their ids."""
        return {take: self.summary(take) for take in self.takes}

    def summary(self, take: str) -> TakeSummary:
        """The take with the id ``take`` as the library knows its own."""
        stored = self.takes[take]
        cell, title = stored.cell, self.titles[stored.cell.setting]
        setting, table = replace(self.settings[cell.setting], seed=cell.seed), self.tables.get(cell.setting)
        used = prepared_entry(setting)
        if used is not None and table is not None and not used.artefact:
            setting = setting.with_technique(replace(used, artefact=table.fingerprint))
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
            checkpoint=self.checkpoint,
        )

    @cached_property
    def _ids(self) -> dict[Cell, str]:
        """Ids of takes, by what identifies them in the study."""
        return {one.cell: take for take, one in self.takes.items()}

    def load_audio(self, take: str) -> np.ndarray:
        """The samples of the take ``take``, float32, (n,). Raises :class:`paretone.errors.StudyError`."""
        with Store(self.folder, read_only=True) as store:
            return store.audio(take)

    def load(self, take: str) -> Take:
        """The take with the id ``take``, whole, as the library keeps takes. Raises
        :class:`paretone.errors.StudyError`."""
        summary = self.summary(take)
        values = {name: getattr(summary, name) for name in TakeSummary.__dataclass_fields__ if name != "frames"}
        with Store(self.folder, read_only=True) as store:
            return Take(**values, samples=store.audio(take), trace=Trace(decoding=store.decoding(take)))


def read_study(folder: Path, scores: Scores) -> ReadStudy:
    """The study in ``folder``. Raises :class:`paretone.errors.StudyError`."""
    with Store(folder, read_only=True) as store:
        found, takes, tables = results(store), store.takes(), store.artefacts()
    machines: dict[str, dict[str, None]] = defaultdict(dict)
    for one in takes:
        machines[one.cell.setting].setdefault(one.machine)
    points = study_points(found, scores, {key: tuple(known) for key, known in machines.items()})
    lost = frozenset(found.lost)
    return ReadStudy(
        folder,
        points,
        {one.key: one.setting for one in found.settings},
        {one.key: point.title for one, point in zip(found.settings, points, strict=True)},
        {one.key: one.baseline for one in found.settings},
        {one.take: one for one in takes if one.cell.round == 0 and one.take not in lost},
        tables,
        found.damage,
        found.checkpoint,
    )
