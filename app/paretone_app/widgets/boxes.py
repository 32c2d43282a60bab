"""Boxes and sliders that change only on purpose: the mouse wheel scrolls their container, except with Ctrl; an invalid
number is refused with a sentence; comma and point are accepted. The window uses these, never Qt's own."""

import re
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QLocale, QPoint, Qt
from PySide6.QtGui import QKeyEvent, QPaintEvent, QShowEvent, QStandardItem, QStandardItemModel, QValidator, QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QGroupBox,
    QLabel,
    QSlider,
    QSpinBox,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QToolTip,
    QWidget,
)

from paretone_app.numbers import general, localised


def entry(combo: QComboBox, value: object) -> QStandardItem:
    """The entry of ``value`` in a combo box with Qt's standard model, to disable it or set its tooltip. Raises
    :class:`TypeError` for another model."""
    model = combo.model()
    if not isinstance(model, QStandardItemModel):
        raise TypeError(f"A {type(model).__name__} has no entries that can be disabled.")
    return model.item(combo.findData(value))


_TYPED = re.compile(r"[-+]?\d*(?:[.,](?P<places>\d*))?$", re.ASCII)
"""A number, complete or not."""


if TYPE_CHECKING:
    _Widget = QWidget
else:
    _Widget = object


class OnPurpose(_Widget):
    """Changes by click, by key, or by the wheel with Ctrl; the wheel alone scrolls, even with the focus here."""

    def __init__(self, *arguments: Any, **properties: Any) -> None:
        super().__init__(*arguments, **properties)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            plain = event.clone()  # With Ctrl, Qt takes ten steps or a page per notch.
            plain.setModifiers(Qt.KeyboardModifier.NoModifier)
            super().wheelEvent(plain)
            event.accept()
        else:
            event.ignore()


class ComboBox(OnPurpose, QComboBox):
    """A choice, elided if space is short. On Linux its name for screen readers is the chosen entry, and the label it is
    the buddy of describes it. Without such a label, it gets one for screen readers only."""

    _label: QLabel | None = None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave Ctrl shortcuts to the window: Qt would search by letter."""
        commands = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.MetaModifier
        if event.modifiers() & commands and event.text():
            event.ignore()
        else:
            super().keyPressEvent(event)

    @property
    def shown(self) -> str:
        return self._elided(self._option())

    def paintEvent(self, event: QPaintEvent) -> None:
        option = self._option()
        option.currentText = self._elided(option)
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def _option(self) -> QStyleOptionComboBox:
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        return option

    def _elided(self, option: QStyleOptionComboBox) -> str:
        field = QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, field, self).width()
        drawing = 0 if option.currentIcon.isNull() else option.iconSize.width() + 4
        return self.fontMetrics().elidedText(option.currentText, Qt.TextElideMode.ElideRight, room - drawing)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        around = self.parentWidget()
        if self._label is None and around is not None:
            labels = around.findChildren(QLabel, options=Qt.FindChildOption.FindDirectChildrenOnly)
            titled = isinstance(around, QGroupBox) and around.title() == self.accessibleName()
            if not titled and not any(one.buddy() is self for one in labels):
                self._label = QLabel(around)
                self._label.hide()
                self._label.setBuddy(self)
        if self._label is not None:
            self._label.setText(self.accessibleName())


class Slider(OnPurpose, QSlider):
    """A slider; arguments as Qt's."""


class SpinBox(OnPurpose, QSpinBox):
    def __init__(self, *arguments: Any, **properties: Any) -> None:
        super().__init__(*arguments, **properties)
        self.setKeyboardTracking(False)  # Otherwise partial input would be accepted.

    def fixup(self, text: str) -> str:
        """Say why ``text`` is not accepted; Qt then restores the last value."""
        _refuse(self, text, f"{self.minimum()}", f"{self.maximum()}", f"{self.value()}")
        return text


class DoubleSpinBox(OnPurpose, QDoubleSpinBox):
    def __init__(self, *arguments: Any, **properties: Any) -> None:
        super().__init__(*arguments, **properties)
        self.setKeyboardTracking(False)  # Otherwise partial input would be accepted.
        self.setLocale(QLocale.c())

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Accept everything that further typing can complete, with a decimal comma or point."""
        typed = _TYPED.match(_bare(self, text))
        if typed is None or len(typed["places"] or "") > self.decimals():
            return QValidator.State.Invalid, text, position
        value = _number(typed.string)
        if value is None or not self.minimum() <= value <= self.maximum():
            return QValidator.State.Intermediate, text, position
        return QValidator.State.Acceptable, text, position

    def textFromValue(self, value: float) -> str:
        return localised(super().textFromValue(value))

    def valueFromText(self, text: str) -> float:
        value = _number(_bare(self, text))
        return self.value() if value is None else value

    def fixup(self, text: str) -> str:
        """Say why ``text`` is not accepted; Qt then restores the last value."""
        last = localised(f"{self.value():.{self.decimals()}f}")
        _refuse(self, text, general(self.minimum()), general(self.maximum()), last)
        return text


def _bare(box: QSpinBox | QDoubleSpinBox, text: str) -> str:
    """The input without prefix, suffix and spaces."""
    return text.removeprefix(box.prefix()).removesuffix(box.suffix()).strip().replace("−", "-")


def _number(typed: str) -> float | None:
    """The number; ``None`` if incomplete."""
    try:
        return float(typed.replace(",", "."))
    except ValueError:
        return None


def _refuse(box: QSpinBox | QDoubleSpinBox, text: str, least: str, greatest: str, last: str) -> None:
    """Show at ``box`` why ``text`` is not accepted."""
    typed = _bare(box, text)
    number = _number(typed)
    why = f"{typed} is not between {least} and {greatest}" if number is not None else f"“{typed}” is no number"
    if box.isVisible():
        sentence = f"{why}; the value stays {last}{box.suffix()}."
        QToolTip.showText(box.mapToGlobal(QPoint(0, box.height())), sentence, box)
