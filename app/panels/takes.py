"""Takes: what have I tried? History with figures, settings difference, star, re-run with a change, delete, export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
    QUrl,
    Signal,
    Slot,
)
from PySide6.QtGui import QAction, QDesktopServices, QFont
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.theme import Colours
from app.wav import write_wav
from engine.errors import PlainError
from engine.library import Library, TakeSummary
from engine.setting import Difference, Setting
from engine.take import Take
from engine.techniques import technique, wording

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class Column:
    """One column: its title, what the title means, what it shows and what it sorts by."""

    title: str
    meaning: str
    text: Callable[[TakeSummary], str]
    key: Callable[[TakeSummary], object]
    numeric: bool = False


def technique_text(setting: Setting) -> str:
    """The engaged techniques with their first knob, for example ``DiTReducio δ 0.1``; ``baseline`` without any."""
    parts = []
    for one in setting.techniques:
        declared = technique(one.technique)
        knob = declared.knobs[0] if declared.knobs else None
        value = f" {knob.symbol} {one.knobs[knob.name]:g}" if knob and knob.symbol and knob.name in one.knobs else ""
        parts.append(f"{declared.title}{value}")
    return " + ".join(parts) or "baseline"


def _created(take: TakeSummary) -> str:
    return datetime.fromisoformat(take.created).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _distance(take: TakeSummary) -> str:
    return "–" if take.log_mel_distance is None else f"{take.log_mel_distance:.3f}"


COLUMNS = (
    Column("★", "Starred", lambda take: "★" if take.starred else "", lambda take: not take.starred),
    Column("A/B", "Whether it is compared as A or B", lambda take: "", lambda take: ""),
    Column("Label", "What it is", lambda take: take.label or "take", lambda take: take.label.casefold()),
    Column("Text", "What is said", lambda take: take.text, lambda take: take.text.casefold()),
    Column(
        "Technique",
        "What accelerated it",
        lambda take: technique_text(take.setting),
        lambda take: technique_text(take.setting),
    ),
    Column(
        "RTF",
        "Wall seconds of synthesis per second of new audio",
        lambda take: f"{take.measurements.real_time_factor:.3f}",
        lambda take: take.measurements.real_time_factor,
        True,
    ),
    Column(
        "TTFA",
        "Seconds from the request to the first audio that can be played",
        lambda take: f"{take.measurements.first_audio_seconds:.2f} s",
        lambda take: take.measurements.first_audio_seconds,
        True,
    ),
    Column(
        "Ops",
        "Backbone operations over those of the same setting without techniques",
        lambda take: f"{take.measurements.ops_ratio:.0%}",
        lambda take: take.measurements.ops_ratio,
        True,
    ),
    Column(
        "Distance",
        "Mean absolute log-mel difference to its baseline",
        _distance,
        lambda take: float("inf") if take.log_mel_distance is None else take.log_mel_distance,
        True,
    ),
    Column(
        "Length",
        "Seconds of audio",
        lambda take: f"{take.measurements.audio_seconds:.2f} s",
        lambda take: take.measurements.audio_seconds,
        True,
    ),
    Column("Created", "When it was made", _created, lambda take: take.created),
)
_STAR, _SIDE = 0, 1
SORT_ROLE = Qt.ItemDataRole.UserRole
TAKE_ROLE = Qt.ItemDataRole.UserRole + 1


class TakesModel(QAbstractTableModel):
    """The library's takes as rows. Holds summaries only: audio is read when a take is listened to."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._takes: list[TakeSummary] = []
        self._sides: dict[str, str] = {}

    def set_takes(self, takes: list[TakeSummary]) -> None:
        """Show ``takes``."""
        self.beginResetModel()
        self._takes = takes
        self.endResetModel()

    def add(self, take: TakeSummary) -> None:
        """Show one more take, first."""
        self.beginInsertRows(QModelIndex(), 0, 0)
        self._takes.insert(0, take)
        self.endInsertRows()

    def set_sides(self, sides: dict[str, str]) -> None:
        """Mark takes, by id, as A or B."""
        self._sides = sides
        if self._takes:
            self.dataChanged.emit(self.index(0, _SIDE), self.index(len(self._takes) - 1, _SIDE))

    def rowCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._takes)

    def columnCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        take, column = self._takes[index.row()], COLUMNS[index.column()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._sides.get(take.id, "") if index.column() == _SIDE else column.text(take)
            case Qt.ItemDataRole.ToolTipRole:
                return f"{column.meaning}: {column.text(take)}" if column.text(take) else column.meaning
            case Qt.ItemDataRole.TextAlignmentRole:
                horizontal = Qt.AlignmentFlag.AlignRight if column.numeric else Qt.AlignmentFlag.AlignLeft
                return horizontal | Qt.AlignmentFlag.AlignVCenter
            case Qt.ItemDataRole.FontRole if index.column() == _SIDE:
                font = QFont()
                font.setBold(True)
                return font
            case _ if role == SORT_ROLE:
                return self._sides.get(take.id, "") if index.column() == _SIDE else column.key(take)
            case _ if role == TAKE_ROLE:
                return take
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section].title
        if role == Qt.ItemDataRole.ToolTipRole:
            return COLUMNS[section].meaning
        return None


