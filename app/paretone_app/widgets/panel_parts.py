"""Parts shared by panels: cautions, facts, job progress, buttons to save or install, tick list, table of texts."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QHeaderView,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QSizePolicy,
    QTableView,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from paretone import extras
from paretone.errors import told
from paretone.extras import Extra
from paretone_app.numbers import aligned, decimals, rough_duration
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import pixmap
from paretone_app.state.machine import Installing
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.layouts import HBoxLayout

Index = QModelIndex | QPersistentModelIndex


class ShownPanel(QWidget):
    """A panel that computes only while the user sees it: its workspace is open, and no other tab covers it."""

    shown = Signal()
    """It is seen from now on."""

    def __init__(self) -> None:
        super().__init__()
        self._due: list[Callable[[], object]] = []

    @property
    def is_seen(self) -> bool:
        """Whether the user sees it. Qt calls a panel behind another tab visible, but puts it outside the window."""
        place, room = self.rect(), self.window()
        place.moveTopLeft(self.mapTo(room, place.topLeft()))
        return self.isVisible() and room.rect().intersects(place)

    def when_seen(self, do: Callable[[], object]) -> None:
        """Call ``do`` now, or once as soon as the panel is seen."""
        if self.is_seen:
            do()
        elif do not in self._due:
            self._due.append(do)

    def look(self) -> None:
        """Catch up if it is seen now; the window calls this when a tab is raised."""
        if self.is_seen:
            while self._due and self.is_seen:  # If one fails, the others still wait.
                self._due.pop(0)()
            self.shown.emit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.look()


class Caution(QWidget):
    def __init__(self) -> None:
        super().__init__(visible=False)
        self._icon, self._text = QLabel(), build.words("warning", name="Warning")
        build.fill(HBoxLayout(self), [self._icon, (self._text, 1)])

    def say(self, sentence: str) -> None:
        self._text.setText(sentence)
        self.setVisible(bool(sentence))

    def set_colours(self, colours: Colours) -> None:
        self._icon.setPixmap(pixmap("warning", colours.warning, self.fontMetrics().height(), self.devicePixelRatioF()))


class JobProgress(QProgressBar):
    """Empty until the first progress."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)

    def begin(self) -> None:
        self.setRange(0, 1)
        self.setValue(0)
        self.setFormat("")

    def show_progress(self, done: int, total: int, seconds_left: float | None) -> None:
        self.setRange(0, total)
        self.setValue(done)
        if seconds_left is not None and seconds_left >= 1:
            self.setFormat(f"%p %, {rough_duration(seconds_left, tenths=False)} left")
        else:
            self.setFormat("%p %")


def export_buttons(actions: Sequence[Action]) -> QWidget:
    """One button per file format."""
    return build.row(*((ActionButton(action, name=action.tip), 1) for action in actions))


class InstallOffer(QWidget):
    """Button to install missing packages, or to cancel that, with a line of progress; hidden if none is missing."""

    def __init__(self) -> None:
        super().__init__()
        self._installing: Installing | None = None
        self._extra: Extra | None = None
        self._action = Action("Install", parent=self)
        self._action.triggered.connect(self._press)
        self.button = ActionButton(self._action)
        self.said = build.label(look="muted")
        self.said.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        build.fill(HBoxLayout(self), [self.button, (self.said, 1)])
        self.hide()

    def follow(self, installing: Installing) -> None:
        """Use ``installing`` to install."""
        self._installing = installing
        installing.changed.connect(self._show)

    def offer(self, sentence: str) -> None:
        self.offer_extra(extras.named_in(sentence))

    def offer_extra(self, extra: Extra | None) -> None:
        """Offer ``extra``; ``None`` hides the offer."""
        if extra != self._extra or self._installing is None:
            self._extra = extra
            self.said.clear()
        self._show()

    def _show(self) -> None:
        installing, extra = self._installing, self._extra
        runs = installing is not None and extra is not None and installing.running == extra
        if installing is None or extra is None or not (runs or extra.missing):
            self.hide()
            return
        self.show()
        self._action.setText("Cancel installing" if runs else f"Install {', '.join(extra.missing) or extra.title}")
        if runs:
            self._action.set_tip("Stop; nothing that was there before is changed")
            self._action.set_reason("")
            self.said.setText(installing.text or "Installing…")
            return
        self.said.clear()
        self._action.set_tip(
            f"For: {extra.title}. Installs into Paretone's own environment; what is installed already stays as it is."
        )
        self._action.set_reason(installing.why_not())

    def _press(self) -> None:
        installing, extra = self._installing, self._extra
        if installing is not None and extra is not None and installing.running == extra:
            installing.cancel()
        elif installing is not None and extra is not None:
            with told(self.said.setText):
                installing.start(extra.name)


