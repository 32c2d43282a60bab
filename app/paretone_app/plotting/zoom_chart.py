"""A chart of which a section can be shown.

Mouse: the wheel zooms (on an axis, only that axis); the middle button or a drag on an axis moves the section. Keys:
plus, minus and 0 zoom, and the arrows with Ctrl move the section.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from paretone.figures.scales import Scale
from paretone_app.plotting.chart import Chart
from paretone_app.plotting.frame import Frame
from paretone_app.shell.colours import Colours

Sections = tuple[Scale | None, Scale | None]
"""The shown part of the X axis and of the Y axis; ``None`` for all."""
EVERYTHING: Sections = (None, None)
Wholes = tuple[Scale, Scale]


def zoomed(frame: Frame, wholes: Wholes, factor: float, place: QPointF) -> Sections:
    """``factor`` times as much, where what is at ``place`` stays there; on an axis, only that one changes."""
    shares = (min(max(share, 0.0), 1.0) for share in _shares(frame, place))
    scales = zip((frame.across, frame.up), shares, wholes, axes_at(frame, place), strict=True)
    return _sections(
        wholes, (scale.zoomed(factor, share, whole) if on else scale for scale, share, whole, on in scales)
    )


def moved(frame: Frame, wholes: Wholes, across: float, up: float) -> Sections:
    """Sections moved by shares of the axes' lengths."""
    scales = zip((frame.across, frame.up), (across, up), wholes, strict=True)
    return _sections(wholes, (scale.moved(by, whole) for scale, by, whole in scales))


def with_place(frame: Frame, wholes: Wholes, place: QPointF) -> Sections:
    """Sections of the same size that contain a place, centred on axes where it was outside."""
    return moved(frame, wholes, *(0.0 if 0.0 <= share <= 1.0 else share - 0.5 for share in _shares(frame, place)))


def axes_at(frame: Frame, place: QPointF) -> tuple[bool, bool]:
    """Axes that the mouse acts on at a place: both, or the one below or left of it."""
    below, left = place.y() > frame.area.bottom(), place.x() < frame.area.left()
    return below or not left, left or not below


def _shares(frame: Frame, place: QPointF) -> tuple[float, float]:
    area = frame.area
    return (place.x() - area.left()) / area.width(), (area.bottom() - place.y()) / area.height()


def _sections(wholes: Wholes, scales: Iterable[Scale]) -> Sections:
    across, up = (None if scale == whole else scale for scale, whole in zip(scales, wholes, strict=True))
    return across, up


NEARER = (Qt.Key.Key_Plus, Qt.Key.Key_Equal)
_ZOOMS = (*NEARER, Qt.Key.Key_Minus, Qt.Key.Key_0)
_SHIFTS = {
    Qt.Key.Key_Left: (-1.0, 0.0),
    Qt.Key.Key_Right: (1.0, 0.0),
    Qt.Key.Key_Up: (0.0, 1.0),
    Qt.Key.Key_Down: (0.0, -1.0),
}
"""Shifts of the section by the keys with Ctrl."""
_ZOOM = 1.5
_WHEEL_ZOOM = 1.2
"""Zoom factor of one notch of the wheel."""
_SHIFT = 0.2
"""Share of the section's length."""


