"""The dialog that exports a profile: what goes into it, and where it goes."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QDir, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.comparison import technique_text
from app.state import AppState
from app.theme import set_look
from engine.errors import PlainError


class ProfileDialog(QDialog):
    """Shows what the profile will hold and asks for a file. Opened with ``open()``; never blocks the window."""

    written = Signal(str)
    """The profile was written to this path."""

    def __init__(self, state: AppState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self.setWindowTitle("Export profile")
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, text in self._contents():
            label = QLabel(text, wordWrap=True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            form.addRow(title, label)
        self.path = QLineEdit(str(Path(QDir.homePath()) / self._proposed_name()))
        self.path.setAccessibleName("File of the profile")
        self.path.textChanged.connect(self._check)
        browse = QPushButton("&Browse…")
        browse.setAutoDefault(False)
        browse.clicked.connect(self._browse)
        row = QHBoxLayout()
        row.addWidget(self.path, 1)
        row.addWidget(browse)
        form.addRow("&File", row)
        form.labelForField(row).setBuddy(self.path)
        self.note = QLabel(wordWrap=True)
        set_look(self.note, "warning")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.export_button = buttons.addButton("&Export", QDialogButtonBox.ButtonRole.AcceptRole)
        self.export_button.setProperty("look", "primary")
        buttons.accepted.connect(self._export)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        layout.addWidget(self.note)
        layout.addWidget(buttons)
        self.setMinimumWidth(self.fontMetrics().height() * 34)
        self.export_button.setDefault(True)
        self.path.setFocus()
        self.path.selectAll()
        self._check()

    def _contents(self) -> list[tuple[str, str]]:
        state = self._state
        info, table = state.info, state.table
        rows = []
        if info is not None:
            rows.append(("Model", f"{info.title}, {info.variant}, SHA-256 {info.fingerprint[:16]}…"))
        rows.append(("Setting", f"{technique_text(state.setting)}, seed {state.seed}"))
        rows.append(("Sampler", ", ".join(f"{name} {value}" for name, value in state.options.items())))
        if table is not None and state.setting.techniques:
            rows.append(
                ("Strategy table", f"{table.layers} × {table.steps}, {table.skipped_share:.0%} skip; {table.origin}")
            )
        take = state.evidence
        if take is None:
            rows.append(("Evidence", "none: this setting has not been synthesised yet"))
        else:
            measured = take.measurements
            text = (
                f"RTF {measured.real_time_factor:.3f} on {measured.device}, {measured.ops_ratio:.0%} of the operations"
            )
            if take.log_mel_distance is not None:
                text += f", log-mel distance {take.log_mel_distance:.3f}"
            rows.append(("Evidence", text))
        return rows

    def _proposed_name(self) -> str:
        parts = [self._state.model_id, *(one.technique for one in self._state.setting.techniques)]
        return "-".join(parts) + ".json"

    @Slot()
    def _check(self) -> None:
        path = Path(self.path.text().strip())
        problem = ""
        if not self.path.text().strip():
            problem = "Type a file name."
        elif not path.parent.is_dir():
            problem = f"There is no folder {path.parent}."
        elif path.is_dir():
            problem = f"{path} is a folder."
        self.export_button.setEnabled(not problem)
        self.note.setText(problem or (f"{path.name} exists and will be replaced." if path.exists() else ""))

    @Slot()
    def _browse(self) -> None:
        dialog = QFileDialog(self, "Export profile", self.path.text(), "Profile (*.json)")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("json")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.path.setText)
        dialog.open()

    @Slot()
    def _export(self) -> None:
        path = Path(self.path.text().strip())
        try:
            self._state.write_profile(path)
        except PlainError as error:
            self.note.setText(str(error))
            return
        self.accept()
        self.written.emit(str(path))
