"""Making a study: the dialog that asks what it is of, its size, and the file that it becomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from paretone import files
from paretone.errors import PlainError
from paretone_app.features.presenter import built
from paretone_app.features.studies.within import Within, fill_in
from paretone_app.shell.background import Background
from paretone_app.shell.notices import Notices
from paretone_app.state.app_state import AppState

if TYPE_CHECKING:
    from paretone.studies.study import Study
    from paretone_app.features.studies.maker import StudyMaker


class StudyMaking(QObject):
    """One dialog at a time."""

    made = Signal(object, bool)
    """A study's file was written: its :class:`~pathlib.Path`, and whether to run it."""

    def __init__(
        self,
        window: QWidget,
        state: AppState,
        notices: Notices,
        background: Background,
        pace: Callable[[], Callable[[str], float | None]],
        folder: Path,
        parent: QObject,
    ) -> None:
        """``folder`` is where files are proposed; ``pace`` gives how fast models were, see
        :mod:`paretone.studies.results`."""
        super().__init__(parent)
        self._window = window
        self._state = state
        self._notices = notices
        self._background = background
        self._pace = pace
        self._folder = folder
        self.maker: StudyMaker | None = None
        """The dialog, while it is open."""

    def begin_with_kind(self, kind: str, sentences: int) -> None:
        """Ask about a study of a kind that a feature declares, on a number of sentences."""
        self.begin()
        built(self.maker).choose_kind(kind, sentences)
        built(self.maker).check()

    def begin_within(self, within: Within) -> None:
        """Ask about a study that stays within ranges."""
        self.begin()
        fill_in(built(self.maker), within)
        built(self.maker).check()

    def begin(self) -> None:
        """Ask what a new study is of."""
        from paretone_app.features.studies.kinds import offered_kinds
        from paretone_app.features.studies.maker import StudyMaker

        state = self._state
        info = state.selection.info if state.selection.ready else None
        maker = StudyMaker(state.selection, self._folder, offered_kinds(info), self._window)
        maker.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        maker.follow(state.installing)
        maker.check_wanted.connect(self._check)
        maker.save_wanted.connect(self._keep)
        self.maker = maker
        maker.destroyed.connect(self._maker_gone)
        maker.open()
        maker.check()

    @Slot()
    def _maker_gone(self) -> None:
        self.maker = None

    @Slot(object)
    def _check(self, given: dict) -> None:
        """Say the size of a study, or why it cannot be."""
        from paretone.studies import definition, results
        from paretone_app.features.studies.study_summary import plan_words

        maker = built(self.maker)
        pace, root = self._pace(), Path(maker.path.text()).parent

        def checked() -> tuple[Study, float | None]:
            planned = definition.parse(given, "This study", root)
            return planned, results.estimated_seconds(planned, pace(planned.model))

        def shown(found: tuple[Study, float | None] | BaseException) -> None:
            if self.maker is not maker or maker.definition != given:
                return
            if isinstance(found, PlainError):
                maker.show_verdict(str(found), ok=False)
            elif isinstance(found, BaseException):
                raise found
            else:
                maker.show_verdict(plan_words(*found), ok=True)

        self._background.run(checked, shown)

    @Slot(object, object, bool)
    def _keep(self, given: dict, path: Path, start: bool) -> None:
        """Write a new study's file."""
        from paretone.studies.definition import to_toml

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write_through(path, to_toml(given).encode())
        except OSError as error:
            built(self.maker).show_verdict(f"{path} could not be written: {files.reason(error)}.", ok=False)
            return
        built(self.maker).accept()
        self._notices.note(f"Wrote {path}")
        self.made.emit(path, start)
