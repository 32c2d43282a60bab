"""Short functions to build panels: labels, buttons, columns, splitters. Used as ``build.button(…)``."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from PySide6.QtCore import QPropertyAnimation, QSignalBlocker, QSize, Qt, SignalInstance
from PySide6.QtGui import QPainter, QPaintEvent, QTextDocumentFragment
from PySide6.QtWidgets import (
    QAbstractButton,
    QBoxLayout,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QLabel,
    QLayout,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QSplitter,
    QToolButton,
    QWidget,
)

from paretone_app.shell.theme import GAP
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout

Do = Callable[..., object] | SignalInstance
Part = QWidget | QLayout
Placed = Part | tuple[Part, int] | int
Offered = tuple[str, object] | tuple[str, object, str]
"""An entry of a choice: title, value and, if wanted, tooltip."""
Built = TypeVar("Built", bound=QWidget)
Line = TypeVar("Line", bound=QLineEdit)
Box = TypeVar("Box", bound=QComboBox)


_SPACE, _FIXED_SPACE = " %", "\N{NO-BREAK SPACE}%"


class Label(QLabel):
    """Screen readers read its text after its name, where Qt's has one only. No line begins with a percent sign."""

    def setText(self, text: str) -> None:
        super().setText(text.replace(_SPACE, _FIXED_SPACE) if self.wordWrap() else text)
        name, rich = self.accessibleName(), self.textFormat() is Qt.TextFormat.RichText
        plain = QTextDocumentFragment.fromHtml(text).toPlainText() if rich else text
        self.setAccessibleDescription(plain if name and plain not in name else "")

    def text(self) -> str:
        return super().text().replace(_FIXED_SPACE, _SPACE)

    def clear(self) -> None:
        self.setText("")


class Yielding(Label):
    """A plain-text label, elided if space is short."""

    def paintEvent(self, event: QPaintEvent) -> None:
        room = self.contentsRect()
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, room.width())
        with QPainter(self) as painter:
            painter.setPen(self.palette().color(self.foregroundRole()))
            painter.drawText(room, self.alignment().value | Qt.TextFlag.TextSingleLine.value, shown)


def label(
    text: str = "",
    look: str = "",
    *,
    name: str = "",
    tip: str = "",
    wrapped: bool = False,
    rich: bool = False,
    selectable: bool = False,
    yielding: bool = False,
) -> Label:
    """``look``: see :func:`paretone_app.shell.theme.style_sheet`; ``name``: for screen readers; ``selectable``: by
    mouse, for copying; ``yielding``: cut off (plain text elided) rather than widen its panel."""
    made = Yielding() if yielding and not rich else Label(wordWrap=wrapped)
    if look:
        made.setProperty("look", look)
    if rich:
        made.setTextFormat(Qt.TextFormat.RichText)
    if selectable:
        made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if yielding:
        made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    named(made, name, tip)
    made.setText(text)
    return made


def words(look: str = "", *, name: str = "", tip: str = "", rich: bool = False, selectable: bool = False) -> Label:
    return label("", look, name=name, tip=tip, wrapped=True, rich=rich, selectable=selectable)


def button(text: str, do: Do | None = None, tip: str = "", *, name: str = "") -> QPushButton:
    """``do``: called on click; ``name``: for screen readers, if the text is not enough."""
    made = QPushButton(text)
    if do is not None:
        made.clicked.connect(do)
    return named(made, name, tip)


def named(one: Built, name: str = "", tip: str = "") -> Built:
    """``one``, with a name for screen readers and a tooltip."""
    one.setAccessibleName(name)
    one.setToolTip(tip)
    return one


def clearable(line: Line) -> Line:
    """``line`` with a button that clears it, at once: Qt fades that in and out for 160 ms."""

    def end_fade() -> None:
        for fade in line.findChildren(QPropertyAnimation):
            fade.setCurrentTime(fade.duration())

    line.setClearButtonEnabled(True)
    line.textChanged.connect(end_fade)
    return line


def combo(name: str, entries: Iterable[Offered] = (), tip: str = "") -> QComboBox:
    """A choice among ``entries``; ``name`` is for screen readers."""
    made = ComboBox()
    offer(made, entries, None)
    return named(made, name, tip)