class _Filter(QSortFilterProxyModel):
    """Rows whose label, text, technique or voice contain every word typed; starred ones only, if wanted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words: tuple[str, ...] = ()
        self._starred = False
        self.setSortRole(SORT_ROLE)

    def show_only(self, words: str, starred: bool) -> None:
        self._words, self._starred = tuple(words.casefold().split()), starred
        self.invalidateRowsFilter()

    def filterAcceptsRow(self, row: int, parent: Index) -> bool:
        if not self._words and not self._starred:
            return True
        take = self.sourceModel().index(row, 0).data(TAKE_ROLE)
        if self._starred and not take.starred:
            return False
        haystack = f"{take.label} {take.text} {take.voice} {technique_text(take.setting)}".casefold()
        return all(word in haystack for word in self._words)

    def lessThan(self, left: Index, right: Index) -> bool:
        return left.data(SORT_ROLE) < right.data(SORT_ROLE)


class TakesPanel(QWidget):
    """The history of takes, newest first."""

    a_chosen = Signal(object)
    """A :class:`Take` shall be A."""
    b_chosen = Signal(object)
    """A :class:`Take` shall be B."""
    rerun_wanted = Signal(object)
    """The setting of a :class:`Take` shall be loaded into Setup."""
    problem = Signal(str)
    """A sentence about what could not be done."""

    def __init__(self, library: Library, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._library = library
        self._colours = colours
        self._a: Take | None = None
        self._b: Take | None = None
        self._model = TakesModel(self)
        self._filter = _Filter(self)
        self._filter.setSourceModel(self._model)

        self.search = QLineEdit(placeholderText="Filter by label, text, technique or voice", clearButtonEnabled=True)
        self.search.setAccessibleName("Filter takes")
        self._starred = QCheckBox("&Starred only")
        self.search.textChanged.connect(self._apply_filter)
        self._starred.toggled.connect(self._apply_filter)

        self.table = QTableView(alternatingRowColors=True, sortingEnabled=True, showGrid=False)
        self.table.setAccessibleName("Takes")
        self.table.setModel(self._filter)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.table.setTabKeyNavigation(False)
        self.table.setWordWrap(False)
        self.table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.table.verticalHeader().setDefaultSectionSize(int(self.fontMetrics().height() * 1.7))
        self.table.sortByColumn(len(COLUMNS) - 1, Qt.SortOrder.DescendingOrder)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.table.selectionModel().selectionChanged.connect(self._enable)
        unit = self.fontMetrics().horizontalAdvance("0")
        for column, width in enumerate((4, 6, 22, 30, 20, 9, 9, 8, 11, 9, 20)):
            self.table.setColumnWidth(column, width * unit)
        self.table.horizontalHeader().setMinimumSectionSize(3 * unit)

        buttons = QHBoxLayout()
        self._actions: list[tuple[QAction, bool]] = []
        for title, tip, shortcut, slot, single in (
            ("Set &A", "Compare with the selected take as A", "A", self.set_a, True),
            ("Set &B", "Compare with the selected take as B", "B", self.set_b, True),
            ("S&tar", "Star the selected takes, or take the star away", "S", self.star, False),
            (
                "&Re-run…",
                "Load everything that made this take into Setup, to run it again with a change",
                "R",
                self.rerun,
                True,
            ),
            ("Save &WAV…", "Write the selected take's audio", "W", self._ask_where_to_save, True),
            ("Re&veal", "Open the folder with the take's audio", "V", self._reveal, True),
            ("&Delete…", "Delete the selected takes and their audio", "Del", self.delete, False),
        ):
            action = QAction(title, self.table)
            action.setToolTip(f"{tip} ({shortcut})")
            action.setShortcut(shortcut)
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.triggered.connect(slot)
            self.table.addAction(action)
            self._actions.append((action, single))
            button = QPushButton(title)
            button.setToolTip(action.toolTip())
            button.clicked.connect(action.trigger)
            action.enabledChanged.connect(button.setEnabled)
            buttons.addWidget(button)
        buttons.addStretch(1)
        self._difference = QLabel(wordWrap=True)
        self._difference.setTextFormat(Qt.TextFormat.RichText)
        self._difference.setAccessibleName("Difference of the selected take to A")
        top = QHBoxLayout()
        top.addWidget(self.search, 1)
        top.addWidget(self._starred)
        layout = QVBoxLayout(self)
        layout.addLayout(top)
        layout.addWidget(self.table, 1)
        layout.addWidget(self._difference)
        layout.addLayout(buttons)
        self.reload()
        self._enable()

    # --- Showing ----------------------------------------------------------------------------------------------------
    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        self._show_difference()

    @Slot()
    def reload(self) -> None:
        """Read the history again."""
        try:
            self._model.set_takes(list(self._library.summaries()))
        except PlainError as error:
            self.problem.emit(str(error))
        self._enable()

    def add(self, take: TakeSummary) -> None:
        """Show a take that was just kept."""
        self._model.add(take)

    def show_comparison(self, take_a: Take | None, take_b: Take | None) -> None:
        """Mark which takes are A and B."""
        self._a, self._b = take_a, take_b
        sides: dict[str, str] = {}
        for take, side in ((take_a, "A"), (take_b, "B")):
            if take is not None:
                sides[take.id] = f"{sides[take.id]}/{side}" if take.id in sides else side
        self._model.set_sides(sides)
        self._show_difference()

    def selected(self) -> list[TakeSummary]:
        """The selected takes, in the order shown."""
        rows = sorted(self.table.selectionModel().selectedRows(), key=lambda index: index.row())
        return [index.data(TAKE_ROLE) for index in rows]

    @Slot()
    def _apply_filter(self) -> None:
        self._filter.show_only(self.search.text(), self._starred.isChecked())

    @Slot()
    def _enable(self) -> None:
        count = len(self.table.selectionModel().selectedRows())
        for action, single in self._actions:
            action.setEnabled(count == 1 if single else count > 0)
        self._show_difference()

    def _show_difference(self) -> None:
        selected = self.selected()
        if self._a is None or len(selected) != 1 or selected[0].id == self._a.id:
            self._difference.setText(
                f'<span style="color:{self._colours.muted}">'
                + ("Select one take to see what sets it apart from A." if self._a else "No take is A yet.")
                + "</span>"
            )
            return
        take = selected[0]
        found = [
            Difference(what, getattr(self._a, what), getattr(take, what), False)
            for what in ("text", "voice")
            if getattr(self._a, what) != getattr(take, what)
        ]
        found.extend(self._a.setting.differences(take.setting))
        parts = []
        for one in found:
            colour = self._colours.text if one.technique else self._colours.warning
            shown = [value if len(value) <= 24 else f"{value[:22]}…" for value in (one.left, one.right)]
            parts.append(f'<span style="color:{colour}"><b>{wording(one.what)}</b> {shown[0]} → {shown[1]}</span>')
        self._difference.setText("Against A: " + (" &nbsp;·&nbsp; ".join(parts) or "the same setting"))

    # --- What the buttons do ----------------------------------------------------------------------------------------
    def _load_selected(self) -> Take | None:
        selected = self.selected()
        if len(selected) != 1:
            self.problem.emit("Select one take in the Takes panel first.")
            return None
        try:
            return self._library.load(selected[0].id)
        except PlainError as error:
            self.problem.emit(str(error))
            return None

    @Slot()
    def set_a(self) -> None:
        """Compare with the selected take as A."""
        take = self._load_selected()
        if take is not None:
            self.a_chosen.emit(take)

    @Slot()
    def set_b(self) -> None:
        """Compare with the selected take as B."""
        take = self._load_selected()
        if take is not None:
            self.b_chosen.emit(take)

    @Slot()
    def rerun(self) -> None:
        """Load everything that made the selected take into Setup."""
        take = self._load_selected()
        if take is not None:
            self.rerun_wanted.emit(take)

    @Slot()
    def star(self) -> None:
        """Star the selected takes; when all of them are starred, take the stars away."""
        selected = self.selected()
        on = not all(take.starred for take in selected)
        try:
            for take in selected:
                self._library.star(take.id, on)
        except PlainError as error:
            self.problem.emit(str(error))
        self.reload()

    @Slot()
    def delete(self) -> None:
        """Ask, then delete the selected takes."""
        selected = self.selected()
        box = QMessageBox(self)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle("Delete takes")
        box.setText("Delete this take?" if len(selected) == 1 else f"Delete {len(selected)} takes?")
        box.setInformativeText("Their audio files are deleted too. This cannot be undone.")
        box.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.Cancel)
        box.button(QMessageBox.StandardButton.Yes).setText("Delete")
        box.setDefaultButton(QMessageBox.StandardButton.Cancel)
        box.accepted.connect(lambda: self._delete([take.id for take in selected]))
        box.open()

    def _delete(self, ids: list[str]) -> None:
        try:
            for one in ids:
                self._library.delete(one)
        except PlainError as error:
            self.problem.emit(str(error))
        self.reload()

    @Slot()
    def _ask_where_to_save(self) -> None:
        take = self._load_selected()
        if take is None:
            return
        dialog = QFileDialog(self, "Save the take", filter="WAV (*.wav)")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("wav")
        dialog.selectFile(f"{take.label or 'take'}.wav".replace("/", "-"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: self._save(take, Path(path)))
        dialog.open()

    def _save(self, take: Take, path: Path) -> None:
        try:
            write_wav(path, take.samples, take.sample_rate)
        except PlainError as error:
            self.problem.emit(str(error))

    @Slot()
    def _reveal(self) -> None:
        selected = self.selected()
        if selected:
            folder = self._library.audio_path(selected[0].id).parent
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
