"""Points of the trade-off view: those of takes and open studies, the take or setting of each, and its strategy
table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paretone.setting.library import Library
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import Take

if TYPE_CHECKING:
    from paretone_app.features.tradeoff.model.points import Point, Sound
    from paretone_app.features.tradeoff.model.studies import ReadStudy
    from paretone_app.state.app_state import AppState

_MARKED = 8
"""Maximum number of marked points with the setting in Setup: those of studies first, then the newest takes."""


class KnownPoints:
    """Everything that was read, by take and by setting."""

    def __init__(self, state: AppState, library: Callable[[], Library]) -> None:
        """``library`` gives the library, which may be another one later."""
        self._state, self._library = state, library
        self._takes: tuple[Point, ...] = ()
        self._said: dict[tuple[str, tuple[str, str, int]], Sound] | None = None
        """What the library's takes say, by setting; ``None`` until it is asked for."""
        self.taken: frozenset[str] = frozenset()
        """Ids of the library's takes."""
        self.studies: dict[Path, ReadStudy] = {}
        """By their folders."""
        self.of_take: dict[str, list[str]] = {}
        """The keys of the points that each take belongs to, by its id."""
        self._of_setting: dict[tuple[str, str], list[str]] = {}
        """The keys of the points of each setting: by what studies know it as, and the fingerprint of its strategy
        table; those of studies first."""

    def take_in(self, takes: tuple[Point, ...]) -> None:
        """The library's takes are these."""
        self._takes, self.taken, self._said = takes, frozenset(one.key for one in takes), None

    def arranged(self, folders: Iterable[Path]) -> tuple[Point, ...]:
        """The points of the studies in ``folders``, as far as these were read, then those of the library's takes; they
        are found by take and by setting from now on."""
        read = [self.studies[folder] for folder in folders if folder in self.studies]
        points = (*(point for one in read for point in one.points), *self._takes)
        self.of_take, self._of_setting = {}, {}
        for point in points:
            # A study calibrates automatically, so its points also match settings without a table.
            for artefact in {self._artefact(point), "" if point.folder is not None else self._artefact(point)}:
                self._of_setting.setdefault((point.candidate, artefact), []).append(point.key)
            for sound in point.sounds:
                self.of_take.setdefault(sound.take, []).append(point.key)
        return points

    # --- Finding ------------------------------------------------------------------------------------------------------
    @property
    def setup(self) -> tuple[str, str]:
        """Identity of the setting in Setup: its key in studies, and the fingerprint of its strategy table."""
        setting = self._state.selection.setting
        used = self._state.artefacts.entry(setting)
        return setting.bare.fingerprint, used.artefact if used is not None else ""

    def of_setup(self) -> list[str]:
        """The keys of the points of the setting that is in Setup, its strategy table included: of studies, and the
        newest takes."""
        return self._of_setting.get(self.setup, [])[:_MARKED] if self._state.selection.info is not None else []

    def of_takes(self, takes: Collection[str], shown: Collection[str]) -> set[str]:
        """The keys of the points of these takes: their own if they are among ``shown``; of those that have none
        there, those of studies with the same settings."""
        own = {take for take in takes if take in shown}
        settings = {one.candidate for one in self._takes if one.key in takes and one.key not in own}
        known = [key for (setting, _), keys in self._of_setting.items() if setting in settings for key in keys]
        return own | (set(known) - self.taken)

    def takes_of(self, points: Iterable[Point]) -> set[str]:
        """Ids of the library's takes that these points are, and of those made with the settings of studies' points."""
        points = [one for one in points if not one.published]
        settings = {one.candidate for one in points if one.folder is not None}
        own = {one.key for one in points if one.folder is None}
        return own | {one.key for one in self._takes if one.candidate in settings} if settings else own

    # --- Strategy tables ----------------------------------------------------------------------------------------------
    def table_of(self, point: Point) -> Artefact | None:
        """The strategy table that a point's takes were made with, if it is known."""
        if point.setting is None:
            return None
        if point.folder is not None:
            read = self.studies.get(point.folder)
            return None if read is None else read.tables.get(point.candidate)
        return self.artefact_of(point.setting)

    def artefact_of(self, setting: Setting) -> Artefact | None:
        """The artefact that ``setting`` names: one at hand, or one of a study."""
        found, used = self._state.artefacts.find(setting), self._state.artefacts.entry(setting)
        if found is not None or used is None:
            return found
        tables = (table for read in self.studies.values() for table in read.tables.values())
        made = self._state.making.artefacts.get(used.artefact)
        return made or next((one for one in tables if one.fingerprint == used.artefact), None)

    def _artefact(self, point: Point) -> str:
        """The fingerprint of the strategy table that a point's takes were made with, or ``""``."""
        if point.folder is not None:
            table = self.table_of(point)
            return "" if table is None else table.fingerprint
        used = self._state.artefacts.entry(point.setting) if point.setting is not None else None
        return "" if used is None else used.artefact

    def prepared(self, setting: Setting, table: Artefact | None = None) -> tuple[Setting, tuple[Artefact, ...]]:
        """``setting`` with ``table``, or with the artefact that it names, and that artefact; one that is not at hand
        any more is not named, so that it is prepared again."""
        entry, found = self._state.artefacts.entry(setting), table or self.artefact_of(setting)
        if entry is None:
            return setting, ()
        named = setting.with_technique(replace(entry, artefact="" if found is None else found.fingerprint))
        return named, () if found is None else (found,)

    # --- A sentence ---------------------------------------------------------------------------------------------------
    def sound_of(self, point: Point, spoken: tuple[str, str, int]) -> Sound | None:
        """The take in which ``point``, or else a take of the library with its setting, says this in this voice with
        this seed."""
        own = next((one for one in point.sounds if one.spoken == spoken), None)
        if own is not None or point.setting is None:
            return own
        if self._said is None:
            every = ((one.candidate, sound) for one in reversed(self._takes) for sound in one.sounds)
            self._said = {(candidate, sound.spoken): sound for candidate, sound in every}  # The newest counts.
        return self._said.get((point.candidate, spoken))

    # --- Takes --------------------------------------------------------------------------------------------------------
    def take_of(self, point: Point, sound: Sound) -> Take:
        """One of a point's takes, whole. Raises :class:`PlainError` when it cannot be read."""
        if point.folder is None:
            return self._library().load(sound.take)
        return self.studies[point.folder].load(sound.take)

    def take_reader(self, take: str) -> Callable[[], Take]:
        """What reads the take with this id, whole, in any thread. It raises :class:`PlainError` when it cannot be
        read."""
        read, library = next((one for one in self.studies.values() if take in one.takes), None), self._library()
        return partial(library.load if read is None else read.load, take)

    def load_audio(self) -> Callable[[str], tuple[np.ndarray, int]]:
        """What gives samples and rate of the takes that are known now, by their ids, in any thread. It raises
        :class:`PlainError` when they cannot be read."""
        reads = {take: read for read in self.studies.values() for take in read.takes}
        library = self._library()

        def load(take: str) -> tuple[np.ndarray, int]:
            if take in reads:
                return reads[take].load_audio(take), reads[take].takes[take].sample_rate
            return library.load_audio(take), library.summary(take).sample_rate

        return load
