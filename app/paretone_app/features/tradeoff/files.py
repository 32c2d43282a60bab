"""Files of the trade-off view: what is shown, as a picture or a table, and a selection to share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from paretone_app.features.tradeoff.model import selection
from paretone_app.shell import file_dialogs
from paretone_app.shell.actions import Actions
from paretone_app.shell.notices import Notices

if TYPE_CHECKING:
    from paretone_app.features.tradeoff.panel import TradeoffPanel


class TradeoffFiles:
    """Asks for files, reads and writes them."""

    def __init__(self, panel: Callable[[], TradeoffPanel], window: QWidget, actions: Actions, notices: Notices) -> None:
        self._panel, self._window, self._actions, self._notices = panel, window, actions, notices

    def ask_for_sheet(self, ending: str) -> None:
        """Ask where to write what is shown."""
        self._ask("Save the trade-off view", file_dialogs.PLOTS[ending], f"trade-off.{ending}", self.write)

    def ask_for_selection(self) -> None:
        """Ask which selection to open."""
        file_dialogs.ask_for_file(
            self._window,
            "Open a selection of points",
            file_dialogs.JSON,
            lambda path: self._actions.attempt(partial(self.open_selection, path)),
        )

    def ask_where_to_save_selection(self) -> None:
        """Ask where to write the selection. Raises :class:`SettingError` if there is none to share."""
        _ = self._panel().selection
        self._ask("Save the selection", file_dialogs.JSON, "selection.json", self.save_selection)

    def _ask(self, title: str, kinds: str, proposal: str, write: Callable[[Path], None]) -> None:
        file_dialogs.ask_where_to_write(
            self._window, title, kinds, proposal, lambda path: self._actions.attempt(partial(write, path))
        )

    def write(self, path: Path) -> None:
        """Write what is shown as the ending of ``path`` says. Raises :class:`PlainError` when it cannot be written."""
        self._panel().write(path)
        self._notices.note(f"Wrote {path}")

    def save_selection(self, path: Path) -> None:
        """Write the selected points of studies. Raises :class:`PlainError` when it cannot be done."""
        selection.write(self._panel().selection, path)
        self._notices.note(f"Wrote {path}")

    def open_selection(self, path: Path) -> None:
        """Select what a file says. Raises :class:`SettingError` if it cannot be read, or nothing of it is here."""
        remark = self._panel().take_up(selection.read(path))
        if remark:
            self._notices.warn(remark)
