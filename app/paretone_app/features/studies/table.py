"""Tables of a study: settings with their figures, and failures."""

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QRect, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFont, QPainter, QPalette
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from paretone.measure.estimates import Estimate
from paretone.measure.metrics import LOWER, Metric
from paretone.measure.processor_time import BUSY, busy_line
from paretone.models.voices import shown_name
from paretone.studies.results import Results
from paretone.studies.wording import figure_text, setting_title, shown
from paretone.wording import percent
from paretone_app.numbers import counted, displayed, fixed, grouped, localised
from paretone_app.results.study import OpenStudy, Row
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, NEAR, icon, text_font
from paretone_app.widgets.panel_parts import Index, RowsTable, TextsTable

SORT_ROLE = Qt.ItemDataRole.UserRole
KEY_ROLE = Qt.ItemDataRole.UserRole + 1
_MARK, _SETTING, _TAKES = range(3)
_WIDE = 18  # Width of a column of texts, in font heights.
_REFERENCE = "The same judges' score of the reference speech: below it, settings cannot be told apart"
_FIXED = (
    ("", "★ the search's answer, ! cannot run"),
    ("Setting", "Compared setting; the baseline has no techniques"),
    ("Takes", "Finished takes, of those planned"),
)


class StudyModel(QAbstractTableModel):
    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._rows: tuple[Row, ...] = ()
        self.metrics: tuple[Metric, ...] = ()
        self._results: Results | None = None
        self._over = ("", "")  # Unit of the intervals, singular and plural.

    def show_summary(self, summary: OpenStudy | None) -> None:
        """Show a study's settings and figures; update only changed rows if the layout is the same."""
        rows, metrics = summary.rows if summary is not None else (), ()
        self._results = summary.results if summary is not None else None
        if summary is not None and summary.results is not None:
            metrics = shown(summary.results)
            heard = {one.text for takes in summary.results.heard.values() for one in takes}
            self._over = ("sentence", "sentences") if len(heard) != 1 else ("voice-seed pair", "voice-seed pairs")
            rows = (*rows, summary.reference) if summary.reference is not None else rows
        if metrics == self.metrics and [one.key for one in rows] == [one.key for one in self._rows]:
            # A take changes a row or two: redraw and sort only these.
            changed = [line for line, pair in enumerate(zip(self._rows, rows, strict=True)) if pair[0] != pair[1]]
            self._rows = rows
            for line in changed:
                self._redraw(line, line)
            return
        self.beginResetModel()
        self._rows, self.metrics = rows, metrics
        self.endResetModel()

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        if self._rows:
            self._redraw(0, len(self._rows) - 1)

    def _redraw(self, first: int, last: int) -> None:
        self.dataChanged.emit(self.index(first, 0), self.index(last, self.columnCount() - 1))

    def rowCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(_FIXED) + len(self.metrics)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self._rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(row, column)
            case Qt.ItemDataRole.ToolTipRole:
                return self._explanation(row, column)
            case Qt.ItemDataRole.DecorationRole if self._doubtful(row, column):
                return icon("warning")
            case Qt.ItemDataRole.AccessibleTextRole if self._doubtful(row, column):
                return f"{self._text(row, column)}, doubtful: {BUSY}"
            case Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(column)
            case Qt.ItemDataRole.FontRole if row.answer:
                return text_font(QFont(), strong=True)
            case Qt.ItemDataRole.ForegroundRole if row.problem or row.total is None:
                return QBrush(QColor(self._colours.warning if row.problem else self._colours.muted))
            case _ if role == SORT_ROLE:
                return self._order(row, column, index.row())
            case _ if role == KEY_ROLE:
                return row.key
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        title, meaning = (*_FIXED, *((one.label, one.definition) for one in self.metrics))[section]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return title
            case Qt.ItemDataRole.ToolTipRole:
                return meaning
            case Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(section)
        return None

    # --- Cells --------------------------------------------------------------------------------------------------------
    def _figure(self, row: Row, column: int) -> Estimate | None:
        return row.figures.get(self.metrics[column - len(_FIXED)].name)

    def _doubtful(self, row: Row, column: int) -> bool:
        """Whether other processes took too much of the machine for this figure."""
        if column < len(_FIXED) or not row.busy or self._figure(row, column) is None:
            return False
        return self.metrics[column - len(_FIXED)].wall_time

    def _text(self, row: Row, column: int) -> str:
        if column == _MARK:
            return "★" if row.answer else "!" if row.problem else ""
        if column == _SETTING:
            return localised(row.title)
        if column == _TAKES:
            takes = str(row.finished) if row.total is None else f"{row.finished}/{row.total}"
            return takes if row.setting is not None else ""
        return displayed(figure_text(self.metrics[column - len(_FIXED)], self._figure(row, column)))

    def _explanation(self, row: Row, column: int) -> str:
        if column >= len(_FIXED):
            one, figure = self.metrics[column - len(_FIXED)], self._figure(row, column)
            if figure is None:
                return f"{one.title}: not measured yet" if row.setting is not None else _REFERENCE
            low, high = displayed(one.spelt(figure.low)), displayed(one.said(figure.high))
            ends = f"95 % interval {low} to {high}, " if figure.spreads else ""
            one_of, many_of = ("take", "takes") if row.setting is not None else ("recording", "recordings")
            from_what = f"n = {counted(figure.n, one_of, many_of)} of {counted(figure.clusters, *self._over)}"
            from_what += f", {figure.over}" if figure.over else ""
            busy = localised(busy_line(during=f"{grouped(row.busy)} of {counted(row.finished, 'take', 'takes')}"))
            doubt = f"{busy}\n" if self._doubtful(row, column) else ""
            value = displayed(one.said(figure.value))
            return f"{one.title} {value}, {ends}{from_what}.\n{self._paired(row, one)}{doubt}{one.definition}"
        if row.setting is None:
            return _REFERENCE
        if row.problem:
            return row.problem
        if row.total is None:
            return "This setting is no longer in the study's file; its takes are kept."
        return "The search's answer" if row.answer else row.title

    def _paired(self, row: Row, one: Metric) -> str:
        """Line with the paired test against the baseline, or ``""``."""
        tests = self._results.paired(row.key) if self._results is not None and one.judge else ()
        found = next((test for test in tests if test.metric == one.name), None)
        return f"Against the baseline: {displayed(found.words)}.\n" if found is not None else ""

    def _order(self, row: Row, column: int, place: int) -> object:
        if column < len(_FIXED):
            return float((not row.answer, place, row.finished)[column])
        one, figure = self.metrics[column - len(_FIXED)], self._figure(row, column)
        # Missing values come last if the best is first.
        worst = float("inf") if one.better == LOWER else float("-inf")
        return worst if figure is None else float(figure.value)


