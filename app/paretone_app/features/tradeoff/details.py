"""Details of the selected point: figures, difference of its setting, and actions."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from paretone.models.voices import shown_name
from paretone_app.features.tradeoff.scene import Scene
from paretone_app.features.tradeoff.words import (
    Reference,
    Why,
    difference_html,
    doubt,
    figures_html,
    origin,
    plain,
    why_html,
)
from paretone_app.results.points import STUDY, TAKE, Point, Sound
from paretone_app.shell.colours import Colours
from paretone_app.widgets import build
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.layouts import GridLayout, HBoxLayout, Scrolled, VBoxLayout

_NOTHING = (
    "Click a point to hear it and to see its figures here. Left and Right walk along the front; drag a rectangle "
    "to select points."
)


class TradeoffDetails(QWidget):
    """One point, or a selection of several."""

    hear_wanted = Signal()
    side_wanted = Signal(str)
    """Use the point as ``"A"`` or ``"B"``."""
    keep_wanted = Signal()
    """Add the point's take to the library."""
    use_wanted = Signal()
    """Load the point's setting into Setup."""
    only_wanted = Signal(bool)
    """Show only the selected points, or all again."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._colours = colours
        self._point: Point | None = None
        self._spoken: tuple[str, str, int] | None = None
        self._title = build.words("title")
        self._text = QLabel(wordWrap=True, textFormat=Qt.TextFormat.RichText)
        self._text.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setAccessibleName("Selected point")
        self._difference = build.words(rich=True, selectable=True)
        self._difference.hide()
        self._fold = QToolButton(arrowType=Qt.ArrowType.RightArrow)
        self._fold.setCheckable(True)
        self._fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._fold.setProperty("look", "quiet")
        self._fold.toggled.connect(self._unfold)
        area = build.named(Scrolled(build.column(self._text, self._fold, (self._difference, 1))), "Selected point")
        area.let_keys_scroll()
        self.sentence = build.named(ComboBox(), "Sentence", "Sentence to play, compare and keep")
        self.sentence.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.sentence.setMinimumContentsLength(8)
        self.sentence.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.sentence.activated.connect(self._choose_sentence)
        self._playing = ""
        """Id of the take that plays."""
        self.hear_button = self._button("Hear", self.hear_wanted.emit)
        self.a_button = self._button("Set &A", lambda: self.side_wanted.emit("A"))
        self.b_button = self._button("Set &B", lambda: self.side_wanted.emit("B"))
        self.keep_button = self._button("Add to Ta&kes", self.keep_wanted.emit)
        self.use_button = self._button("Use i&n Setup", self.use_wanted.emit)
        self.only_button = self._button("Show onl&y these", lambda: self.only_wanted.emit(self.only_button.isChecked()))
        self.only_button.setCheckable(True)
        top = HBoxLayout()
        for one in (self.hear_button, self.a_button, self.b_button):
            top.addWidget(one)
        grid = GridLayout()
        grid.addLayout(top, 0, 0, 1, 2)
        grid.addWidget(self.keep_button, 1, 0)
        grid.addWidget(self.use_button, 1, 1)
        grid.addWidget(self.only_button, 2, 0, 1, 2)
        build.fill(VBoxLayout(self), (self._title, (area, 1), self.sentence, grid))
        self.setMinimumWidth(15 * self.fontMetrics().height())

    @staticmethod
    def _button(title: str, do: Callable[[], object]) -> QPushButton:
        button = build.button(title, do)
        return button

    @property
    def point(self) -> Point | None:
        """The point that is shown."""
        return self._point

    @property
    def sound(self) -> Sound | None:
        """Which of the point's takes is heard, compared and kept."""
        if self._point is None or not self._point.sounds:
            return None
        return next((one for one in self._point.sounds if one.spoken == self._spoken), self._point.sounds[0])

    @property
    def text(self) -> str:
        """The details, as rich text, with the differences whether they are folded or not."""
        return self._text.text() + self._difference.text()

    @Slot(bool)
    def _unfold(self, shown: bool) -> None:
        self._difference.setVisible(shown and bool(self._difference.text()))
        self._fold.setArrowType(Qt.ArrowType.DownArrow if shown else Qt.ArrowType.RightArrow)

    def _show_difference(self, html: str, title: str) -> None:
        """Differences are folded until they are asked for, and stay as they are from point to point."""
        self._difference.setText(html)
        self._fold.setText(f"Differences from {title}")
        self._fold.setVisible(bool(html))
        self._unfold(self._fold.isChecked())

    def _choose_sentence(self, row: int) -> None:
        self._spoken = self.sentence.itemData(row)
        self._show_hear()

    def show_point(
        self,
        shown: Scene,
        point: Point | None,
        count: int,
        other: Reference | None,
        only: bool,
        reason: Why | None = None,
    ) -> None:
        """Show ``point`` compared with ``other``, and the ``reason`` why it is where it is; ``count`` points are
        selected, and are the ``only`` ones shown or not."""
        self._point = point
        colours = self._colours
        if point is None:
            self._title.setText(f"{count} points selected" if count else "No point selected")
            self._text.setText(f'<span style="color:{colours.muted}">{_NOTHING}</span>')
            self._text.setAccessibleDescription(_NOTHING)
            self._show_difference("", "")
        else:
            self._title.setText(point.title)
            parts = [
                figures_html(point, shown.options, colours),
                f'<span style="color:{colours.muted}">{escape(origin(point))}</span>',
            ]
            self._show_difference(
                "" if other is None else difference_html(point, other, colours), "" if other is None else other.title
            )
            if reason is not None:
                parts.append(why_html(reason, shown.options, colours))
            lines = point.remarks if point.kind != TAKE else ()
            if doubt(point):
                parts.append(f'<span style="color:{colours.warning}">{escape(doubt(point))}</span>')
            parts += [f'<span style="color:{colours.muted}">{escape(one)}</span>' for one in (*lines, *point.machines)]
            self._text.setText("".join(f"<div style='margin-bottom:5px'>{one}</div>" for one in parts if one))
            self._text.setAccessibleDescription(plain(point, shown))
        self._show_sentences()
        self.only_button.setVisible(only or count > 1)
        with QSignalBlocker(self.only_button):
            self.only_button.setChecked(only)
        self.only_button.setText("Show all a&gain" if only else f"Show onl&y these {count}")

    def _show_sentences(self) -> None:
        sounds = self._point.sounds if self._point is not None else ()
        with QSignalBlocker(self.sentence):
            self.sentence.clear()
            for one in sounds:
                seed = f", seed {one.seed}" if len({each.seed for each in sounds}) > 1 else ""
                self.sentence.addItem(f"{shown_name(one.voice)}{seed}: “{one.text}”", one.spoken)
            chosen = self.sound
            if chosen is not None:
                self.sentence.setCurrentIndex(sounds.index(chosen))
        self._show_hear()
        self.sentence.setVisible(len(sounds) > 1)

    def show_playing(self, take: str) -> None:
        """Which take plays, by its id; ``""``: none."""
        self._playing = take
        self._show_hear()

    def _show_hear(self) -> None:
        stops = bool(self._playing) and self.sound is not None and self.sound.take == self._playing
        self.hear_button.setText("Stop" if stops else "Hear")

    def set_reasons(self, hear: str, keep: str, use: str) -> None:
        """Why the point cannot be heard or compared, brought into the library, or loaded into Setup, as sentences, or
        ``""``."""
        silent = "Select a point first." if self._point is None else ""
        if self._point is not None and self._point.published:
            silent = "Published results have no audio."
        elif self._point is not None and not self._point.sounds:
            silent = "This setting has no finished take."
        tips = (
            (self.hear_button, silent or hear, "Play the point’s take; again: stop (Enter or Space in the plot)"),
            (self.a_button, silent, "Compare with the point’s take as A (A in the plot)"),
            (self.b_button, silent, "Compare with the point’s take as B (B in the plot)"),
            (self.keep_button, silent or keep, "Copy the study’s take into Takes"),
            (self.use_button, silent or use, "Load the point’s setting into Setup, with its strategy table"),
        )
        for button, reason, tip in tips:
            build.allow(button, reason, tip)
        self.keep_button.setVisible(self._point is None or self._point.kind == STUDY)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme; the point is shown again by its owner."""
        self._colours = colours
