"""The table of takes: its columns, its rows, and the filter over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from app.comparison import STREAMING_MEANING, streaming_text, technique_text
from engine.library import TakeSummary

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class Column:
    """One column: its title, what the title means, what it shows and what it sorts by."""

    title: str
    meaning: str
    text: Callable[[TakeSummary], str]
    key: Callable[[TakeSummary], object]
    numeric: bool = False

    @property
    def alignment(self) -> Qt.AlignmentFlag:
        """Of the values and of the title above them."""
        side = Qt.AlignmentFlag.AlignRight if self.numeric else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter


def _created(take: TakeSummary) -> str:
    return datetime.fromisoformat(take.created).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _distance(take: TakeSummary) -> str:
    return "–" if take.log_mel_distance is None else f"{take.log_mel_distance:.3f}"


def _metric(title: str, meaning: str, name: str, form: str) -> Column:
    """A column of one of :class:`engine.take.Metrics`; what was not measured sorts last."""

    def text(take: TakeSummary) -> str:
        value = getattr(take.metrics, name)
        return "–" if value is None else form.format(value)

    def key(take: TakeSummary) -> float:
        value = getattr(take.metrics, name)
        return float("inf") if value is None else value

    return Column(title, meaning, text, key, True)


def _streaming_level(take: TakeSummary) -> float:
    level = take.measurements.streaming_difference
    return float("-inf") if level is None else level


COLUMNS = (
    Column("★", "Starred", lambda take: "★" if take.starred else "", lambda take: not take.starred),
    Column("A/B", "Whether it is compared as A or B", lambda take: "", lambda take: ""),
    Column("Label", "What it is", lambda take: take.label or "take", lambda take: take.label.casefold()),
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
    _metric("MCD", "Mel-cepstral distortion to its baseline, in dB", "mel_cepstral_distortion", "{:.2f} dB"),
    _metric("F0", "Pitch error to its baseline, in semitones", "pitch_error", "{:.2f} st"),
    _metric("Loudness", "Integrated loudness (ITU-R BS.1770)", "loudness", "{:.1f} LUFS"),
    _metric("Clipping", "Share of samples at full scale or beyond", "clipping", "{:.2%}"),
    _metric("Silence", "Share of frames 40 dB below the loudest", "silence", "{:.0%}"),
    Column(
        "Length",
        "Seconds of audio",
        lambda take: f"{take.measurements.audio_seconds:.2f} s",
        lambda take: take.measurements.audio_seconds,
        True,
    ),
    Column(
        "Streaming",
        STREAMING_MEANING,
        lambda take: streaming_text(take.measurements),
        _streaming_level,
        True,
    ),
    Column("Text", "What is said", lambda take: take.text, lambda take: take.text.casefold()),
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
                return column.alignment
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
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return COLUMNS[section].alignment
        return None


class TakesFilter(QSortFilterProxyModel):
    """Rows whose label, text, technique or voice contain every word typed; starred ones only, if wanted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words: tuple[str, ...] = ()
        self._starred = False
        self.setSortRole(SORT_ROLE)

    def show_only(self, words: str, starred: bool) -> None:
        """Show the takes that contain every one of ``words``; only those with a star, if ``starred``."""
        self._words, self._starred = tuple(words.casefold().split()), starred
        self.invalidate()

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
