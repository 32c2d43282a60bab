"""The gallery of a workspace that shows one panel at a time: the others as cards with a small picture of each.

Pictures are taken of the panels themselves, one a turn of the event loop, while the workspace is shown: when it comes
into view, when another panel does, and after something was computed or chosen.
"""

from __future__ import annotations

from collections import deque

from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QIcon, QPainter, QPainterPath, QPixmap
from PySide6.QtWidgets import (
    QButtonGroup,
    QSizePolicy,
    QToolBar,
    QToolButton,
    QWidget,
    QWidgetAction,
)

from paretone_app.shell.colours import Colours
from paretone_app.shell.docks import Docks
from paretone_app.shell.entries import Region
from paretone_app.shell.theme import NEAR, TIGHT
from paretone_app.widgets.layouts import Scrolled, VBoxLayout
from paretone_app.widgets.screen_readers import GROUP

_WIDTH, _HEIGHT = 96, 60
"""Pixels of a picture."""
_SOON = 400
"""Milliseconds after which pictures are taken again; what changes in between is in them."""
_TURN = 30
"""Milliseconds between two of them, for what the user does meanwhile."""


class Gallery(QWidget):
    """The cards at the right of ``docks``."""

    screen_role = GROUP

    def __init__(self, docks: Docks) -> None:
        super().__init__()
        self._docks = docks
        self._waiting: deque[str] = deque()
        self.setAccessibleName(f"Views of {docks.workspace.title}")
        self.cards: dict[str, QToolButton] = {}
        group = QButtonGroup(self, exclusive=True)
        column = VBoxLayout(self)
        column.setContentsMargins(0, 0, TIGHT, 0)
        column.setSpacing(NEAR)
        nothing = QPixmap(_WIDTH, _HEIGHT)
        nothing.fill(Qt.GlobalColor.transparent)
        for place in docks.places:
            if place.region is not Region.CENTRE:
                continue
            card = QToolButton()
            card.setText(place.title)
            card.setCheckable(True)
            card.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            card.setIconSize(QSize(_WIDTH, _HEIGHT))
            card.setIcon(QIcon(nothing))
            card.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            card.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            card.setProperty("look", "card")
            card.setAccessibleName(f"Show {place.title}")
            card.clicked.connect(lambda _=False, one=place.name: docks.bring_forward(one))
            group.addButton(card)
            self.cards[place.name] = card
            column.addWidget(card)
        column.addStretch(1)
        self._bar = QToolBar("Views", movable=False)
        self._bar.setObjectName("views of the gallery")
        self._bar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self._bar.toggleViewAction().setVisible(False)
        self._bar.setProperty("look", "gallery")
        area = Scrolled(self)
        # The bar's ground is theirs.
        area.viewport().setAutoFillBackground(False)
        self.setAutoFillBackground(False)
        area.setFixedWidth(_WIDTH + 2 * self.fontMetrics().height())
        self._content = QWidgetAction(self._bar)
        self._content.setDefaultWidget(area)
        self._bar.addAction(self._content)
        docks.host.addToolBar(Qt.ToolBarArea.RightToolBarArea, self._bar)
        self._soon = QTimer(self, singleShot=True, interval=_SOON)
        self._soon.timeout.connect(self._take_all)
        self._turn = QTimer(self, singleShot=True, interval=_TURN)
        self._turn.timeout.connect(self._take_one)
        docks.front_changed.connect(self._show_front)
        self._show_front()

    def show_cards(self, on: bool) -> None:
        """Show the cards, or leave their room to the panel."""
        self._bar.setVisible(on)

    def set_colours(self, colours: Colours) -> None:
        """Follow the theme: the pictures are of other colours."""
        self.look_again()

    @Slot()
    def look_again(self) -> None:
        """Take the pictures again soon, as panels may show something else."""
        if self._docks.host.isVisible() and self._bar.isVisible():
            self._soon.start()

    @Slot()
    def _show_front(self) -> None:
        front = self._docks.front
        for name, card in self.cards.items():
            card.setVisible(not self._docks[name].isHidden())
            card.setChecked(name == front)
        self.look_again()

    @Slot()
    def _take_all(self) -> None:
        self._waiting = deque(name for name, card in self.cards.items() if not card.isHidden())
        self._turn.start()

    @Slot()
    def _take_one(self) -> None:
        if not (self._waiting and self._docks.host.isVisible()):
            return
        name = self._waiting.popleft()
        panel = self._docks[name].widget()
        if panel is not None:
            front = self._docks[self._docks.front].widget()
            if front is not None and self._docks[name].visibleRegion().isEmpty():
                panel.resize(front.size())  # As it will be once it is in front.
            self.cards[name].setIcon(QIcon(self._picture(panel)))
        if self._waiting:
            self._turn.start()

    def _picture(self, panel: QWidget) -> QPixmap:
        """``panel`` made small, with round corners."""
        ratio = self.devicePixelRatioF()
        seen = panel.grab().scaled(
            QSize(round(_WIDTH * ratio), round(_HEIGHT * ratio)),
            Qt.AspectRatioMode.KeepAspectRatioByExpanding,
            Qt.TransformationMode.SmoothTransformation,
        )
        picture = QPixmap(round(_WIDTH * ratio), round(_HEIGHT * ratio))
        picture.fill(Qt.GlobalColor.transparent)
        with QPainter(picture) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            path = QPainterPath()
            path.addRoundedRect(QRectF(picture.rect()), 4 * ratio, 4 * ratio)
            painter.setClipPath(path)
            seen.setDevicePixelRatio(1.0)
            painter.drawPixmap(0, 0, seen)
        picture.setDevicePixelRatio(ratio)
        return picture
