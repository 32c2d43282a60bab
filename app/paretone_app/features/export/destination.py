"""The frame of dialogs that ask where something goes: rows about it, a path, what is to be known of that, Export."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Slot
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QWidget,
)

from paretone_app.shell import file_dialogs
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build
from paretone_app.widgets.layouts import FormLayout, HBoxLayout, VBoxLayout

_KIND = "export"


class DestinationDialog(QDialog):
    """Subclasses add rows to ``form`` and then call :meth:`finish`. Opened with ``open()``; never blocks the window."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.form = FormLayout()
        self.form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.summary = QLabel(wordWrap=True)
        set_look(self.summary, "muted")
        self.path = QLineEdit()
        self.note = QLabel(wordWrap=True)
        set_look(self.note, "warning")

    # --- What a subclass says -----------------------------------------------------------------------------------------
    @property
    def takes_folder(self) -> bool:
        """Whether a folder is asked for, and not a file."""
        return True

    def problem(self) -> tuple[str, str]:
        """Why the typed path is invalid, and a remark on it, as sentences or ``""``."""
        raise NotImplementedError

    def export(self) -> None:
        """Do it."""
        raise NotImplementedError

    # --- The frame ----------------------------------------------------------------------------------------------------
    def finish(self, label: str) -> None:
        """Put the path, called ``label``, the note and the buttons below the rows of ``form``."""
        browse = build.button("&Browse…", self._browse)
        browse.setAutoDefault(False)
        row = HBoxLayout()
        row.addWidget(self.path, 1)
        row.addWidget(browse)
        self.path_label = QLabel(label)
        self.path_label.setBuddy(self.path)
        self.form.addRow(self.path_label, row)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.export_button = buttons.addButton("&Export", QDialogButtonBox.ButtonRole.AcceptRole)
        self.export_button.setProperty("look", "primary")
        buttons.accepted.connect(self.export)
        buttons.rejected.connect(self.reject)
        layout = VBoxLayout(self)
        layout.addLayout(self.form)
        layout.addWidget(self.note)
        layout.addWidget(buttons)
        self.setMinimumWidth(self.fontMetrics().height() * 34)
        self.export_button.setDefault(True)
        self.path.textChanged.connect(self.check)
        self.path.setFocus()

    @Slot()
    def check(self) -> None:
        """Look at the path again."""
        problem, remark = self.problem()
        self.export_button.setEnabled(not problem)
        self.note.setText(problem or remark)

    @property
    def typed(self) -> str:
        """The path, as it was typed."""
        return self.path.text().strip()

    @Slot()
    def _browse(self) -> None:
        title = self.windowTitle()
        if self.takes_folder:
            file_dialogs.ask_for_folder(self, title, self.take, self.typed)
        else:
            file_dialogs.ask_where_to_write(self, title, "Profile (*.json)", Path(self.typed), self.take)

    def take(self, path: Path) -> None:
        """A path was chosen."""
        self.path.setText(str(path))

    def proposed(self, name: str) -> str:
        """A path called ``name`` where something was exported last."""
        return str(file_dialogs.last_folder(self, _KIND) / name)

    def accept(self) -> None:
        file_dialogs.note_folder(self, _KIND, Path(self.typed).parent)
        super().accept()