class ZoomChart(Chart):
    """Subclasses say what there is to see, draw a section of it, and pass on the mouse: see :meth:`begins_move`."""

    section_changed = Signal()
    """Another section is shown, or everything: see :attr:`sections`."""

    both_axes = True
    """Whether both axes have sections, or only the X axis."""

    def __init__(self, name: str, colours: Colours, parent: QWidget | None = None, on_paper: bool = False) -> None:
        super().__init__(name, colours, parent, on_paper)
        self._sections: Sections = EVERYTHING
        self._moved_from: QPointF | None = None
        self._moves = (False, False)
        """Which axes a drag from there moves."""

    # --- What subclasses say -----------------------------------------------------------------------------------------
    @property
    def wholes(self) -> Wholes:
        """Scales of the X axis and the Y axis, with room for everything."""
        raise NotImplementedError

    def draw_section(self) -> None:
        """Draw the part of the axes that :attr:`sections` says."""
        raise NotImplementedError

    def middle(self) -> QPointF:
        """Point that keys zoom around."""
        return self.frame.area.center()

    # --- Sections ----------------------------------------------------------------------------------------------------
    @property
    def sections(self) -> Sections:
        """Which part of the axes is shown."""
        return self._sections

    @property
    def zoomed(self) -> bool:
        """Whether it is not everything."""
        return self._sections != EVERYTHING

    def show_sections(self, sections: Sections) -> None:
        """Show this part of the axes."""
        sections = sections if self.both_axes else (sections[0], None)
        if sections == self._sections:
            return
        self._sections = sections
        self.draw_section()
        self.refresh()
        self.section_changed.emit()

    def zoom(self, factor: float, place: QPointF | None = None) -> None:
        """Show ``factor`` times as much of the axes; what is at ``place`` stays there, without one what is at
        :meth:`middle`."""
        self.show_sections(zoomed(self.frame, self.wholes, factor, self.middle() if place is None else place))

    def zoom_in(self) -> None:
        """By one step."""
        self.zoom(1 / _ZOOM)

    def zoom_out(self) -> None:
        """By one step."""
        self.zoom(_ZOOM)

    def move_section(self, across: float, up: float) -> None:
        """Show what lies so much of the section's lengths further on."""
        self.show_sections(moved(self.frame, self.wholes, across, up))

    def show_everything(self) -> None:
        """Show all of both axes."""
        self.show_sections(EVERYTHING)

    def bring_into_view(self, place: QPointF) -> None:
        """Move the section to what is at ``place``, which may lie beyond it."""
        self.show_sections(with_place(self.frame, self.wholes, place))

    # --- Mouse and keys ----------------------------------------------------------------------------------------------
    def wheelEvent(self, event: QWheelEvent) -> None:
        notches = event.angleDelta().y() / 120
        if notches:
            self.zoom(_WHEEL_ZOOM**-notches, event.position())
        event.accept()

    def begins_move(self, event: QMouseEvent, anywhere: bool = False) -> bool:
        """Whether a press begins to move the section; then the rest of the drag is the section's, too. ``anywhere``:
        the left button moves it in the plot as well as on an axis."""
        left = event.button() == Qt.MouseButton.LeftButton and (anywhere or self._on_axis(event))
        if not self.zoomed or not (left or event.button() == Qt.MouseButton.MiddleButton):
            return False
        self._moved_from, self._moves = event.position(), axes_at(self.frame, event.position())
        self.show_shape(event)
        return True

    def goes_on_moving(self, event: QMouseEvent) -> bool:
        """Whether the mouse moves the section."""
        if self._moved_from is None:
            return False
        area, by = self.frame.area, event.position() - self._moved_from
        self._moved_from = event.position()
        across, up = self._moves
        self.move_section(-across * by.x() / max(1.0, area.width()), up * by.y() / max(1.0, area.height()))
        return True

    def ends_move(self, event: QMouseEvent) -> bool:
        """Whether a release ends moving the section."""
        if self._moved_from is None:
            return False
        self._moved_from = None
        self.show_shape(event)
        return True

    def show_shape(self, event: QMouseEvent) -> None:
        """The effect of a drag, as the shape of the mouse's cursor."""
        shape = Qt.CursorShape.ArrowCursor
        if self._moved_from is not None and all(self._moves):
            shape = Qt.CursorShape.ClosedHandCursor
        elif self.zoomed and self._on_axis(event):
            across = axes_at(self.frame, event.position())[0]
            shape = Qt.CursorShape.SizeHorCursor if across else Qt.CursorShape.SizeVerCursor
        self.setCursor(shape)

    def _on_axis(self, event: QMouseEvent) -> bool:
        return not all(axes_at(self.frame, event.position()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if not _zooms(event):
            super().keyPressEvent(event)
        elif key in _SHIFTS:
            self.move_section(*(_SHIFT * by for by in _SHIFTS[key]))
        elif key in NEARER:
            self.zoom_in()
        elif key == Qt.Key.Key_Minus:
            self.zoom_out()
        else:
            self.show_everything()

    def _is_own(self, event: QKeyEvent) -> bool:
        return _zooms(event) or super()._is_own(event)


def _zooms(event: QKeyEvent) -> bool:
    """Whether a key shows another section."""
    key, modifiers = Qt.Key(event.key()), event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    if modifiers == Qt.KeyboardModifier.ControlModifier:
        return key in _SHIFTS
    if modifiers == Qt.KeyboardModifier.ShiftModifier:
        # On many keyboards plus is a letter with Shift.
        return key in NEARER
    return not modifiers and key in _ZOOMS
