"""Around the trade-off plot: axes and filters above it, techniques, and the line below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from PySide6.QtCore import QPointF, QSignalBlocker, QSize, Qt, Signal, SignalInstance
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QPushButton, QSizePolicy, QWidget

from paretone.figures.glyphs import FILLED, HOLLOW, Glyph
from paretone.measure.metrics import HIGHER, NEITHER
from paretone.models.voices import shown_name
from paretone.techniques import techniques
from paretone.techniques.registry import in_order
from paretone_app.features.tradeoff.axes import TradeoffAxis, axis
from paretone_app.features.tradeoff.scene import BASELINE, Filter, PlotOptions
from paretone_app.features.tradeoff.styles import PointStyles
from paretone_app.plotting.points import paint_glyph
from paretone_app.results.points import technique_title
from paretone_app.shell.colours import Colours
from paretone_app.shell.entries import SEARCH
from paretone_app.shell.theme import NEAR, set_look
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox, Slider
from paretone_app.widgets.layouts import Flow, HBoxLayout

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


_KINDS = "filled: settings of studies · hollow: single takes · dashed ring: times of a busy machine"


class TradeoffLegend(Flow):
    """A click shows or hides the points that use a technique; with Ctrl, all others."""

    hidden_changed = Signal(object)
    """The techniques, by name, whose points are hidden: a frozenset."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._colours = colours
        self.buttons: dict[str, QPushButton] = {}
        for name in (BASELINE, *in_order(one.name for one in techniques())):
            self._add(name)
        self._kinds = build.label(_KINDS, "muted")
        self.add(self._kinds)

    @property
    def hidden(self) -> frozenset[str]:
        """The techniques whose points are hidden."""
        return frozenset(name for name, button in self.buttons.items() if not button.isChecked())

    @property
    def offered(self) -> dict[str, QPushButton]:
        """The buttons that are shown."""
        return {name: button for name, button in self.buttons.items() if not button.isHidden()}

    def show_techniques(self, counts: Mapping[str, int], looks: PointStyles, mixed: bool) -> None:
        """Offer these techniques, by name, with how many points use each; what was hidden stays so. ``mixed``: there
        are takes as well as settings of studies."""
        for name in counts:
            if name not in self.buttons:  # Of another version.
                self._add(name)
        side = round(1.1 * self.fontMetrics().height())
        for name, button in self.buttons.items():
            button.setVisible(name in counts)
            if name not in counts:
                continue
            title = technique_title(name) if name else "Baseline"
            button.setText(f"{title} {counts[name]}")
            glyph = looks.glyph((name,) if name != BASELINE else ())
            button.setIcon(_icon(glyph, looks.colours, side, self.devicePixelRatioF()))
            button.setIconSize(QSize(side, side))
            button.setAccessibleName(f"{title}: {counts[name]} points")
            use = f"use {title}" if name else "use no technique"
            button.setToolTip(
                f"Show or hide the points that {use}. With Ctrl: hide all other techniques. "
                "A point of two techniques has both colours"
            )
        self._kinds.setVisible(mixed)
        self.set_colours(looks.colours)
        self.arrange()

    def _add(self, name: str) -> None:
        """A button stays for good and is hidden while it is not needed."""
        button = build.button(
            "", lambda _=False: self._clicked(name), name=technique_title(name) if name else "Baseline"
        )
        button.setCheckable(True)
        button.setChecked(True)
        self.buttons[name] = button
        self.add(button)

    def _clicked(self, name: str) -> None:
        if QGuiApplication.keyboardModifiers() & Qt.KeyboardModifier.ControlModifier:
            self.show_only(name)
        else:
            self.hidden_changed.emit(self.hidden)

    def show_only(self, name: str) -> None:
        """Hide all techniques but one."""
        for other, button in self.buttons.items():
            button.setChecked(other == name)
        self.hidden_changed.emit(self.hidden)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme."""
        self._colours = colours
        style = (
            f"QPushButton {{ padding: 0.1em 0.45em; border: 1px solid transparent; background: transparent;"
            f" color: {colours.disabled}; text-decoration: line-through; }}"
            f"QPushButton:checked {{ background: transparent; color: {colours.text}; text-decoration: none;"
            f" border: 1px solid {colours.border}; }}"
            f"QPushButton:hover {{ border-color: {colours.accent}; }}"
            f"QPushButton:focus {{ border: 1px solid {colours.accent}; outline: none; }}"
        )
        if self.styleSheet() != style:
            self.setStyleSheet(style)


@lru_cache(maxsize=256)
def _icon(glyph: Glyph, colours: Colours, side: int, ratio: float) -> QIcon:
    """The same one for the same looks: Qt keeps pictures of every icon there was (``resources/docs/endurance.md``)."""
    made = QIcon()
    for look, state in ((FILLED, QIcon.State.On), (HOLLOW, QIcon.State.Off)):
        drawn = QPixmap(round(side * ratio), round(side * ratio))
        drawn.setDevicePixelRatio(ratio)
        drawn.fill(Qt.GlobalColor.transparent)
        with QPainter(drawn) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if state is QIcon.State.Off:
                painter.setOpacity(0.45)
            one = Glyph(glyph.colours, glyph.shape, look)
            paint_glyph(painter, QPointF(side / 2, side / 2), 0.36 * side, one, colours)
        made.addPixmap(drawn, QIcon.Mode.Normal, state)
    return made


_HEARD, _NO_LONGER = "Now I hear it", "I no longer hear it"


class TradeoffFoot(QWidget):
    """Methods in, signals out."""

    everything_wanted = Signal()
    """Show all of both axes."""
    play_wanted = Signal()
    """Start or stop playing the front."""
    mark_wanted = Signal()
    """The user marked an audible change at the current point."""

    along_wanted = Signal(int)
    """Use another point of the front as the current one: its place from the left, from 0."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._counts, self._remarks = build.label(look="muted", name="What is shown"), QLabel()
        self._remarks.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.everything_button = build.button(
            "Show everything", self.everything_wanted, "Show all of both axes (0 or double click in the plot)"
        )
        self.everything_button.hide()
        self.everything_button.setStyleSheet("padding: 0.1em 0.45em;")
        self.slider = build.named(Slider(Qt.Orientation.Horizontal), "Along the front")
        self.slider.setToolTip("Walk along the front, from left to right")
        self.slider.setPageStep(1)
        self.slider.setMinimumWidth(6 * self.fontMetrics().height())
        self.slider.valueChanged.connect(self.along_wanted)
        self.slider.hide()
        self.mark_button = build.button(
            _HEARD, self.mark_wanted, "Mark where you begin to hear a difference, and on the way back where it ends (N)"
        )
        self.mark_button.hide()
        self.play_button = build.button(
            "Play the front",
            self.play_wanted,
            "Hear one sentence by each setting in turn; walk along the front, or drag, to repeat one (Ctrl+9)",
        )
        self.play_button.setCheckable(True)
        row = HBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        # The plot shall not change its size when the button comes.
        row.addStrut(self.everything_button.sizeHint().height())
        row.addWidget(self._counts)
        row.addWidget(self.everything_button)
        row.addWidget(self._remarks, 1)
        row.addWidget(self.slider)
        row.addWidget(self.mark_button)
        row.addWidget(self.play_button)

    def show_counts(self, text: str, zoomed: bool) -> None:
        """Counts of shown points; when a section is shown, all of it can be asked for."""
        self._counts.setText(text)
        self.everything_button.setVisible(zoomed)

    def show_remarks(self, cautions: Sequence[str], others: Sequence[str] = ()) -> None:
        """Sentences on what is shown, what to beware of first."""
        sentences = (*cautions, *others)
        self._remarks.setText("  ".join(sentences))
        self._remarks.setToolTip("\n".join(sentences))
        self._remarks.setAccessibleName(self._remarks.text())
        set_look(self._remarks, "warning" if cautions else "muted")

    def show_playing(self, on: bool) -> None:
        """Whether the front is played; only then the slider walks along it, and something can be marked."""
        self.play_button.setChecked(on)
        self.slider.setVisible(on)
        self.mark_button.setVisible(on)

    def show_place(self, at: int, count: int) -> None:
        """Where on the front of ``count`` points the current one is, from the left; emits no signal."""
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, max(count - 1, 0))
            self.slider.setValue(at)

    def show_direction(self, faster: bool) -> None:
        """Which way the listener walks."""
        self.mark_button.setText(_HEARD if faster else _NO_LONGER)

    @property
    def remarks(self) -> str:
        """The sentences."""
        return self._remarks.text()

    @property
    def counts(self) -> str:
        """Counts of shown points, in a line."""
        return self._counts.text()