class TickList(QListWidget):
    """A list with check boxes; long titles wrap."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setWordWrap(True)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def offer(self, entries: Iterable[tuple[str, object, bool]], why_not: Mapping[Any, str] | None = None) -> None:
        """Set the entries (title, value, ticked), silently; ``why_not``: reasons to disable values."""
        reasons, flags = why_not or {}, Qt.ItemFlag
        usual = flags.ItemIsEnabled | flags.ItemIsSelectable | flags.ItemIsUserCheckable
        with QSignalBlocker(self):
            self.clear()
            for title, value, ticked in entries:
                item = QListWidgetItem(title, self)
                item.setData(Qt.ItemDataRole.UserRole, value)
                item.setToolTip(reasons.get(value, ""))
                item.setFlags(flags.NoItemFlags if value in reasons else usual)
                on = ticked and value not in reasons
                item.setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)

    @property
    def ticked(self) -> tuple[Any, ...]:
        items = (self.item(row) for row in range(self.count()))
        return tuple(one.data(Qt.ItemDataRole.UserRole) for one in items if one.checkState() is Qt.CheckState.Checked)


class CopyKey(QObject):
    """Ctrl+C in ``widget`` copies ``text``, where Qt would copy one cell."""

    def __init__(self, widget: QWidget, text: Callable[[], str]) -> None:
        super().__init__(widget)
        self._text = text
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        pressed = event.type() is QEvent.Type.KeyPress
        if not (pressed or event.type() is QEvent.Type.ShortcutOverride) or not isinstance(event, QKeyEvent):
            return False
        copies = event.matches(QKeySequence.StandardKey.Copy)
        if copies and pressed:
            QGuiApplication.clipboard().setText(self._text())
        if copies:
            event.accept()
        return copies


def line_height(table: QTableView) -> int:
    return int(table.fontMetrics().height() * 1.7)


class RowsTable(QTableView):
    """Selects whole rows, of one line each, and sorts them by the column whose head is clicked."""

    def __init__(self, name: str, selects: QTableView.SelectionMode) -> None:
        super().__init__(sortingEnabled=True, showGrid=False, wordWrap=False)
        self.setTabKeyNavigation(False)
        self.setAccessibleName(name)
        self.setAlternatingRowColors(True)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(selects)
        self.setHorizontalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(line_height(self))


class TextsTable(QTableWidget):
    def __init__(
        self, name: str, columns: Sequence[tuple[str, str]], numbers: Collection[int] = (), widths: Sequence[int] = ()
    ) -> None:
        """``columns``: title and meaning of each; those of ``numbers`` are aligned to the right; ``widths`` of the
        first ones, in font heights, if they do not follow from the texts."""
        super().__init__(0, len(columns))
        self._shown: list[tuple[str, ...]] = []
        self._numbers = numbers
        self.setAccessibleName(name)
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.horizontalHeader().setHighlightSections(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(line_height(self))
        for column, (title, meaning) in enumerate(columns):
            head = QTableWidgetItem(title)
            head.setToolTip(meaning)
            right = Qt.AlignmentFlag.AlignRight if column in numbers else Qt.AlignmentFlag.AlignLeft
            head.setTextAlignment(right | Qt.AlignmentFlag.AlignVCenter)
            self.setHorizontalHeaderItem(column, head)
        header, modes = self.horizontalHeader(), QHeaderView.ResizeMode
        header.setSectionResizeMode(modes.Interactive if widths else modes.ResizeToContents)
        header.setStretchLastSection(True)
        for column, width in enumerate(widths):
            self.setColumnWidth(column, width * self.fontMetrics().height())

    def show_rows(self, rows: list[tuple[str, ...]]) -> None:
        if rows == self._shown:
            return
        self._shown = rows
        self.setRowCount(len(rows))
        places = {column: max((decimals(one[column]) for one in rows), default=0) for column in self._numbers}
        for line, texts in enumerate(rows):
            for column, text in enumerate(texts):
                item = QTableWidgetItem(aligned(text, places.get(column, 0)))
                if column in self._numbers:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                else:
                    item.setToolTip(text)
                self.setItem(line, column, item)
