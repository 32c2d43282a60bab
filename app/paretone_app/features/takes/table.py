"""The table of takes: columns, and rows with filter and sorting."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from PySide6.QtCore import QAbstractTableModel, QMimeData, QModelIndex, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from paretone.errors import SettingError
from paretone.measure.evaluation.judges import judge_named
from paretone.measure.metrics import figure_of, metric
from paretone.measure.processor_time import BUSY, load_line
from paretone.models import catalogue
from paretone.models.voices import shown_name
from paretone.session.commands import Synthesise
from paretone.setting.compatibility import is_replaced
from paretone.setting.library import TakeSummary
from paretone.setting.take import Take
from paretone.wording import per_one
from paretone_app.numbers import aligned, fixed, significant
from paretone_app.shell.entries import Term
from paretone_app.shell.theme import icon, text_font
from paretone_app.state.differences import STREAMING_MEANING, label_of, setting_text, streaming_text
from paretone_app.state.jobs import Job
from paretone_app.widgets.panel_parts import Index

NOT_MEASURED = "–"
DRAGGED = "application/x-paretone-takes"
"""Type of the selected takes while they are dragged."""


@dataclass(frozen=True)
class Unmade(TakeSummary):
    """A take that has no audio and no figures, and is not in the library."""

    state: str = "failed"

    @classmethod
    def asked(cls, key: str, created: str, command: Synthesise, label: str, **told: Any) -> Self:
        about = command.text, command.voice.id, command.setting, 1, 0
        return cls(key, created, *about, label=label, **told)

    @property
    def why_no_audio(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class WaitingTake(Unmade):
    job: int = 0

    @classmethod
    def of(cls, job: Job, command: Synthesise, state: str) -> WaitingTake:
        """``state``: as in "waits"."""
        return cls.asked(f"job {job.number}", job.asked, command, command.label, state=state, job=job.number)

    @property
    def why_no_audio(self) -> str:
        return f"This take {self.state}; it has no audio yet."


@dataclass(frozen=True)
class FailedTake(Unmade):
    reason: str = ""

    @property
    def why_no_audio(self) -> str:
        return f"This take failed and has no audio. {self.reason}"

    @classmethod
    def of(cls, command: Synthesise, reason: str) -> FailedTake:
        created = datetime.now(UTC).isoformat(timespec="milliseconds")
        return cls.asked(uuid.uuid4().hex, created, command, f"Failed: {command.label or 'take'}", reason=reason)


@dataclass(frozen=True)
class Column:
    title: str
    meaning: str
    text: Callable[[TakeSummary], str]
    key: Callable[[TakeSummary], str | float]
    numeric: bool = False
    places: int = 0
    """Decimals that there is room for: points are below each other."""
    width: int = 9
    """In digits."""
    wall_time: bool = False
    """Whether other processes affect it."""
    shortened: bool = False
    """Whether to shorten its texts, which may be long."""
    spread: Callable[[TakeSummary], str] = lambda take: ""
    """Interval over repeats, as a sentence, or ``""``."""

    def doubtful(self, take: TakeSummary) -> bool:
        """Whether other processes took too much of the machine for this figure of ``take``."""
        return self.wall_time and take.measurements.busy

    def explained(self, take: TakeSummary) -> str:
        """Tooltip for its value of ``take``, in lines."""
        doubt = load_line(take.measurements) if self.doubtful(take) else ""
        return "\n".join(filter(None, (self.text(take), self.spread(take), doubt, self.meaning)))

    @property
    def alignment(self) -> Qt.AlignmentFlag:
        side = Qt.AlignmentFlag.AlignRight if self.numeric else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter


def _model(take: TakeSummary) -> str:
    try:
        title = catalogue.entry(take.setting.model).title
    except SettingError:  # Takes outlive models.
        return take.setting.model
    return f"{title} (earlier)" if is_replaced(take.setting.model, take.checkpoint, take.voice) else title


def made_at(take: TakeSummary | Take) -> str:
    """Creation time of a take, local; as it is written if that is no time, as in a damaged library."""
    try:
        return datetime.fromisoformat(take.created).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return take.created


def _figure(name: str, places: int, unit: str = "", title: str = "", width: int = 9) -> Column:
    """A column for the metric ``name`` of :mod:`paretone.measure.metrics`, with three significant digits and at most
    ``places`` decimals; levels always have ``places``. A missing value sorts as the greatest."""
    one = metric(name)
    if (of := one.of) is None:
        raise ValueError(f"Takes have no {one.title}; only studies have.")
    absent = " Needs a baseline with the same words, timing and noise." if one.relative else ""
    if one.judge:
        absent = f" {judge_named(one.judge).problem() or 'Measured in the background.'}"

    def value(take: TakeSummary) -> float | None:
        if isinstance(take, Unmade):
            return None
        if one.of_runs:
            return None if (figure := figure_of(one, take)) is None else figure.value
        return of(take.measurements, take.metrics, take.log_mel_distance)

    def shown(found: float) -> str:
        written = fixed if unit in _LEVELS else significant
        return f"{written(per_one(unit) * found, places)} {unit}".rstrip()

    def text(take: TakeSummary) -> str:
        found = value(take)
        return NOT_MEASURED if found is None else shown(found)

    def spread(take: TakeSummary) -> str:
        found = figure_of(one, take) if take.repeats else None
        if found is None or not found.spreads:
            return ""
        what = "90th percentile" if one.of_runs else "Median"
        return f"{what} of {found.n} repeats, 95 % interval {shown(found.low)} to {shown(found.high)}."

    def key(take: TakeSummary) -> float:
        found = value(take)
        return math.inf if found is None else found

    meaning = f"{one.label}. {one.definition}{absent}"
    return Column(title or one.title, meaning, text, key, True, places, width, one.wall_time, spread=spread)


_LEVELS = "dBTP", "LUFS"


def _text(title: str, meaning: str, of: Callable[[TakeSummary], str], width: int) -> Column:
    return Column(title, meaning, of, lambda take: of(take).casefold(), width=width, shortened=True)


def _setting(take: TakeSummary) -> str:
    unmade = take.state if isinstance(take, Unmade) else ""
    cut = unmade or take.unfinished or ("example" if take.is_example else "")
    return f"{cut[0].upper()}{cut[1:]}: {setting_text(take.setting)}" if cut else setting_text(take.setting)


COLUMNS = (
    Column("★", "Starred", lambda take: "★" if take.starred else "", lambda take: not take.starred, width=4),
    Column("Lane", "Lane in Listen; A and B are the first two", lambda take: "", lambda take: "", width=6),
    _text("Model", "Model; “earlier”: with weights that no longer come with Paretone", _model, 14),
    _text("Text", "Text", lambda take: take.text, 30),
    _text("Setting", "Techniques, options that differ from the model's own, and the seed", _setting, 34),
    _figure("real_time_factor", 3, width=10),
    _figure("backbone_time_factor", 3, width=13),
    _figure("cpu_time_factor", 3, title="CPU RTF"),
    _figure("other_share", 2, "%", "Others", width=8),
    _figure("first_audio_seconds", 2, "s"),
    _figure("first_audio_p90", 2, "s", width=11),
    _figure("ops_ratio", 2, "%", "Ops", width=8),
    _figure("log_mel_distance", 3, title="Distance", width=10),
    _figure("mel_cepstral_distortion", 2, "dB", "MCD"),
    _figure("pitch_error", 2, "st", "F0"),
    _figure("voicing_error", 2, "%", "Voicing"),
    _figure("timbre_distance", 2, "dB", "Timbre"),
    _figure("naturalness", 2, width=11),
    _figure("voice_similarity", 2, title="Voice"),
    _figure("pitch_range", 3, title="Range"),
    Column(
        "Faults",
        "Number of faults that the checks found, such as clicks, loops and missing words. Play the take to see where. "
        "Measured in the background.",
        lambda take: NOT_MEASURED if take.metrics.faults is None else fixed(take.metrics.faults, 0),
        lambda take: math.inf if take.metrics.faults is None else take.metrics.faults,
        True,
    ),
    _figure("loudness", 1, "LUFS", width=12),
    _figure("true_peak", 1, "dBTP", width=11),
    _figure("clipping", 2, "%"),
    _figure("silence", 2, "%"),
    _figure("audio_seconds", 2, "s"),
    _figure("text_seconds", 3, "s", "Front end", width=10),
    _figure("backbone_seconds", 2, "s", "Backbone", width=10),
    _figure("decoder_seconds", 2, "s", "Decoder", width=10),
    _figure("flow_seconds", 2, "s", "Flow"),
    _figure("vocoder_seconds", 2, "s", "Vocoder", width=10),
    _figure("pause_seconds", 2, "s", "Waits"),
    _figure("peak_memory", 0, "MiB", "Memory", width=11),
    _text("Note", "The note written in its lane; words with # are tags", lambda take: take.remark, 20),
    Column(
        "Streaming",
        STREAMING_MEANING,
        lambda take: NOT_MEASURED if isinstance(take, Unmade) else streaming_text(take.measurements),
        lambda take: -math.inf if (level := take.measurements.streaming_difference) is None else level,
        True,
        width=11,
    ),
    _text("Machine", "Machine of the measurements", lambda take: take.machine or NOT_MEASURED, 30),
    Column("Created", "Creation time", made_at, lambda take: take.created, width=20),
)
TERMS = tuple(Term(one.title, one.meaning) for one in COLUMNS if one.title[:1].isalpha())
_STAR, _SIDE = 0, 1
TAKE_ROLE = Qt.ItemDataRole.UserRole


class TakesModel(QAbstractTableModel):
    """The library's takes as rows, filtered and sorted: a proxy model would call Python for every value in every
    comparison, a second for ten thousand takes. Holds summaries only: audio is read for playback."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._takes: list[TakeSummary] = []
        """All, newest first."""
        self._kept: tuple[TakeSummary, ...] = ()
        """The library's, newest first."""
        self._failed: list[FailedTake] = []
        self._waiting: tuple[WaitingTake, ...] = ()
        self._shown: list[TakeSummary] = []
        self._ordered: list[TakeSummary] | None = None
        """All, sorted; ``None`` after a change."""
        self._sides: dict[str, str] = {}
        self._playing = ""
        self._words: tuple[str, ...] = ()
        self._starred = self._faulty = False
        self._sorted_by, self._descending = len(COLUMNS) - 1, True
        self._described: dict[str, str] = {}

    def set_takes(self, takes: Sequence[TakeSummary]) -> None:
        """Show ``takes``, newest first, and failed ones. A single new or changed take leaves the other rows alone."""
        before, self._kept = self._kept, tuple(takes)
        if self._kept[1:] == before and self._kept:
            self._add(self._kept[0])
            return
        changed = [one for one, other in zip(self._kept, before, strict=False) if one is not other]
        if len(changed) == 1 and [one.id for one in self._kept] == [one.id for one in before]:
            self._replace(changed[0])
            return
        self._put_together()

    def set_waiting(self, takes: Sequence[WaitingTake]) -> None:
        if tuple(takes) != self._waiting:
            self._waiting = tuple(takes)
            self._put_together()

    def _put_together(self) -> None:
        self._takes = sorted([*self._waiting, *self._failed, *self._kept], key=lambda one: one.created, reverse=True)
        self._described = {}
        self._arrange()

    def add_failed(self, take: FailedTake) -> None:
        self._failed.append(take)
        self._add(take)

    def _add(self, take: TakeSummary) -> None:
        self._takes.insert(0, take)
        self._ordered = None
        if self._wanted(take):
            arranged = self._arranged()
            row = arranged.index(take)
            self.beginInsertRows(QModelIndex(), row, row)
            self._shown = arranged
            self.endInsertRows()

    def _replace(self, take: TakeSummary) -> None:
        known = next(place for place, one in enumerate(self._takes) if one.id == take.id)
        before, self._takes[known] = self._takes[known], take
        self._ordered = None
        if (self._key(before), self._wanted(before)) != (self._key(take), self._wanted(take)):
            self._arrange()
        for row in self.rows_of((take.id,)):
            self._shown[row] = take
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(COLUMNS) - 1))

    @property
    def is_empty(self) -> bool:
        return not self._takes

    def forget(self, take: FailedTake) -> None:
        self._failed.remove(take)
        self._takes.remove(take)
        self._arrange()

    def rows_of(self, takes: Collection[str]) -> list[int]:
        """Visible rows of these takes (ids), in order."""
        return [row for row, one in enumerate(self._shown) if one.id in takes]

    def set_sides(self, sides: dict[str, str]) -> None:
        self._sides = sides
        if self._sorted_by == _SIDE:
            self._arrange()
        elif self._shown:
            self.dataChanged.emit(self.index(0, _SIDE), self.index(len(self._shown) - 1, _SIDE))

    def set_playing(self, take: str) -> None:
        """Mark the take being played, by id; ``""`` for none."""
        changed = {self._playing, take}
        self._playing = take
        for row in self.rows_of(changed):
            self.dataChanged.emit(self.index(row, _SIDE), self.index(row, _SIDE))

    def show_only(self, words: str, starred: bool, faulty: bool = False) -> None:
        """Show the takes whose label, text, model, technique, voice or note contain all ``words``; ``starred``: only
        starred ones; ``faulty``: only those with faults."""
        self._words, self._starred, self._faulty = tuple(words.casefold().split()), starred, faulty
        self._show()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sorted_by, self._descending = column, order is Qt.SortOrder.DescendingOrder
        self._arrange()

    def _arrange(self) -> None:
        self._ordered = None
        self._show()

    def _show(self) -> None:
        self.beginResetModel()
        self._shown = self._arranged()
        self.endResetModel()

    def _arranged(self) -> list[TakeSummary]:
        if self._ordered is None:
            self._ordered = sorted(self._takes, key=self._key, reverse=self._descending)
        filtered = self._words or self._starred or self._faulty
        return [one for one in self._ordered if self._wanted(one)] if filtered else list(self._ordered)

    def _key(self, take: TakeSummary) -> str | float:
        return self._sides.get(take.id, "") if self._sorted_by == _SIDE else COLUMNS[self._sorted_by].key(take)

    def _wanted(self, take: TakeSummary) -> bool:
        if (self._starred and not take.starred) or (self._faulty and not take.metrics.faults):
            return False
        if not self._words:
            return True
        if (described := self._described.get(take.id)) is None:
            parts = label_of(take), _model(take), take.text, _setting(take), shown_name(take.voice), take.remark
            described = self._described[take.id] = " ".join(parts).casefold()
        return all(word in described for word in self._words)

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) | Qt.ItemFlag.ItemIsDragEnabled

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        data = QMimeData()
        data.setData(DRAGGED, b"")
        return data

    def rowCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        take, column = self._shown[index.row()], COLUMNS[index.column()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                if index.column() == _SIDE:
                    return self._sides.get(take.id, "")
                return aligned(column.text(take), column.places)
            case Qt.ItemDataRole.DecorationRole if index.column() == _SIDE and take.id == self._playing:
                return icon("speaker")
            case Qt.ItemDataRole.DecorationRole if column.doubtful(take):
                return icon("warning")
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._spoken(take, index.column())
            case Qt.ItemDataRole.ToolTipRole if isinstance(take, FailedTake):
                return take.reason
            case Qt.ItemDataRole.ToolTipRole:
                return column.explained(take)
            case Qt.ItemDataRole.TextAlignmentRole:
                return column.alignment
            case Qt.ItemDataRole.FontRole if index.column() == _SIDE:
                return text_font(QFont(), strong=True)
            case _ if role == TAKE_ROLE:
                return take
        return None

    def _spoken(self, take: TakeSummary, column: int) -> str:
        """Text of a cell for screen readers; never empty."""
        if column == _STAR:
            return "Starred" if take.starred else "Not starred"
        if column == _SIDE:
            side, playing = self._sides.get(take.id, ""), take.id == self._playing
            return f"{side} playing".strip() if playing else side or "No lane"
        text = COLUMNS[column].text(take) or "Nothing"
        return f"{text}, doubtful: {BUSY}" if COLUMNS[column].doubtful(take) else text

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        match role if orientation is Qt.Orientation.Horizontal else None:
            case Qt.ItemDataRole.DisplayRole:
                return COLUMNS[section].title
            case Qt.ItemDataRole.ToolTipRole:
                return COLUMNS[section].meaning
            case Qt.ItemDataRole.TextAlignmentRole:
                return COLUMNS[section].alignment
        return None
