"""The dialog that exports a profile: what goes into it, for whom, and where it goes."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from paretone import files
from paretone.errors import PlainError
from paretone.export.targets import Target, targets
from paretone.setting.profile import SUFFIX
from paretone_app.features.export.account_view import AccountView
from paretone_app.features.export.destination import DestinationDialog
from paretone_app.features.export.folders import folder_problem
from paretone_app.features.export.model import ProfileExport
from paretone_app.numbers import fixed, percent
from paretone_app.state.app_state import AppState
from paretone_app.state.differences import option_words, technique_text
from paretone_app.widgets import build

_OWN = "Paretone"
_OWN_SUMMARY = "one file for the application and the command line"


class ProfileDialog(DestinationDialog):
    """Shows what the profile will hold and asks for whom and where. A profile for Paretone is written at once;
    everything else is a job of the engine."""

    written = Signal(str)
    """The profile was written to this path."""

    def __init__(self, state: AppState, parent: QWidget | None = None) -> None:
        super().__init__("Export profile", parent)
        self._state = state
        self._export = ProfileExport(state)
        for title, text in self._contents():
            label = build.label(text, wrapped=True, selectable=True)
            self.form.addRow(title, label)
        self.target = build.combo("Target", ((_OWN, None), *((one.title, one.name) for one in targets())))
        self._paths = [self.proposed(name) for name in self._proposals()]
        self.target.currentIndexChanged.connect(self._show_target)
        self.form.addRow("Fo&r", self.target)
        self.form.addRow("", self.summary)
        self.account = AccountView()
        self.form.addRow(self.account)
        self.finish("&File")
        self._show_target(0)

    @property
    def _chosen(self) -> Target | None:
        """The engine's target that is chosen; ``None`` for a profile for Paretone."""
        index = self.target.currentIndex()
        return targets()[index - 1] if index > 0 else None

    def _contents(self) -> list[tuple[str, str]]:
        state = self._state
        info = state.selection.info
        rows = []
        if info is not None:
            rows.append(("Model", f"{info.title}, {info.variant}, SHA-256 {info.fingerprint[:16]}…"))
        rows.append(("Setting", f"{technique_text(state.selection.setting)}, seed {state.selection.seed}"))
        rows.append(("Sampler", ", ".join(option_words(state.selection.entry, state.selection.options))))
        if state.selection.setting.techniques:
            rows.extend(one.origin for one in state.artefacts.sources if one.origin is not None)
        take = self._export.evidence
        if take is None:
            rows.append(("Evidence", "none: synthesise this setting first"))
        else:
            measured = take.measurements
            text = f"RTF {fixed(measured.real_time_factor, 3)} on {measured.device}, "
            text += f"{percent(measured.ops_ratio)} of the operations"
            if take.log_mel_distance is not None:
                text += f", log-mel distance {fixed(take.log_mel_distance, 3)}"
            rows.append(("Evidence", text))
        return rows

    def _proposals(self) -> list[str]:
        """A name for each entry of the list."""
        name = "-".join(
            [self._state.selection.model_id, *(one.technique for one in self._state.selection.setting.techniques)]
        )
        return [f"{name}{SUFFIX}", *(f"{name}-for-{one.name}" for one in targets())]

    @Slot(int)
    def _show_target(self, index: int) -> None:
        chosen = self._chosen
        self.summary.setText(f"Writes {f'a folder with {chosen.summary}' if chosen else _OWN_SUMMARY}.")
        self.account.show_account(self._export.account(chosen) if chosen else None)
        self.path_label.setText("&Folder" if chosen else "&File")
        self.path.setAccessibleName("Folder to write to" if chosen else "File of the profile")
        self.path.setText(self._paths[index])
        self.path.selectAll()
        self.check()

    @property
    def takes_folder(self) -> bool:
        return self._chosen is not None

    def problem(self) -> tuple[str, str]:
        self._paths[self.target.currentIndex()] = self.path.text()
        try:
            return self._file() if self._chosen is None else self._folder(self._chosen)
        except OSError as error:
            return f"{self.path.text()} cannot be read: {files.reason(error)}.", ""

    def _file(self) -> tuple[str, str]:
        """Why the chosen file cannot be used, and a remark on it."""
        path = Path(self.typed)
        if not self.typed:
            return "Type a file name.", ""
        if not path.parent.is_dir():
            return f"The folder {path.parent} does not exist.", ""
        if path.is_dir():
            return f"{path} is a folder.", ""
        return "", f"{path.name} exists and will be replaced." if path.exists() else ""

    def _folder(self, target: Target) -> tuple[str, str]:
        """Why target or folder cannot be used, and a remark on them."""
        reason = self._export.account(target).why_not
        return (reason, "") if reason else folder_problem(self.path.text())

    @Slot()
    def export(self) -> None:
        path, target = Path(self.typed), self._chosen
        try:
            if target is None:
                self._export.write(path)
            else:
                self._export.export(target, path)
        except PlainError as error:
            self.note.setText(str(error))
            return
        self.accept()
        if target is None:
            self.written.emit(str(path))
