"""Controls of the trade-off panel."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape

from PySide6.QtCore import QPointF, QSignalBlocker, QSize, Qt, Signal, SignalInstance
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QSizePolicy, QToolButton, QWidget

from paretone.figures.glyphs import FILLED, HOLLOW, Glyph
from paretone.models.voices import shown_name
from paretone.techniques import techniques
from paretone.techniques.registry import in_order
from paretone_app.features.tradeoff import words
from paretone_app.features.tradeoff.axes import ARROWS, TradeoffAxis, axis
from paretone_app.features.tradeoff.scene import BASELINE, SERVERS, Filter, PlotOptions, Scene
from paretone_app.features.tradeoff.styles import PointStyles
from paretone_app.features.tradeoff.words import Reference, Why
from paretone_app.numbers import counted
from paretone_app.plotting.points import paint_glyph
from paretone_app.results.points import STUDY, Point, Sound, technique_title
from paretone_app.shell.colours import Colours
from paretone_app.shell.entries import SEARCH
from paretone_app.shell.theme import NEAR, set_look
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionBox, ActionButton
from paretone_app.widgets.boxes import ComboBox, Slider
from paretone_app.widgets.layouts import Flow, HBoxLayout, Scrolled, VBoxLayout

_HEAR = "Hear"
_NOTHING = (
    "Click a point to hear it and to see its figures here. Left and Right walk along the front; drag a rectangle "
    "to select points."
)


class TradeoffDetails(QWidget):
    only_changed = Signal(bool)

    def __init__(self, colours: Colours, can: Mapping[str, Action]) -> None:
        super().__init__()
        self._colours = colours
        self.point: Point | None = None
        self._spoken: tuple[str, str, int] | None = None
        self._playing = ""  # Id of the take being played.
        self.title = build.words("title")
        self._text = build.named(QLabel(wordWrap=True, textFormat=Qt.TextFormat.RichText), "Selected point")
        self._text.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.difference = build.words(rich=True, selectable=True)
        self.difference.hide()
        self.fold = QToolButton(arrowType=Qt.ArrowType.RightArrow)
        self.fold.setCheckable(True)
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.fold.setProperty("look", "quiet")
        self.fold.toggled.connect(self._unfold)
        area = build.named(Scrolled(build.column(self._text, self.fold, (self.difference, 1))), "Selected point")
        area.let_keys_scroll()
        self.sentence = _choice("Sentence", self._choose_sentence, least=8)
        self.sentence.setToolTip("Sentence to play, compare and keep")
        self.sentence.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.hear_button = ActionButton(can["point_hear"], _HEAR)
        self.a_button, self.b_button = ActionButton(can["point_a"], "Set &A"), ActionButton(can["point_b"], "Set &B")
        self.keep_button = ActionButton(can["point_keep"], "Add to Ta&kes")
        self.use_button = ActionButton(can["point_use"], "Use i&n Setup")
        self.only_button = build.button("", self.only_changed, "Show the selected points alone, or all")
        self.only_button.setCheckable(True)
        hearing = build.row(self.hear_button, self.a_button, self.b_button)
        using = build.row((self.keep_button, 1), (self.use_button, 1))
        build.fill(VBoxLayout(self), (self.title, (area, 1), self.sentence, hearing, using, self.only_button))
        self.setMinimumWidth(15 * self.fontMetrics().height())

    @property
    def sound(self) -> Sound | None:
        """The point's take to play, compare and keep."""
        if self.point is None or not self.point.sounds:
            return None
        return next((one for one in self.point.sounds if one.spoken == self._spoken), self.point.sounds[0])

    @property
    def text(self) -> str:
        """The details as rich text, including the differences, folded or not."""
        return self._text.text() + self.difference.text()

    def _unfold(self, shown: bool) -> None:
        self.difference.setVisible(shown and bool(self.difference.text()))
        self.fold.setArrowType(Qt.ArrowType.DownArrow if shown else Qt.ArrowType.RightArrow)

    def _show_difference(self, html: str, title: str) -> None:
        """Differences are folded at first; the state is kept between points."""
        self.difference.setText(html)
        self.fold.setText(f"Differences from {title}")
        self.fold.setVisible(bool(html))
        self._unfold(self.fold.isChecked())

    def _choose_sentence(self, row: int) -> None:
        self._spoken = self.sentence.itemData(row)
        self._show_hear()

    def show_point(
        self, shown: Scene, point: Point | None, count: int, other: Reference | None, only: bool, reason: Why | None
    ) -> None:
        """Show ``point``, its differences from ``other``, and the ``reason`` for its position; ``count`` points are
        selected, ``only``: no others are shown."""
        self.point = point
        colours = self._colours
        if point is None:
            self.title.setText(f"{count} points selected" if count else "No point selected")
            self._text.setText(_in_colour(_NOTHING, colours.muted))
            self._text.setAccessibleDescription(_NOTHING)
            self._show_difference("", "")
        else:
            self.title.setText(point.title)
            parts = [
                words.figures_html(point, shown.options, colours),
                _in_colour(words.origin(point), colours.muted),
                "" if reason is None else words.why_html(reason, shown.options, colours),
                _in_colour(words.doubt(point), colours.warning),
                *(_in_colour(one, colours.muted) for one in (*point.further, *point.machines)),
            ]
            self._text.setText("".join(f"<div style='margin-bottom:5px'>{one}</div>" for one in parts if one))
            self._text.setAccessibleDescription(words.plain(point, shown))
            if other is None:
                self._show_difference("", "")
            else:
                self._show_difference(words.difference_html(point, other, colours), other.title)
        self._show_sentences()
        self.keep_button.setVisible(point is None or point.kind == STUDY)
        self.only_button.setVisible(only or count > 1)
        with QSignalBlocker(self.only_button):
            self.only_button.setChecked(only)
        self.only_button.setText("Show all a&gain" if only else f"Show onl&y these {count}")

    def _show_sentences(self) -> None:
        sounds = self.point.sounds if self.point is not None else ()
        several = len({one.seed for one in sounds}) > 1
        titles = (f"{shown_name(one.voice)}{f', seed {one.seed}' if several else ''}: “{one.text}”" for one in sounds)
        chosen = None if self.sound is None else self.sound.spoken
        build.offer(self.sentence, zip(titles, (one.spoken for one in sounds), strict=True), chosen)
        self._show_hear()
        self.sentence.setVisible(len(sounds) > 1)

    def show_playing(self, take: str) -> None:
        self._playing = take
        self._show_hear()

    def _show_hear(self) -> None:
        stops = bool(self._playing) and self.sound is not None and self.sound.take == self._playing
        self.hear_button.set_text("Stop" if stops else _HEAR)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours


