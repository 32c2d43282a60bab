"""The studies that the Studies panel lists: opened, chosen, looked at again, closed, and remembered between sessions.

What reads studies is imported on use: the window is to be there before it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSettings, Signal, Slot

from paretone.errors import PlainError
from paretone.setting.library import Library
from paretone_app.features.studies.memory import StudiesMemory
from paretone_app.shell.background import Background
from paretone_app.shell.notices import Notices
from paretone_app.state.open_studies import OpenStudies

if TYPE_CHECKING:
    from paretone.studies.results import Results
    from paretone_app.features.studies.study_summary import StudySummary


class OpenedStudies(QObject):
    """One summary for each study that is open in the window; one of them is chosen."""

    changed = Signal()
    """Other studies are open or chosen, or one has another summary."""
    brought_forward = Signal(object)
    """The user opened this study: its :class:`StudySummary`."""

    def __init__(
        self,
        shared: OpenStudies,
        settings: QSettings,
        library: Callable[[], Library],
        notices: Notices,
        background: Background,
        parent: QObject,
    ) -> None:
        """``shared`` is what all features know as open; ``library`` gives the takes that say how fast models are."""
        super().__init__(parent)
        self._shared, self._library = shared, library
        self._memory = StudiesMemory(settings)
        self._notices = notices
        self._background = background
        self._files: dict[Path, Path] = {}
        """File of each open study, by its folder."""
        self._summaries: dict[Path, StudySummary] = {}
        self.chosen: Path | None = None
        """The folder of the study that is shown."""
        shared.changed.connect(self._follow)
        shared.removed.connect(self._forget)

    @property
    def summary(self) -> StudySummary | None:
        """Summary of the study that is shown."""
        return self._summaries.get(self.chosen) if self.chosen is not None else None

    @property
    def listed(self) -> list[tuple[Path, str]]:
        """Folder and title of every study that can be shown."""
        return [(folder, self._summaries[folder].title) for folder in self._files if folder in self._summaries]

    @property
    def results(self) -> dict[Path, Results]:
        """Results of the open studies that have any, by folder."""
        found = ((folder, one.results) for folder, one in self._summaries.items())
        return {folder: results for folder, results in found if results is not None}

    @property
    def recent(self) -> list[str]:
        """Files and folders that the user opened lately, the last first."""
        return self._memory.recent

    # --- Opening -----------------------------------------------------------------------------------------------------
    def open(self, place: Path) -> None:
        """Show the study that the file ``place`` describes, or whose results are in the folder ``place``."""
        self._begin_opening(place, in_front=True, remembered=True)

    def open_last(self) -> None:
        """Open what was open last. Nothing is saved meanwhile: what is not open again yet would be forgotten by a
        crash."""
        for place in self._memory.places():
            self._begin_opening(place, in_front=False, remembered=False)

    def _begin_opening(self, place: Path, in_front: bool, remembered: bool) -> None:
        """``in_front``: whether it is shown in place of another one; ``remembered``: whether it is news that it is
        open."""
        from paretone_app.features.studies.study_summary import summary_at

        place = Path(place).expanduser().resolve()
        self._background.run(
            lambda: summary_at(place, self.pace()), lambda found: self._opened(place, found, in_front, remembered)
        )

    def _opened(self, place: Path, found: StudySummary | BaseException, in_front: bool, remembered: bool) -> None:
        if isinstance(found, PlainError):
            self._notices.warn(str(found))
            return
        if isinstance(found, BaseException):
            raise found
        if found.study is None and found.results is None and not found.folder_problem:
            self._notices.warn(found.file_problem)
            return
        self._files[found.folder] = found.file
        self._summaries[found.folder] = found
        if in_front or self.chosen is None:
            self.chosen = found.folder
        if remembered:
            self._memory.remember(place)
            self._save()
        self._shared.add(found.folder)
        self.changed.emit()
        if in_front:
            self.brought_forward.emit(found)

    @Slot(object)
    def _follow(self, folder: Path) -> None:
        """A study was opened elsewhere, or has more takes."""
        if folder not in self._files:
            self._begin_opening(folder, in_front=False, remembered=True)

    @Slot(object)
    def _forget(self, folder: Path) -> None:
        self._files.pop(folder, None)
        self._summaries.pop(folder, None)
        if self.chosen == folder:
            self.chosen = next(reversed(self._files), None)
        self._save()
        self.changed.emit()

    def close(self) -> None:
        """Show the chosen study no longer."""
        if self.chosen is not None:
            self._shared.remove(self.chosen)

    @Slot(object)
    def choose(self, folder: Path | None) -> None:
        """Show this one of the open studies, as it is now."""
        if folder is not None and folder in self._files:
            self.chosen = folder
            self._save()
            self.changed.emit()
            self.look_again(folder)

    # --- Looking -----------------------------------------------------------------------------------------------------
    def touch(self, folder: Path) -> None:
        """The study has other takes than before: say so, and summarise it again."""
        self._shared.touch(folder)
        self.look_again(folder)

    def look_again(self, folder: Path) -> None:
        """Summarise a study again."""
        from paretone_app.features.studies.study_summary import summary

        file = self._files.get(folder)
        if file is not None:
            self._background.run(lambda: summary(folder, file, self.pace()), lambda found: self._seen(folder, found))

    def _seen(self, folder: Path, found: StudySummary | BaseException) -> None:
        if isinstance(found, BaseException):
            raise found
        if folder in self._files:
            self._summaries[folder] = found
            self.changed.emit()

    def _save(self) -> None:
        self._memory.save(self._files, self.chosen)

    def pace(self) -> Callable[[str], float | None]:
        """Speed of models in stored takes and in those of open studies."""
        from paretone.studies import results

        library, summaries = self._library(), tuple(self._summaries.values())

        def pace(model: str) -> float | None:
            takes = []
            with suppress(PlainError):
                takes += [(one.setting, one.text, one.measurements) for one in library.summaries(unfinished=False)]
            for seen in summaries:
                if seen.model == model and seen.made:
                    with suppress(PlainError):
                        takes += results.studied(seen.folder)
            return results.pace(model, takes)

        return pace
