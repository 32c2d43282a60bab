"""Where what is held over the window will go: a frame around that part, and a sentence."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, HEADING, text_font

_VEIL = 150
"""Opacity of what is laid over the rest of the window, of 255."""
_LINE, _ROUND = 3, 8
_CHARACTERS = 44
"""Of a line of the sentence."""


class DropOverlay(QWidget):
    """Covers the window, lets every event through, and takes part in nothing else."""

    def __init__(self, window: QWidget, colours: Colours) -> None:
        super().__init__(window, visible=False)
        self._window = window
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.colours = colours
        self.sentence = ""
        self.part = QRect()
        """The part of the window that is framed."""

    def tell(self, sentence: str, part: QRect) -> None:
        """Frame ``part`` of the window, and say what will happen."""
        self.sentence, self.part = sentence, part
        self.setAccessibleName(sentence)
        self.setGeometry(self._window.rect())
        self.raise_()
        self.show()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        veil = QColor(self.colours.base)
        veil.setAlpha(_VEIL)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.fillRect(self.rect(), veil)
            painter.setPen(QPen(QColor(self.colours.accent), _LINE, Qt.PenStyle.DashLine))
            painter.drawRoundedRect(self.part.adjusted(_LINE, _LINE, -_LINE, -_LINE), _ROUND, _ROUND)
            painter.setFont(text_font(self.font(), HEADING))
            wrapped = Qt.AlignmentFlag.AlignCenter.value | Qt.TextFlag.TextWordWrap.value
            widest = min(self.width() - 4 * GAP, _CHARACTERS * painter.fontMetrics().averageCharWidth())
            box = painter.boundingRect(QRect(0, 0, widest, self.height()), wrapped, self.sentence)
            box.adjust(-2 * GAP, -GAP, 2 * GAP, GAP)
            box.moveCenter(self.part.center())
            box.moveLeft(max(GAP, min(box.left(), self.width() - box.width() - GAP)))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self.colours.accent))
            painter.drawRoundedRect(box, _ROUND, _ROUND)
            painter.setPen(QColor(self.colours.on_accent))
            painter.drawText(box, wrapped, self.sentence)
