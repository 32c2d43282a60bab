"""Where points come from: takes of the library and open studies are read once somebody sees them, and again when they
have changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from paretone.errors import SettingError
from paretone.listening.trials import FOLDER
from paretone_app.features.lab.presenter import LabPresenter
from paretone_app.features.presenter import Services
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.features.tradeoff.model.known_points import KnownPoints
from paretone_app.shell.notices import Level

if TYPE_CHECKING:
    from paretone.listening.results import HeardFrom
    from paretone_app.features.tradeoff.model.points import Point, Sound
    from paretone_app.features.tradeoff.model.studies import ReadStudy
    from paretone_app.features.tradeoff.reading import OnDemandReader


def audible(point: Point, sound: Sound | None) -> Sound:
    """``sound`` of ``point``. Raises :class:`SettingError` if there is none, with the reason."""
    if sound is not None:
        return sound
    if point.published:
        raise SettingError(f"{point.title} was measured by others: there is no audio of it.")
    done = "no take of it is finished yet" if not point.finished else "its takes are without audio"
    raise SettingError(f"{point.title} cannot be heard: {done}.")


class PointSources(QObject):
    """Keeps :attr:`known` up to date for those who watch. Nothing is read before one of them is seen."""

    changed = Signal()
    """There are other points, or staircases have found something else."""

    def __init__(self, services: Services, takes: TakesPresenter, lab: LabPresenter, parent: QObject) -> None:
        super().__init__(parent)
        self._takes, self._lab, self._notices = takes, lab, services.notices
        self._studies = services.state.open_studies
        self._folder = services.folder / FOLDER
        self._reader: OnDemandReader | None = None
        self._watching: list[QWidget] = []
        self.known = KnownPoints(services.state, lambda: takes.library)
        self.points: tuple[Point, ...] = ()
        """All that are known, those of studies first."""
        self.heard: tuple[HeardFrom, ...] = ()
        """What staircases have found."""
        self._stale: set[Path | None] = {None}
        """Sources to read again: folders of studies, ``None`` for the library and for what staircases have found."""
        self._asked: set[Path] = set()
        """Folders that the user wants to be opened."""
        self._offered: set[str] = set()
        """Ids of the takes that listening tests may use in addition to the library's."""
        self._studies.changed.connect(self._forget)
        self._studies.removed.connect(self._study_removed)
        takes.takes_changed.connect(self._takes_changed)
        lab.carried_through.connect(self._forget_all)
        lab.shown.connect(self.read)

    @property
    def busy(self) -> bool:
        """Whether something is being read."""
        return self._reader is not None and self._reader.busy

    def begin(self) -> None:
        """Start reading: something shows points now."""
        from paretone_app.features.tradeoff.reading import OnDemandReader

        if self._reader is None:
            self._reader = OnDemandReader(self._folder, self)
            self._reader.study_read.connect(self._take_study)
            self._reader.study_failed.connect(self._tell_failure)
            self._reader.takes_read.connect(self._take_takes)
            self._reader.takes_failed.connect(self._notices.warn)
            self._reader.heard_read.connect(self._take_heard)

    def watch(self, panel: QWidget) -> None:
        """Keep up to date while ``panel`` is seen; it asks for :meth:`read` when that begins."""
        self._watching.append(panel)

    def open_study(self, folder: Path) -> None:
        """Add the points of the study in ``folder``; what is wrong with it is said."""
        self._asked.add(folder.expanduser().resolve())
        self._studies.add(folder)

    def shut_down(self) -> None:
        """End the reading thread."""
        if self._reader is not None:
            self._reader.shut_down()

    # --- Reading -----------------------------------------------------------------------------------------------------
    @Slot()
    def _takes_changed(self) -> None:
        self._forget(None)

    @Slot(object)
    def _forget(self, what: Path | None) -> None:
        self._stale.add(what)
        self.read()

    @Slot()
    def _forget_all(self) -> None:
        self._stale |= {None, *self._studies.folders}
        self.read()

    @Slot(object)
    def _study_removed(self, folder: Path) -> None:
        self._stale.discard(folder)
        if self.known.studies.pop(folder, None) is not None:
            self._arrange()

    @Slot()
    def read(self) -> None:
        """Read what has changed, if anybody sees it."""
        showing = (*self._watching, self._lab.lab)  # The lab offers takes of studies, too.
        if self._reader is None or not any(one is not None and one.isVisible() for one in showing):
            return
        stale, self._stale = self._stale, set()
        for what in stale:
            if what is None:
                self._reader.read_takes(self._takes.library)
                self._reader.read_heard()
            else:
                self._reader.read_study(what)

    @Slot(object)
    def _take_heard(self, heard: tuple[HeardFrom, ...]) -> None:
        if heard != self.heard:
            self.heard = heard
            self.changed.emit()

    @Slot(object)
    def _take_takes(self, points: tuple[Point, ...]) -> None:
        self.known.take_in(points)
        self._arrange()

    @Slot(object)
    def _take_study(self, read: ReadStudy) -> None:
        self._asked.discard(read.folder)
        if read.folder not in self._studies.folders:
            return  # Closed meanwhile.
        if read.damage and read.folder not in self.known.studies:
            self._notices.warn(f"The study in {read.folder} is damaged ({read.damage}); its readable part is shown.")
        self.known.studies[read.folder] = read
        self._arrange()

    @Slot(object, str)
    def _tell_failure(self, folder: Path, sentence: str) -> None:
        from paretone.studies.store import DATABASE

        if folder in self._asked:
            self._asked.discard(folder)
            if (folder / DATABASE).exists():
                # It stays open: what is damaged can be set aside there.
                sentence = f"{sentence} Open it in the panel Studies."
            else:
                self._studies.remove(folder)
            self._notices.say(sentence, "error")
        elif folder in self.known.studies:
            self._notices.warn(sentence)
        else:
            # A study that was opened elsewhere and has not begun has no results yet.
            self._notices.note(sentence, Level.WARNING)

    def _arrange(self) -> None:
        self.points = self.known.arranged(self._studies.folders)
        self._offer()
        self.changed.emit()

    def _offer(self) -> None:
        """Let takes of studies be heard in listening tests, too."""
        reads = {take: read for read in self.known.studies.values() for take in read.takes}
        if set(reads) != self._offered:
            self._offered = set(reads)
            self._lab.offer([read.summaries[take] for take, read in reads.items()], self.known.load_audio())
