"""Dialogs about a host: its address and start command, and its folders."""

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLineEdit, QListWidget, QListWidgetItem, QProgressBar, QWidget

from paretone.errors import PlainError
from paretone.remote import START
from paretone_app.widgets import build
from paretone_app.widgets.layouts import FormLayout

PYTHON = "python3"


class HostDialog(QDialog):
    """Asks for a host; ``submitted`` has its name for ssh, the start command and the Python to install with."""

    submitted = Signal(str, str, str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Add host")
        self.host = build.named(QLineEdit(placeholderText="gpu1 or me@gpu1.example.org"), "Host")
        self.start = build.named(QLineEdit(START), "Start command")
        self.python = build.named(QLineEdit(PYTHON), "Python there")
        self.start.setToolTip("Runs on the host and starts the engine; a scheduler's command may stand before it")
        self.python.setToolTip("Only for installing Paretone there: a Python that has PyTorch")
        form = FormLayout()
        for label, edit in (("&Host", self.host), ("&Start command", self.start), ("&Python there", self.python)):
            form.addRow(label, edit)
        hint = "Your own ssh connects, with its configuration, keys and jump hosts. The engine there answers it alone."
        buttons = build.above_close(self, form, build.label(hint, "muted", wrapped=True), cancels=True)
        self.connect_button = buttons.addButton("Connect", QDialogButtonBox.ButtonRole.AcceptRole)
        self.connect_button.setDefault(True)
        buttons.accepted.connect(self._submit)
        self.host.textChanged.connect(self._check)
        self.setMinimumWidth(34 * self.fontMetrics().height())
        self._check()

    def _check(self) -> None:
        self.connect_button.setEnabled(bool(self.host.text().strip()) and not self.host.text().startswith("-"))

    def _submit(self) -> None:
        start, python = self.start.text().strip() or START, self.python.text().strip() or PYTHON
        self.accept()
        self.submitted.emit(self.host.text().strip(), start, python)


class InstallDialog(QDialog):
    """Progress of an installation on a host; closing it cancels."""

    def __init__(self, parent: QWidget, host: str) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"Install on {host}")
        self.step = build.label("", wrapped=True)
        self.progress = build.named(QProgressBar(), f"Installing on {host}")
        build.above_close(self, self.step, self.progress, cancels=True)
        self.setMinimumWidth(34 * self.fontMetrics().height())

    def tell(self, sentence: str, share: float) -> None:
        self.step.setText(sentence)
        self.progress.setValue(round(100 * share))


Asking = Callable[[str, str], "Future[Any]"]


class HostFolder(QDialog):
    """Lists folders of the host, and chooses one, or with ``files`` a file."""

    _came = Signal(object)

    def __init__(
        self, parent: QWidget, title: str, host: str, ask: Asking, chosen: Callable[[Path], object], files: bool = False
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"{title} on {host}")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._ask, self._chosen, self._files = ask, chosen, files
        self._path = ""
        self.path = build.named(QLineEdit(), f"Path on {host}")
        self.entries = build.named(QListWidget(), f"Folders and files on {host}")
        self.problem = build.label("", "warning", wrapped=True)
        buttons = build.above_close(self, self.path, (self.entries, 1), self.problem, cancels=True)
        self.choose = buttons.addButton("Choose", QDialogButtonBox.ButtonRole.AcceptRole)
        self.path.returnPressed.connect(lambda: self.look(self.path.text()))
        self.entries.itemActivated.connect(self._open)
        self.entries.currentItemChanged.connect(lambda *_: self._check())
        buttons.accepted.connect(self._take)
        # Return in the path looks there.
        self.choose.setAutoDefault(False)
        self._came.connect(self._show, Qt.ConnectionType.QueuedConnection)
        em = self.fontMetrics().height()
        self.resize(34 * em, 26 * em)
        self.look("")

    def look(self, path: str) -> None:
        """List the folder ``path``; ``""``: the user's own."""
        self._ask("folder", path).add_done_callback(self._came.emit)

    def _show(self, answer: Future[Any]) -> None:
        try:
            found = answer.result()
        except PlainError as error:
            self.problem.setText(str(error))
            return
        self._path = found["path"]
        self.path.setText(self._path)
        self.entries.clear()
        above = [("..", True)] if found["parent"] != self._path else []
        for name, is_folder in (*above, *found["entries"]):
            if is_folder or self._files:
                self.entries.addItem(f"{name}/" if is_folder else name)
        self.problem.setText("There are more; type the path." if found["more"] else "")
        self._check()

    @property
    def _current(self) -> str:
        """Name of the chosen entry, a folder's with a slash; ``/`` alone: the folder that is shown."""
        item = self.entries.currentItem()
        return item.text() if item is not None and item.text() != "../" else "/"

    def _check(self) -> None:
        self.choose.setEnabled(bool(self._path) and not (self._files and self._current.endswith("/")))

    def _open(self, item: QListWidgetItem) -> None:
        if item.text().endswith("/"):
            self.look(f"{self._path}/{item.text()}")
        else:
            self._take()

    def _take(self) -> None:
        self.accept()
        self._chosen(Path(self._path) / self._current.rstrip("/"))
