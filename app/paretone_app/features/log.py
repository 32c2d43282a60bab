"""The log panel (window messages and engine events), and the dialog of past messages."""

from collections.abc import Iterable
from datetime import datetime

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QTextEdit, QToolButton, QWidget

from paretone_app.features.presenter import Presenter, Services
from paretone_app.numbers import counted
from paretone_app.shell.banner import ERROR, INFO, WARNING
from paretone_app.shell.colours import Colours
from paretone_app.shell.notices import Level, Said
from paretone_app.shell.theme import GAP, icon
from paretone_app.widgets import build
from paretone_app.widgets.layouts import VBoxLayout

_LEVELS = {INFO: "Information", WARNING: "Warning", ERROR: "Error"}


class MessagesDialog(QDialog):
    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Messages")
        self._inks = {INFO: colours.muted, WARNING: colours.warning, ERROR: colours.danger}
        self._history: tuple[Said, ...] = ()
        self.text = build.named(QTextEdit(readOnly=True), "Messages, the newest first")
        self.text.setTabChangesFocus(True)
        copy = build.above_close(self, self.text).addButton("Co&py all", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text.toPlainText()))
        em = self.fontMetrics().height()
        self.resize(44 * em, 26 * em)

    def show_history(self, history: Iterable[Said]) -> None:
        if tuple(history) == self._history and not self.text.document().isEmpty():
            return
        self._history = tuple(history)
        self.text.clear()
        cursor = QTextCursor(self.text.document())
        plain, level = QTextCharFormat(), QTextCharFormat()
        for one in reversed(self._history):
            level.setForeground(QColor(self._inks[one.level]))
            cursor.insertText(f"{one.when:%H:%M:%S}  {_LEVELS[one.level]}: ", level)
            cursor.insertText(f"{one.sentence}\n", plain)
        if not self._history:
            cursor.insertText("No message was shown yet.", plain)
        self.text.moveCursor(QTextCursor.MoveOperation.Start)


_LONGEST = 20_000


class LogPanel(QWidget):
    """Entries with time and level; entries below the chosen level are kept but not shown."""

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self._colours = colours
        self._entries: list[tuple[str, Level, str]] = []
        self.text = build.named(QPlainTextEdit(readOnly=True, undoRedoEnabled=False), "Log entries")
        self.text.setMaximumBlockCount(_LONGEST)
        self.text.setTabChangesFocus(True)
        titles = "Everything", "Information", "Warnings", "Errors"
        self.level = build.combo("Lowest level shown", zip(titles, Level, strict=True))
        self.level.setCurrentIndex(Level.INFO)
        self.level.currentIndexChanged.connect(self._show_all)
        copy = build.button("Co&py all", self.copy, "Copy the whole log with details, for a bug report")
        clear = build.button("C&lear", self.clear)
        row = build.row(build.title_of("Sh&ow", self.level), self.level, 1, copy, clear)
        build.fill(VBoxLayout(self), [row, self.text], (GAP,) * 4)

    def add(self, level: Level, text: str) -> None:
        entry = datetime.now().strftime("%H:%M:%S.%f")[:-3], level, text.rstrip()
        self._entries.append(entry)
        del self._entries[:-_LONGEST]
        if level >= self.level.currentData():
            self._append(entry)

    def plain_text(self) -> str:
        return "\n".join(f"{when}  {level.name:<7}  {text}" for when, level, text in self._entries)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self._show_all()

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.plain_text())

    def clear(self) -> None:
        self._entries.clear()
        self.text.clear()

    def _show_all(self) -> None:
        self.text.clear()
        lowest = self.level.currentData()
        for entry in self._entries:
            if entry[1] >= lowest:
                self._append(entry)

    def _append(self, entry: tuple[str, Level, str]) -> None:
        when, level, text = entry
        known, bar = self._colours, self.text.verticalScrollBar()
        inks = {Level.DETAIL: known.muted, Level.INFO: known.text}
        inks |= {Level.WARNING: known.warning, Level.ERROR: known.danger}
        at_end = bar.value() == bar.maximum()
        cursor = QTextCursor(self.text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        if not self.text.document().isEmpty():
            cursor.insertBlock()
        style = QTextCharFormat()
        style.setForeground(QColor(known.muted))
        cursor.insertText(f"{when[:8]}  ", style)  # Copies have milliseconds.
        style.setForeground(QColor(inks[level]))
        cursor.insertText(text, style)
        if at_end:
            bar.setValue(bar.maximum())


class LogPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.log = LogPanel(services.theme.colours)
        services.notices.noted.connect(self.log.add)
        services.workspaces.put("log", self.log)
        self._actions.bind(self._actions["messages"], self.show_messages)
        self.bell = build.named(QToolButton(), "Messages")
        self.bell.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.bell.setProperty("look", "quiet")
        self.bell.clicked.connect(self._actions["messages"].trigger)
        services.status.add(self.bell)
        services.notices.history_changed.connect(self._show_bell)
        services.theme.changed.connect(self._show_bell)
        self._show_bell()

    @property
    def messages(self) -> MessagesDialog | None:
        return self._opened(MessagesDialog)

    def show_messages(self) -> None:
        dialog = MessagesDialog(self._theme.colours, self._window)
        self._notices.look_back()
        build.show(dialog)

    def _show_bell(self) -> None:
        missed = self._notices.missed
        self.bell.setIcon(icon("bell"))
        build.hold_width(self.bell, "00")
        self.bell.setText(str(missed) if missed else "")
        gone = counted(missed, "message went by itself", "messages went by themselves")
        name = f"Messages: {gone}" if missed else "Messages"
        build.named(self.bell, name, f"{name} (Ctrl+Shift+M)")
        if self.messages is not None:
            self.messages.show_history(self._notices.history)
