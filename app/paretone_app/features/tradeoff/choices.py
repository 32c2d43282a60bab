"""The two lines above the trade-off plot: along which axes and how points are shown, and which of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal, SignalInstance
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QWidget,
)

from paretone.measure.metrics import HIGHER, NEITHER
from paretone.models.own_voices import shown_name
from paretone_app.features.tradeoff.model.axes import TradeoffAxis, axis
from paretone_app.features.tradeoff.model.filtering import Filter
from paretone_app.features.tradeoff.model.scene import PlotOptions
from paretone_app.shell.entries import SEARCH
from paretone_app.shell.theme import NEAR
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.layouts import HBoxLayout

_ALL = {"source": "All sources", "ghosts": "No ghosts", "model": "All models", "voice": "All voices"}
_GHOSTS = "Draw another study's points faintly beneath the others, and a line from each to the same setting"


class PlotOptionsLine(QWidget):
    """Controls of :class:`PlotOptions`."""

    chosen = Signal()
    """The user chose another: see :attr:`options`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.own_axes = False
        """Whether the user chose axes, rather than none yet."""
        self.x_choice = _choice("X axis", self._axes_chosen)
        self.y_choice = _choice("Y axis", self._axes_chosen)
        self.log_x_box = self._box("log", "Logarithmic X axis, for figures above 0", False)
        self.log_x_box.setAccessibleName("Logarithmic X axis")
        self.log_y_box = self._box("log", "Logarithmic Y axis, for figures above 0", False)
        self.log_y_box.setAccessibleName("Logarithmic Y axis")
        self.dominated_box = self._box("Show &dominated", "Also show points beaten on both axes", True)
        self.intervals_box = self._box("&Intervals", "95 % bootstrap intervals over sentences", True)
        self.ratios_box = self._box("Ra&tios", "Divide figures by those of each point’s baseline", False)
        self.published_box = self._box("&Published", "Results of five papers, as ratios to their baselines", False)
        self.boxes: Mapping[str, QCheckBox] = {
            "dominated": self.dominated_box,
            "intervals": self.intervals_box,
            "ratios": self.ratios_box,
            "published": self.published_box,
            "log_x": self.log_x_box,
            "log_y": self.log_y_box,
        }
        """Check boxes by the field of :class:`PlotOptions` that each sets."""
        row = HBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        axes = (("X axis", self.x_choice, self.log_x_box), ("Y axis", self.y_choice, self.log_y_box))
        for title, choice, box in axes:
            row.addWidget(QLabel(title))
            row.addWidget(choice, 3)
            row.addWidget(box)
            row.addSpacing(NEAR)
        for box in (self.dominated_box, self.intervals_box, self.ratios_box, self.published_box):
            row.addWidget(box)

    def _box(self, title: str, tip: str, on: bool) -> QCheckBox:
        box = build.named(QCheckBox(title), tip=tip)
        box.setChecked(on)
        box.toggled.connect(self.chosen)
        return box

    @property
    def options(self) -> PlotOptions:
        """The chosen options."""
        on = {name: box.isChecked() for name, box in self.boxes.items()}
        return PlotOptions(self.x_choice.currentData(), self.y_choice.currentData(), **on)

    def show_options(self, options: PlotOptions, known: Sequence[TradeoffAxis]) -> None:
        """Show ``options`` as what is chosen, and offer the ``known`` axes."""
        for combo, name in ((self.x_choice, options.x), (self.y_choice, options.y)):
            offered = known if any(one.name == name for one in known) else (axis(name), *known)
            with QSignalBlocker(combo):
                combo.clear()
                for one in offered:
                    combo.addItem(_axis_title(one), one.name)
                    combo.setItemData(combo.count() - 1, one.definition, Qt.ItemDataRole.ToolTipRole)
                combo.setCurrentIndex(combo.findData(name))
                combo.setToolTip(_explained(axis(name)))
        for name, box in self.boxes.items():
            with QSignalBlocker(box):
                box.setChecked(getattr(options, name))

    def _axes_chosen(self) -> None:
        self.own_axes = True
        for combo in (self.x_choice, self.y_choice):
            combo.setToolTip(_explained(axis(combo.currentData())))
        self.chosen.emit()


class FilterLine(QWidget):
    """Controls of a :class:`Filter` by origin, model, voice and words; the legend has those by technique."""

    chosen = Signal()
    """The user chose something else: see :meth:`applied_to`."""
    clear_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.combos = {name: _choice(title, self.chosen) for name, title in _ALL.items()}
        for name, combo in self.combos.items():
            if name != "ghosts":
                combo.currentTextChanged.connect(combo.setToolTip)
        self.search = QLineEdit(placeholderText="Filter by words", clearButtonEnabled=True)
        self.search.setAccessibleName("Filter points by words")
        self.search.setProperty(SEARCH, True)
        self.search.setToolTip("Points whose title, model, voice or text contain every word")
        self.search.setMinimumWidth(6 * self.fontMetrics().height())
        self.search.textChanged.connect(self.chosen)
        self.clear_button = build.button("C&lear", self.clear_wanted, "Show all points again")
        combos = [(combo, 2) for combo in self.combos.values()]
        build.fill(HBoxLayout(self), (*combos, (self.search, 3), self.clear_button))

    def applied_to(self, chosen: Filter) -> Filter:
        """``chosen`` with what is chosen here."""
        wanted = {name: str(combo.currentData() or "") for name, combo in self.combos.items()}
        return chosen.with_origins({**wanted, "words": self.search.text()})

    def show_filter(self, chosen: Filter, there: Mapping[str, Sequence[str]]) -> Filter:
        """Show ``chosen``, and offer what is there by the same names. Gives ``chosen`` without what is gone."""
        gone = [name for name, known in there.items() if getattr(chosen, name) not in known]
        chosen = chosen.with_origins(dict.fromkeys(gone, ""))
        if self.search.text() != chosen.words:
            with QSignalBlocker(self.search):
                self.search.setText(chosen.words)
        for name, combo in self.combos.items():
            with QSignalBlocker(combo):
                combo.clear()
                combo.addItem(_ALL[name], "")
                for one in there[name]:
                    combo.addItem(shown_name(one).rpartition("/")[2] if name == "voice" else one, one)
                combo.setCurrentIndex(combo.findData(getattr(chosen, name)))
                combo.setToolTip(combo.currentText())
        # Only a second study can be beneath a first.
        self.combos["ghosts"].setVisible(len(there["ghosts"]) > 1)
        self.combos["ghosts"].setToolTip(_GHOSTS)
        return chosen


def _choice(name: str, slot: Callable[[], object] | SignalInstance) -> ComboBox:
    combo = ComboBox()
    combo.setAccessibleName(name)
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    combo.setMinimumContentsLength(4)
    combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    combo.activated.connect(slot)
    return combo


def _axis_title(one: TradeoffAxis) -> str:
    return one.label(False) + ("" if one.better == NEITHER else " ↑" if one.better == HIGHER else " ↓")


def _explained(one: TradeoffAxis) -> str:
    return f"{_axis_title(one)}\n{one.definition}"