def _in_colour(text: str, colour: str) -> str:
    return f'<span style="color:{colour}">{escape(text)}</span>' if text else ""


_ALL = {"source": "All sources", "ghosts": "No ghosts", "model": "All models", "voice": "All voices"}
_BOXES = {"dominated": "Show &dominated", "intervals": "&Intervals", "ratios": "Ra&tios", "published": "&Published"}
"""Titles of the options, except logarithmic axes."""


class PlotOptionsLine(QWidget):
    chosen = Signal()

    def __init__(self, can: Mapping[str, Action]) -> None:
        super().__init__()
        self.own_axes = False
        self.x_choice = _choice("X axis", self._axes_chosen)
        self.y_choice = _choice("Y axis", self._axes_chosen)
        titles = _BOXES | {"log_x": "log", "log_y": "log"}
        self.boxes = {name: ActionBox(can[f"point_{name}"], title) for name, title in titles.items()}
        for box in self.boxes.values():
            box.toggled.connect(self.chosen)
        x = build.row(QLabel("X axis"), (self.x_choice, 1), self.boxes["log_x"])
        y = build.row(QLabel("Y axis"), (self.y_choice, 1), self.boxes["log_y"])
        row = build.fill(HBoxLayout(self), ((x, 1), (y, 1), *(self.boxes[name] for name in _BOXES)))
        for place in (1, 3):
            row.insertSpacing(place, NEAR)

    @property
    def options(self) -> PlotOptions:
        on = {name: box.isChecked() for name, box in self.boxes.items()}
        return PlotOptions(self.x_choice.currentData(), self.y_choice.currentData(), **on)

    def show_options(self, options: PlotOptions, known: Sequence[TradeoffAxis]) -> None:
        for combo, name in ((self.x_choice, options.x), (self.y_choice, options.y)):
            offered = known if any(one.name == name for one in known) else (axis(name), *known)
            build.offer(combo, [(_axis_title(one), one.name, one.definition) for one in offered], name)
            combo.setToolTip(_explained(name))
        with QSignalBlocker(self):
            for name, box in self.boxes.items():
                box.setChecked(getattr(options, name))

    def _axes_chosen(self) -> None:
        self.own_axes = True
        for combo in (self.x_choice, self.y_choice):
            combo.setToolTip(_explained(combo.currentData()))
        self.chosen.emit()


