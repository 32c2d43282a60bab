"""Layouts with the window's gaps, and areas that scroll, wrap or shrink with their content."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QFormLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from paretone_app.shell.theme import GAP, NEAR, set_look
from paretone_app.widgets.screen_readers import GROUP

if TYPE_CHECKING:
    _Layout = QLayout
else:
    _Layout = object


class _OnGrid(_Layout):
    """Layout with the standard gap between items and, if it is a widget's, around them."""

    def __init__(self, *parent: QWidget) -> None:
        super().__init__(*parent)
        if parent:
            self.setContentsMargins(GAP, GAP, GAP, GAP)
        self.setSpacing(GAP)


class VBoxLayout(_OnGrid, QVBoxLayout):
    """One below the other."""


class HBoxLayout(_OnGrid, QHBoxLayout):
    """Side by side."""


class GridLayout(_OnGrid, QGridLayout):
    """In rows and columns."""


class FormLayout(_OnGrid, QFormLayout):
    """Labels, and fields as wide as there is room, whatever the style."""

    def __init__(self, *parent: QWidget) -> None:
        super().__init__(*parent)
        self.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)


class Flow(QWidget):
    """A row of widgets that wraps like words. Not a :class:`QLayout`: items of layouts written in Python leave wrappers
    when Qt deletes them, and these end other objects of the window."""

    def __init__(self, spacing: int = NEAR, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spacing = spacing
        self._row: list[QWidget] = []
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def add(self, widget: QWidget) -> None:
        """Append ``widget`` permanently; hide it while not needed."""
        widget.setParent(self)
        self._row.append(widget)

    def arrange(self) -> None:
        """Update the positions after widgets were shown, hidden or changed."""
        self._arrange(self.width(), move=True)
        self.updateGeometry()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._arrange(width, move=False)

    def sizeHint(self) -> QSize:
        width = max((one.sizeHint().width() for one in self._shown()), default=0)
        return QSize(width, self.heightForWidth(max(width, self.width())))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._arrange(self.width(), move=True) != self.height():
            self.updateGeometry()

    def event(self, event: QEvent) -> bool:
        """Rearrange when contents change size, such as by styling: the layout around would cut the last line off."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.arrange()
        return super().event(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.arrange()

    def _shown(self) -> list[QWidget]:
        return [one for one in self._row if not one.isHidden()]

    def _arrange(self, width: int, move: bool) -> int:
        """Arrange everything in lines of this width, centred in each; returns the height."""
        x = y = 0
        hints = [(one, one.sizeHint()) for one in self._shown()]
        line = max((hint.height() for _, hint in hints), default=0)
        for one, hint in hints:
            if x and x + hint.width() > width:
                x, y = 0, y + line + self._spacing
            if move:
                one.setGeometry(x, y + (line - hint.height()) // 2, min(hint.width(), width), hint.height())
            x += hint.width() + self._spacing
        return y + line


class Scrolled(QScrollArea):
    """Scrolls ``content`` vertically, at full width."""

    screen_role = GROUP

    def __init__(self, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent, widgetResizable=True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        # The focus goes to its controls and scrolls them into view.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.content = content
        self.setWidget(content)

    def let_keys_scroll(self, there: bool = True) -> None:
        """Make it a Tab stop, so that the arrow keys scroll it."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if there else Qt.FocusPolicy.NoFocus)
        set_look(self, "reached" if there else "")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.content and event.type() is QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()
        super().resizeEvent(event)

    def _fit(self) -> None:
        """Make the content as high as its lines are at this width: Qt takes more for wrapped text, and scrolls."""
        layout = self.content.layout()
        if layout is not None and layout.hasHeightForWidth():
            self.content.setMinimumHeight(layout.heightForWidth(self.viewport().width()))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # Qt does not lay out widgets again that grew while hidden: they would be squeezed.
        layout = self.content.layout()
        if layout is not None:
            layout.invalidate()
        QCoreApplication.postEvent(self, QEvent(QEvent.Type.LayoutRequest))


def bring_into_view(control: QWidget) -> None:
    """Scroll the areas around ``control`` as little as needed to show it."""
    parent = control.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(control)
        parent = parent.parentWidget()


class Shrinkable(QScrollArea):
    """Shows ``panel`` in the available space; scrolls below its minimum size."""

    def __init__(self, panel: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._panel = panel
        self.setWidget(panel)
        # Show the window's background.
        self.viewport().setAutoFillBackground(False)
        panel.setAutoFillBackground(False)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return self._panel.minimumSizeHint().boundedTo(QSize(22 * em, 9 * em))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # Qt does not lay out widgets again that grew while hidden.
        QCoreApplication.postEvent(self, QEvent(QEvent.Type.LayoutRequest))

    def sizeHint(self) -> QSize:
        return self._panel.sizeHint().expandedTo(self.minimumSizeHint())
