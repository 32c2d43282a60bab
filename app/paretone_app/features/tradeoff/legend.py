"""Which techniques the trade-off view shows, and what they look like: a button each that shows or hides its points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QPushButton, QWidget

from paretone.figures.glyphs import FILLED, HOLLOW, Glyph
from paretone.techniques import techniques
from paretone.techniques.registry import in_order
from paretone_app.features.tradeoff.model.filtering import BASELINE
from paretone_app.features.tradeoff.model.points import technique_title
from paretone_app.features.tradeoff.styles import PointStyles
from paretone_app.plotting.glyphs import paint_glyph
from paretone_app.shell.colours import Colours
from paretone_app.widgets import build
from paretone_app.widgets.flow_layout import Flow

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
