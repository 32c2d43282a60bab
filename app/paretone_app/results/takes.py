"""The take library in the window: always available, with its summaries in memory; a damaged one can be replaced."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from paretone.errors import LibraryError, PlainError, told
from paretone.setting.library import DeletedTakes, KeptAudio, Library, LibraryDamaged, TakeSummary
from paretone.setting.take import Measurements, Take


class KeptTakes(QObject):
    """The takes of the library. All changes go through here, so the library need not be read again."""

    changed = Signal()
    problem = Signal(str)

    def __init__(self, opened: OpenedLibrary, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.all: tuple[TakeSummary, ...] = ()
        """Newest first, unfinished ones included."""
        self.finished: tuple[TakeSummary, ...] = ()
        self.measured: tuple[TakeSummary, ...] = ()
        """Finished takes made by the user, whose figures count: no example, no reply of a server."""
        self.opened = opened
        self._audio = KeptAudio(opened.library.folder)
        """Audio of deleted takes."""
        with suppress(PlainError):  # The window reports the library's problem.
            self._put(opened.library.summaries())

    @property
    def library(self) -> Library:
        return self.opened.library

    def read(self) -> None:
        with told(self.problem.emit):
            self._put(self.library.summaries())

    def _put(self, takes: Iterable[TakeSummary]) -> None:
        self.all = tuple(takes)
        self.finished = tuple(one for one in self.all if not one.unfinished)
        self.measured = tuple(one for one in self.finished if not one.is_example and not one.is_reply)
        self.changed.emit()

    def _replace(self, take: TakeSummary) -> None:
        self._put(take if one.id == take.id else one for one in self.all)

    # --- Changes ------------------------------------------------------------------------------------------------------
    # These raise :class:`PlainError` if the library is not writable.
    def add(self, *takes: Take) -> None:
        kept = [self.library.add(one) for one in takes]
        self._put((*kept[::-1], *self.all))

    def measure(self, take: str, figures: Mapping[str, float]) -> None:
        """Store further ``figures`` of a take; ignored if it was deleted."""
        if take in self.library:
            self._replace(self.library.measure(take, figures))

    def repeat(self, take: str, runs: Sequence[Measurements]) -> None:
        """Store the measurements of a take timed again; ignored if it was deleted."""
        if take in self.library:
            self._replace(self.library.repeat(take, runs))

    def star(self, takes: Collection[str], on: bool) -> None:
        done: set[str] = set()
        try:
            for one in takes:
                if one in self.library:
                    self.library.star(one, on)
                    done.add(one)
        finally:
            self._put(replace(one, starred=on) if one.id in done else one for one in self.all)

    def remark(self, take: str, remark: str) -> None:
        """Store the user's note on a take; ignored if it was deleted."""
        if take in self.library:
            self.library.remark(take, remark)
            self._replace(self.library.summary(take))

    def delete(self, takes: Collection[str]) -> DeletedTakes:
        """Delete takes with their audio. The result can restore them while it lives, if their audio was readable."""
        deleted = DeletedTakes(self._audio)
        with told(self.problem.emit):
            for one in takes:
                try:
                    whole = self.library.load(one)
                except PlainError:
                    if one in self.library:
                        self.library.delete(one)
                else:
                    deleted.delete(whole, self.library)
        self._forget_deleted(takes)
        return deleted

    def delete_again(self, deleted: DeletedTakes) -> None:
        deleted.delete_again(self.library)
        self._forget_deleted(tuple(deleted))

    def restore(self, deleted: DeletedTakes) -> None:
        try:
            deleted.restore(self.library)
        finally:
            self.read()

    def _forget_deleted(self, takes: Collection[str]) -> None:
        gone = {one for one in takes if one not in self.library}
        left = tuple(one for one in self.all if one.id not in gone)
        if len(left) < len(self.all):
            self._put(left)

    # --- Other libraries ----------------------------------------------------------------------------------------------
    def move(self, folder: Path) -> None:
        """Keep takes in ``folder`` from now on. Raises :class:`PlainError` if it is not usable."""
        self._use(moved(self.opened, folder))

    def replace_damaged(self) -> None:
        """Set the damaged library aside and use an empty one; see :func:`replace_damaged`."""
        self._use(replace_damaged(self.opened))

    def _use(self, opened: OpenedLibrary) -> None:
        self.opened, self._audio = opened, KeptAudio(opened.library.folder)
        self.read()


@dataclass(frozen=True)
class OpenedLibrary:
    """The library in use, its problem, and the damaged library it replaces."""

    library: Library
    problem: str = ""
    damaged: Path | None = None
    """Folder of a damaged library that a new one can replace; see :func:`replace_damaged`."""
    temporary: bool = False
    """Whether takes are kept only for this session."""


def open_library(folder: Path) -> OpenedLibrary:
    """The take library in ``folder``, or a temporary one if that cannot be opened."""
    try:
        library = Library(folder)
    except (PlainError, OSError) as error:
        temporary = Path(tempfile.mkdtemp(prefix="paretone-takes-"))
        damaged = folder if isinstance(error, LibraryDamaged) else None
        return OpenedLibrary(Library(temporary), f"{error} Meanwhile, takes are kept in {temporary}.", damaged, True)
    if not library.damage:
        return OpenedLibrary(library)
    problem = (
        f"The take library in {folder} is damaged and read-only ({library.damage}). "
        "New takes can be played and saved as WAV, but are not kept."
    )
    return OpenedLibrary(library, problem, folder)


def moved(opened: OpenedLibrary, folder: Path) -> OpenedLibrary:
    """The take library in ``folder``, with the takes of a temporary one added. Raises :class:`PlainError` if it is
    not usable, leaving ``opened`` unchanged."""
    library = Library(folder)
    if library.damage:
        library.close()
        raise LibraryError(f"The take library in {folder} is damaged ({library.damage}); choose another folder.")
    if opened.temporary:
        _add_all(library, opened.library)
    opened.library.close()
    if opened.temporary:
        shutil.rmtree(opened.library.folder, ignore_errors=True)
    return OpenedLibrary(library)


def _add_all(library: Library, others: Library) -> None:
    known = {take.id for take in library.summaries()}
    for take in reversed(others.summaries()):
        if take.id not in known:
            library.add(others.load(take.id))


def replace_damaged(opened: OpenedLibrary) -> OpenedLibrary:
    """Set the damaged library aside and open an empty one, with the takes of a temporary library added. The result's
    ``problem`` says where the damaged library is, or why it could not be set aside."""
    folder, meanwhile = opened.damaged, opened.library
    assert folder is not None
    elsewhere = meanwhile.folder != folder
    if not elsewhere:
        meanwhile.close()
    try:
        backup = Library.set_aside(folder)
        fresh = Library(folder)
        if elsewhere:
            _add_all(fresh, meanwhile)
    except LibraryError as error:
        again = opened if elsewhere else open_library(folder)
        return OpenedLibrary(again.library, str(error), again.damaged, again.temporary)
    if elsewhere:
        meanwhile.close()
        shutil.rmtree(meanwhile.folder, ignore_errors=True)
    return OpenedLibrary(fresh, f"The damaged take library is in {backup}, with its audio. New takes are kept again.")
