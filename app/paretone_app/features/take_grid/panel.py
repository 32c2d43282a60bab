"""The take grid: takes that differ from a reference in two dimensions, coloured by a figure, heard by pointing at them.

The panel knows neither the application's state nor the engine: methods in, signals out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QCheckBox, QLabel, QLineEdit, QScrollArea, QSizePolicy, QWidget

from paretone.measure.metrics import HIGHER, LOWER, Metric
from paretone_app.features.take_grid.cells import Cell, TakeCells
from paretone_app.features.take_grid.grid import Dimension, TakeGrid
from paretone_app.shell.colours import Colours
from paretone_app.widgets import build, sketching
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout

_INVITATION = (
    "No takes yet. Synthesise one (Ctrl+B), or open a study: takes that differ in two knobs become a grid, "
    "in which pointing at a cell plays it."
)


_MEAN = "Mean of all sentences"


@dataclass(frozen=True)
class Chosen:
    """What the user chose above the grid."""

    rows: str
    columns: str
    """Names of dimensions."""
    figure: str
    more_rows: str = ""
    more_columns: str = ""
    """Further values, as they were typed."""
    mean: bool = False
    """Whether figures are means over sentences."""


class TakeGridPanel(QWidget):
    """Above: dimensions, further values, the figure and the sentence. Then the cells."""

    shown = Signal()
    """The panel can be seen from now on."""
    chosen = Signal(object)
    """The user chose otherwise: :class:`Chosen`."""
    sentence_wanted = Signal(str)
    """The same of another sentence."""
    make_all_wanted = Signal()
    """Make all empty cells."""
    point_wanted = Signal()
    """Use the take of the point selected in Trade-off as the reference."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._remark = ""
        self._mean = False
        """Whether means over sentences are chosen."""
        self.rows, self.columns = (self._combo(name) for name in ("Rows", "Columns"))
        self.more_rows, self.more_columns = (self._more(name) for name in ("rows", "columns"))
        self.figure = self._combo("Figure")
        self.sentence = self._combo("Sentence of the grid", self._sentence_chosen)
        self.hover_box = build.named(QCheckBox("Play on pointing"), tip="Play the cell that the mouse rests on")
        self.hover_box.setChecked(True)
        self.point_button = build.button(
            "From Trade-off", self.point_wanted, "Make the take of the point selected in Trade-off the reference"
        )
        self.make_button = build.button("Make empty cells…", self.make_all_wanted)
        first, second = HBoxLayout(), HBoxLayout()
        for title, combo, more in (
            ("Ro&ws", self.rows, self.more_rows),
            ("Co&lumns", self.columns, self.more_columns),
        ):
            label = QLabel(title)
            label.setBuddy(combo)
            first.addWidget(label)
            first.addWidget(combo, 3)
            first.addWidget(more, 2)
        label = QLabel("Coloured by")
        label.setBuddy(self.figure)
        for part, stretch in ((label, 0), (self.figure, 3), (self.sentence, 4), (self.hover_box, 0)):
            second.addWidget(part, stretch)
        self.cells = TakeCells(colours)
        area = QScrollArea()
        area.setWidget(self.cells)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area = area
        self._words = build.label(look="muted", name="The cell")
        self._words.setWordWrap(False)
        self._words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        foot = HBoxLayout()
        foot.addWidget(self._words, 1)
        foot.addWidget(self.point_button)
        foot.addWidget(self.make_button)
        body = build.column(first, second, (area, 1), foot)
        self.pages = Invited(body, _INVITATION, sketching.cells(4, 6))
        outer = VBoxLayout(self)
        outer.addWidget(self.pages)
        self.cells.moved.connect(self._cursor_moved)
        self._show_page()

    def _combo(self, name: str, slot: object = None) -> ComboBox:
        combo = build.named(ComboBox(), name)
        combo.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(6)
        combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        combo.activated.connect(self._choose if slot is None else slot)
        return combo

    def _more(self, name: str) -> QLineEdit:
        edit = build.named(
            QLineEdit(placeholderText="and…", clearButtonEnabled=True),
            f"Further {name}",
            f"Further values for {name}, such as 4 8 off; sentences with | in between",
        )
        edit.editingFinished.connect(self._choose)
        return edit

    # --- Methods in --------------------------------------------------------------------------------------------------
    def show_choices(self, known: Sequence[Dimension], figures: Sequence[Metric], chosen: Chosen) -> None:
        """Offer dimensions and figures, and show what is ``chosen``."""
        for combo, name in ((self.rows, chosen.rows), (self.columns, chosen.columns)):
            _fill(combo, [(one.title, one.name) for one in known], name)
        self._mean = chosen.mean
        arrows = {HIGHER: " ↑", LOWER: " ↓"}
        _fill(self.figure, [(one.label + arrows.get(one.better, ""), one.name) for one in figures], chosen.figure)
        for place, one in enumerate(figures):
            self.figure.setItemData(place, one.definition, Qt.ItemDataRole.ToolTipRole)
        for edit, text in ((self.more_rows, chosen.more_rows), (self.more_columns, chosen.more_columns)):
            if edit.text() != text and not edit.hasFocus():
                with QSignalBlocker(edit):
                    edit.setText(text)

    def show_grid(self, grid: TakeGrid | None, states: Mapping[Cell, tuple[str, str]], remark: str = "") -> None:
        """Show the cells; ``states`` as for :meth:`TakeCells.show_grid`, ``remark`` is said first."""
        self.cells.show_grid(grid, states)
        self._remark = remark
        sentences = () if grid is None else grid.sentences
        reference = None if grid is None or not grid.sentences else grid.asked[grid.reference[0]][grid.reference[1]]
        here = "" if reference is None else reference.text
        several = [(_MEAN, _MEAN)] if len(sentences) > 1 else []
        mean = grid is not None and bool(grid.others)
        _fill(self.sentence, [*several, *((one, one) for one in sentences)], _MEAN if mean else here)
        self.sentence.setVisible(bool(sentences))
        self.sentence.setEnabled(len(sentences) > 1)
        self.sentence.setToolTip(here)
        self._show_words()
        self._show_page()

    def set_reason(self, make: str) -> None:
        """Why empty cells cannot be made, as a sentence, or ``""``."""
        build.allow(self.make_button, make, "Make the takes of all empty cells, one after the other (Esc cancels)")

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self.cells.set_colours(colours)

    @property
    def words(self) -> str:
        """The line below the cells."""
        return self._words.text()

    # --- What the user does ------------------------------------------------------------------------------------------
    def _choose(self) -> None:
        self.chosen.emit(
            Chosen(
                str(self.rows.currentData() or ""),
                str(self.columns.currentData() or ""),
                str(self.figure.currentData() or ""),
                self.more_rows.text(),
                self.more_columns.text(),
                self._mean,
            )
        )

    def _sentence_chosen(self) -> None:
        mean = self.sentence.currentData() == _MEAN
        if mean != self._mean:
            self._mean = mean
            self._choose()
        if not mean:
            self.sentence_wanted.emit(str(self.sentence.currentData()))

    def _cursor_moved(self, row: int, column: int) -> None:
        self._show_words()
        cell = self.cells.cell_rectangle(row, column).center().toPoint()
        self._area.ensureVisible(cell.x(), cell.y(), 60, 40)

    # --- Showing -----------------------------------------------------------------------------------------------------
    def _show_words(self) -> None:
        text = "  ".join(one for one in (self._remark, self.cells.cursor_text()) if one)
        self._words.setText(text)
        self._words.setToolTip(text)

    def _show_page(self) -> None:
        there = self.cells.grid is not None
        self.pages.show_content(there)
        self.setFocusProxy(self.cells if there else self.pages)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()


def _fill(combo: ComboBox, entries: Sequence[tuple[str, str]], current: str) -> None:
    """Offer ``entries``, titles and data, of which ``current`` is chosen."""
    with QSignalBlocker(combo):
        combo.clear()
        for title, data in entries:
            combo.addItem(title, data)
        combo.setCurrentIndex(combo.findData(current))