class FilterLine(QWidget):
    """Controls of a :class:`Filter` by source, model, voice and words; the legend filters by technique."""

    chosen = Signal()
    """The user changed a filter: see :meth:`applied_to`."""

    def __init__(self, clear: Action) -> None:
        super().__init__()
        self.combos = {name: _choice(title, self.chosen) for name, title in _ALL.items()}
        for name, combo in self.combos.items():
            if name != "ghosts":
                combo.currentTextChanged.connect(combo.setToolTip)
        search = build.clearable(QLineEdit(placeholderText="Filter by words"))
        tip = "Points whose title, model, voice or text contain every word"
        self.search = build.named(search, "Filter points by words", tip)
        self.search.setProperty(SEARCH, True)
        self.search.setMinimumWidth(6 * self.fontMetrics().height())
        self.search.textChanged.connect(self.chosen)
        self.clear_button = ActionButton(clear)
        combos = [(combo, 2) for combo in self.combos.values()]
        build.fill(HBoxLayout(self), (*combos, (self.search, 3), self.clear_button))

    def applied_to(self, chosen: Filter) -> Filter:
        wanted = {name: str(combo.currentData() or "") for name, combo in self.combos.items()}
        return chosen.with_origins({**wanted, "words": self.search.text()})

    def show_filter(self, chosen: Filter, there: Mapping[str, Sequence[str]]) -> Filter:
        """Show ``chosen`` and offer the values ``there``, by field. Returns ``chosen`` without missing values."""
        gone = [name for name, known in there.items() if getattr(chosen, name) not in known]
        chosen = chosen.with_origins(dict.fromkeys(gone, ""))
        if self.search.text() != chosen.words:
            with QSignalBlocker(self.search):
                self.search.setText(chosen.words)
        for name, combo in self.combos.items():
            known = ((shown_name(one).rpartition("/")[2] if name == "voice" else one, one) for one in there[name])
            build.offer(combo, [(_ALL[name], ""), *known], getattr(chosen, name))
            combo.setToolTip(combo.currentText())
        # Ghosts need a second source.
        self.combos["ghosts"].setVisible(len(there["ghosts"]) > 1)
        self.combos["ghosts"].setToolTip(
            "Draw another study's points faintly beneath the others, and a line from each to the same setting"
        )
        return chosen


def _choice(name: str, slot: Callable[..., object] | SignalInstance, least: int = 4) -> ComboBox:
    """``least``: letters that it has room for."""
    combo = build.narrow(build.named(ComboBox(), name), least)
    combo.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    combo.activated.connect(slot)
    return combo


def _axis_title(one: TradeoffAxis) -> str:
    return one.label + ARROWS.get(one.better, "")


def _explained(name: str) -> str:
    return f"{_axis_title(axis(name))}\n{axis(name).definition}"


