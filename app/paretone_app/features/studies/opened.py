"""The studies that the Studies panel lists: which is chosen, and which were open, between sessions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSettings, Signal, Slot

from paretone_app.results.reader import Results

if TYPE_CHECKING:
    from paretone_app.results.study import OpenStudy

MOST_RECENT = 12
"""Studies that are listed as opened lately."""
_OPEN, _RECENT, _CHOSEN = "studies/open", "studies/recent", "studies/chosen"
"""Settings keys; written at once, so that a crash forgets none."""


class StudiesMemory:
    """What the settings keep."""

    def __init__(self, settings: QSettings) -> None:
        self._settings = settings

    @property
    def recent(self) -> list[str]:
        """Files and folders that the user opened lately, the last first."""
        return self._listed(_RECENT)

    def remember(self, place: Path) -> None:
        """Have ``place`` first among those that were opened lately."""
        recent = [str(place), *(one for one in self.recent if one != str(place))]
        self._settings.setValue(_RECENT, json.dumps(recent[:MOST_RECENT]))

    def save(self, folders: Iterable[Path], chosen: Path | None) -> None:
        """Keep the open studies and the shown one."""
        self._settings.setValue(_OPEN, json.dumps([str(one) for one in folders]))
        self._settings.setValue(_CHOSEN, str(chosen or ""))
        self._settings.sync()

    def places(self) -> Iterator[Path]:
        """Places of the studies that were open last, the shown one first: the folder, or the file of one that was never
        run."""
        from paretone.studies.store import DATABASE
        from paretone.studies.study import results_folder

        chosen = str(self._settings.value(_CHOSEN, ""))
        files = {str(results_folder(one)): Path(one) for one in self.recent}
        for place in sorted(self._listed(_OPEN), key=lambda one: one != chosen):
            folder, file = Path(place), files.get(place)
            if (folder / DATABASE).exists():
                yield folder
            elif file is not None and file.exists():
                yield file

    def _listed(self, name: str) -> list[str]:
        try:
            found = json.loads(str(self._settings.value(name, "[]")))
        except ValueError:
            return []
        return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


class OpenedStudies(QObject):
    """One of the studies that are open in the window is chosen."""

    changed = Signal()
    """Other studies are open or chosen, or one was read again."""
    brought_forward = Signal(object)
    """The user opened this study: an :class:`OpenStudy`."""

    def __init__(self, results: Results, settings: QSettings, parent: QObject) -> None:
        super().__init__(parent)
        self._results, self._memory = results, StudiesMemory(settings)
        self.chosen: Path | None = None
        """The folder of the study that is shown."""
        results.study_changed.connect(self._follow)

    @property
    def summary(self) -> OpenStudy | None:
        """The study that is shown."""
        return self._results.studies.get(self.chosen) if self.chosen is not None else None

    @property
    def recent(self) -> list[str]:
        """Files and folders that the user opened lately, the last first."""
        return self._memory.recent

    def open(
        self, place: Path, in_front: bool = True, then: Callable[[OpenStudy], object] = lambda study: None
    ) -> None:
        """Open the study that the file ``place`` describes, or whose results are in the folder ``place``, show it in
        place of another one if ``in_front``, and do ``then`` with it."""

        def opened(study: OpenStudy) -> None:
            self._memory.remember(place)
            if in_front:
                self.chosen = study.folder
            self._memory.save(self._results.studies, self.chosen)
            self.changed.emit()
            if in_front:
                self.brought_forward.emit(study)
            then(study)

        place = Path(place).expanduser().resolve()
        self._results.open(place, opened)

    def open_last(self) -> None:
        """Open what was open last. Nothing is saved meanwhile: what is not open again yet would be forgotten by a
        crash."""
        for place in self._memory.places():
            self._results.open(place)

    def close(self) -> None:
        """Show the chosen study no longer."""
        if self.chosen is not None:
            self._results.close(self.chosen)

    @Slot(object)
    def choose(self, folder: Path | None) -> None:
        """Show this one of the open studies, as it is now."""
        if folder is not None and folder in self._results.studies:
            self.chosen = folder
            self._memory.save(self._results.studies, self.chosen)
            self.changed.emit()
            self._results.read_study(folder)

    @Slot(object)
    def _follow(self, folder: Path) -> None:
        """A study was opened, read again, or closed."""
        studies = self._results.studies
        if folder not in studies:
            if self.chosen == folder:
                self.chosen = next(reversed(studies), None)
            self._memory.save(self._results.studies, self.chosen)
        elif self.chosen is None:
            self.chosen = folder
        self.changed.emit()