def offer(combo: QComboBox, entries: Iterable[Offered], chosen: object) -> None:
    """Offer ``entries`` instead, with ``chosen`` shown, or else the first. Emits nothing."""
    with QSignalBlocker(combo):
        combo.clear()
        for title, value, *tip in entries:
            combo.addItem(title, value)
            combo.setItemData(combo.count() - 1, tip[0] if tip else "", Qt.ItemDataRole.ToolTipRole)
        combo.setCurrentIndex(max(0, combo.findData(chosen)))


def fill(layout: QBoxLayout, parts: Sequence[Placed], margins: tuple[int, int, int, int] = (0, 0, 0, 0)) -> QBoxLayout:
    """Add ``parts``, optionally with their stretch, to ``layout``; a number alone is a stretch without content."""
    layout.setContentsMargins(*margins)
    for one in parts:
        part, stretch = one if isinstance(one, tuple) else (one, 0)
        if isinstance(part, int):
            layout.addStretch(part)
        elif isinstance(part, QWidget):
            layout.addWidget(part, stretch)
        else:
            layout.addLayout(part, stretch)
    return layout


def column(*parts: Placed) -> QWidget:
    made = QWidget()
    fill(VBoxLayout(made), parts)
    return made


def show_share(bar: QProgressBar, share: float) -> None:
    """In thousandths: bytes of large files are more than a bar can count."""
    bar.setRange(0, 1000)
    bar.setValue(round(1000 * share))


def row(*parts: Placed) -> QWidget:
    made = QWidget()
    fill(HBoxLayout(made), parts)
    return made


def above_close(dialog: QDialog, *parts: Placed, cancels: bool = False) -> QDialogButtonBox:
    """Lay out ``parts`` above a row of buttons, which is returned: with one to close, or one that ``cancels``."""
    kinds = QDialogButtonBox.StandardButton
    buttons = QDialogButtonBox(kinds.Cancel if cancels else kinds.Close)
    buttons.rejected.connect(dialog.reject)
    fill(VBoxLayout(dialog), (*parts, buttons), (GAP,) * 4)
    return buttons


def show(dialog: QDialog) -> None:
    """Open ``dialog`` without blocking; it is deleted when it closes."""
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


def narrow(box: Box, letters: int) -> Box:
    """``box``, with room for a number of ``letters``: it cuts longer texts off instead of widening the panel."""
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(letters)
    return box


def keeping_room(one: Built) -> Built:
    """``one``, whose room stays while it is hidden, so that nothing else moves."""
    policy = one.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    one.setSizePolicy(policy)
    return one


def hold_width(button: QAbstractButton, *texts: str) -> None:
    """Keep ``button`` wide enough for all ``texts``, so that it moves nothing; once the style sheet is in force."""
    shown = button.text()
    button.ensurePolished()
    for text in texts:
        button.setText(text)
        button.setMinimumWidth(max(button.minimumWidth(), button.sizeHint().width()))
    button.setText(shown)


def title_of(text: str, field: QWidget) -> QLabel:
    """The label of ``field``, which its mnemonic focuses."""
    made = QLabel(text)
    made.setBuddy(field)
    return made


def splitter(
    orientation: Qt.Orientation, parts: Sequence[tuple[QWidget, int]], sizes: Sequence[int], handle: int = 0
) -> QSplitter:
    """``parts`` with their stretch, of these ``sizes``; none can be collapsed. ``handle``: gap in pixels."""
    made = QSplitter(orientation, childrenCollapsible=False)
    if handle:
        made.setHandleWidth(handle)
    for number, (one, stretch) in enumerate(parts):
        made.addWidget(one)
        made.setStretchFactor(number, stretch)
    made.setSizes(list(sizes))
    return made


def tile(title: str, name: str, look: str, size: QSize) -> QToolButton:
    """A checkable button with a picture of this ``size`` above its ``title``."""
    made = named(QToolButton(), name)
    made.setText(title)
    made.setCheckable(True)
    made.setIconSize(size)
    made.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
    made.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    made.setProperty("look", look)
    return made


def cross_button(name: str, tip: str) -> QToolButton:
    """A quiet ✕ button; ``name`` is for screen readers."""
    made = named(QToolButton(), name, tip)
    made.setText("✕")
    made.setProperty("look", "quiet")
    return made