class FigureDelegate(QStyledItemDelegate):
    """Draws figures with their decimal points below each other and fainter intervals, where these have room."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        drawn = QStyleOptionViewItem(option)
        self.initStyleOption(drawn, index)
        (value, _, interval), drawn.text = (text := drawn.text).partition(" "), ""
        drawn.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, drawn, painter, drawn.widget)
        room, metrics = drawn.rect.adjusted(NEAR, 0, -GAP, 0), drawn.fontMetrics
        last = room.right() - metrics.horizontalAdvance("(0.000–0.000)")
        point = last - metrics.horizontalAdvance(".000 ")
        whole, sign, part = value.partition(fixed(0.5, 1)[1])
        chosen = bool(drawn.state & QStyle.StateFlag.State_Selected)
        role = QPalette.ColorRole.HighlightedText if chosen else QPalette.ColorRole.Text
        faint = role if chosen else QPalette.ColorRole.PlaceholderText
        place, right = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.save()
        painter.setFont(drawn.font)
        painter.setPen(drawn.palette.color(QPalette.ColorGroup.Active, role))
        if (interval and len(part) > len("000")) or len(interval) > len("(0.000–0.000)"):
            painter.drawText(room, right, metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width()))
        else:
            painter.drawText(QRect(room.left(), room.top(), point - room.left(), room.height()), right, whole)
            painter.drawText(QRect(point, room.top(), room.right() - point, room.height()), place, sign + part)
            painter.setPen(drawn.palette.color(QPalette.ColorGroup.Active, faint))
            painter.drawText(QRect(last, room.top(), drawn.rect.right() - last, room.height()), place, interval)
        painter.restore()


class StudyTable(RowsTable):
    """Shows a :class:`StudyModel`; the current setting stays current while figures arrive."""

    current_changed = Signal(str)
    """Key of the new current setting, or ``""``."""

    def __init__(self, colours: Colours) -> None:
        super().__init__("Settings of the study", RowsTable.SelectionMode.SingleSelection)
        self.study = StudyModel(colours, self)
        self._sorted = QSortFilterProxyModel(self)
        self._sorted.setSortRole(SORT_ROLE)
        self._sorted.setSourceModel(self.study)
        self.setModel(self._sorted)
        self._figures = FigureDelegate(self)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setMinimumSectionSize(2 * self.fontMetrics().height())
        self.sortByColumn(_SETTING, Qt.SortOrder.AscendingOrder)
        self._fit()
        self.selectionModel().currentRowChanged.connect(lambda *_: self.current_changed.emit(self.current))

    @property
    def current(self) -> str:
        """Key of the current setting, or ``""``."""
        index = self.currentIndex()
        return index.data(KEY_ROLE) if index.isValid() else ""

    def show_summary(self, summary: OpenStudy | None) -> None:
        kept, columns = self.current, self.study.columnCount()
        self.study.show_summary(summary)
        if self.study.columnCount() != columns:
            self._fit()
        if kept and not self.current:
            self.choose(kept)

    def choose(self, key: str) -> None:
        for line in range(self._sorted.rowCount()):
            index = self._sorted.index(line, _MARK)
            if index.data(KEY_ROLE) == key:
                self.setCurrentIndex(index)
                self.scrollTo(index)
                return

    def _fit(self) -> None:
        unit = self.fontMetrics().horizontalAdvance("0")
        self.setColumnWidth(_MARK, 3 * unit)
        self.setColumnWidth(_SETTING, 40 * unit)
        self.setColumnWidth(_TAKES, 9 * unit)
        for column, one in enumerate(self.study.metrics, start=len(_FIXED)):
            self.setColumnWidth(column, max(24, len(one.label) + 4) * unit)
            self.setItemDelegateForColumn(column, self._figures)


def _alignment(column: int) -> Qt.AlignmentFlag:
    left = column in (_MARK, _SETTING)
    return (Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight) | Qt.AlignmentFlag.AlignVCenter


class FailuresTable(TextsTable):
    def __init__(self) -> None:
        columns = (("Setting", ""), ("Sentence", ""), ("Reason", ""))
        super().__init__("Failed takes", columns, widths=(_WIDE, _WIDE))

    def show_summary(self, summary: OpenStudy | None) -> None:
        rows: list[tuple[str, ...]] = []
        for one in summary.failures if summary is not None else ():
            spoken = one.text if one.seed is None else _spoken(one.text, one.voice, one.seed)
            rows.append((one.setting, spoken, one.why))
        self.show_rows(rows)


class WorstTable(TextsTable):
    take_chosen = Signal(str, str, str)
    """Play the take with this id: title and text."""

    def __init__(self) -> None:
        columns = (("Setting", ""), ("Sentence", ""), ("Errors", ""), ("Heard as", ""))
        super().__init__("Takes with the most errors", columns, widths=(_WIDE, _WIDE))
        self.setToolTip("Double-click or press Enter to hear the take")
        self._takes: list[tuple[str, str, str]] = []
        self.activated.connect(lambda index: self.take_chosen.emit(*self._takes[index.row()]))

    def show_summary(self, summary: OpenStudy | None) -> None:
        results = summary.results if summary is not None else None
        found = [(one, take) for one in results.settings for take in results.worst(one.key)] if results else []
        self._takes = [(take.take, setting_title(one), take.text) for one, take in found]
        rows: list[tuple[str, ...]] = []
        for one, take in found:
            spoken, errors = _spoken(take.text, take.voice, take.seed), localised(percent(take.error_rate or 0.0))
            rows.append((setting_title(one), spoken, errors, take.understood))
        self.show_rows(rows)


def _spoken(text: str, voice: str, seed: int) -> str:
    return f"“{text}” ({shown_name(voice)}, seed {seed})"