class TradeoffLegend(Flow):
    """A click shows or hides the points of a technique; Ctrl-click hides all others."""

    hidden_changed = Signal(object)
    """Names of hidden techniques, as a frozenset."""

    def __init__(self) -> None:
        super().__init__()
        self.buttons: dict[str, QPushButton] = {}
        for name in (BASELINE, SERVERS, *in_order(one.name for one in techniques())):
            self._add(name)
        self._kinds = build.label(
            "filled: settings of studies · hollow: single takes · dashed ring: times of a busy machine", "muted"
        )
        self.add(self._kinds)

    @property
    def hidden(self) -> frozenset[str]:
        return frozenset(name for name, button in self.buttons.items() if not button.isChecked())

    @property
    def offered(self) -> dict[str, QPushButton]:
        return {name: button for name, button in self.buttons.items() if not button.isHidden()}

    def show_techniques(self, counts: Mapping[str, int], looks: PointStyles, mixed: bool) -> None:
        """Offer techniques, with numbers of points. ``mixed``: there are single takes and settings of studies."""
        for name in counts:
            if name not in self.buttons:  # Of another version.
                self._add(name)
        side = round(1.1 * self.fontMetrics().height())
        for name, button in self.buttons.items():
            button.setVisible(name in counts)
            if name in counts:
                title = _title(name)
                button.setText(f"{title} {counts[name]}")
                glyph = looks.server() if name == SERVERS else looks.glyph((name,) if name != BASELINE else ())
                button.setIcon(_icon(glyph, looks.colours, side, self.devicePixelRatioF()))
                button.setIconSize(QSize(side, side))
                button.setAccessibleName(f"{title}: {counted(counts[name], 'point', 'points')}")
        self._kinds.setVisible(mixed)
        colours = looks.colours
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
        self.arrange()

    def _add(self, name: str) -> None:
        """Add a permanent button, hidden while not needed."""
        tip = (
            f"Show or hide the points that use {_title(name) if name else 'no technique'}. With Ctrl: hide all other "
            "techniques. A point of two techniques has both colours"
            if name != SERVERS
            else "Show or hide measured servers. With Ctrl: hide all else"
        )
        button = build.button("", lambda _=False: self._clicked(name), tip, name=_title(name))
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
        for other, button in self.buttons.items():
            button.setChecked(other == name)
        self.hidden_changed.emit(self.hidden)


def _title(name: str) -> str:
    return {BASELINE: "Baseline", SERVERS: "Servers"}.get(name) or technique_title(name)


@lru_cache(maxsize=256)
def _icon(glyph: Glyph, colours: Colours, side: int, ratio: float) -> QIcon:
    """Cached by look: Qt keeps the pictures of every icon ever made (``resources/docs/endurance.md``)."""
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


class TradeoffFoot(QWidget):
    def __init__(self, can: Mapping[str, Action]) -> None:
        super().__init__()
        self.counts, self.remarks = build.label(look="muted", name="What is shown"), QLabel()
        self.remarks.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.everything_button = ActionButton(can["point_everything"])
        self.everything_button.hide()
        self.everything_button.setStyleSheet("padding: 0.1em 0.45em;")
        tip = "Walk along the front, from left to right"
        self.slider = build.named(Slider(Qt.Orientation.Horizontal, pageStep=1), "Along the front", tip)
        self.slider.setMinimumWidth(6 * self.fontMetrics().height())
        self.slider.hide()
        self.mark_button = ActionButton(can["front_mark"])
        self.show_direction(True)
        self.mark_button.hide()
        self.play_button = ActionButton(can["front_play"])
        left = self.counts, self.everything_button, (self.remarks, 1)
        row = build.fill(HBoxLayout(self), (*left, self.slider, self.mark_button, self.play_button))
        # Keep the plot's size when the button appears.
        row.addStrut(self.everything_button.sizeHint().height())

    def show_remarks(self, cautions: Sequence[str], others: Sequence[str] = ()) -> None:
        sentences = (*cautions, *others)
        self.remarks.setText("  ".join(sentences))
        self.remarks.setToolTip("\n".join(sentences))
        self.remarks.setAccessibleName(self.remarks.text())
        set_look(self.remarks, "warning" if cautions else "muted")

    def show_direction(self, faster: bool) -> None:
        self.mark_button.set_text("Now I hear it" if faster else "I no longer hear it")
