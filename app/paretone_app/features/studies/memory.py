"""Which studies were open, between sessions: at once in the settings, so that a crash forgets none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from PySide6.QtCore import QSettings

_OPEN, _RECENT, _CHOSEN = "studies/open", "studies/recent", "studies/chosen"


class StudiesMemory:
    """Settings kept by the Studies presenter."""

    def __init__(self, settings: QSettings) -> None:
        self._settings = settings

    @property
    def recent(self) -> list[str]:
        """Files and folders that the user opened lately, the last first."""
        return self._listed(_RECENT)

    def remember(self, place: Path) -> None:
        """Have ``place`` first among those that were opened lately."""
        from paretone_app.features.studies.panel import MOST_RECENT

        recent = [str(place), *(one for one in self.recent if one != str(place))]
        self._settings.setValue(_RECENT, json.dumps(recent[:MOST_RECENT]))

    def save(self, folders: Iterable[Path], chosen: Path | None) -> None:
        """Save the open studies and the shown one."""
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
