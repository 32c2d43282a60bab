"""Where the tour's card is: near what it speaks of, over as little of it as can be."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize

_GAP = 14
"""Pixels between the card and what it speaks of."""


def placed(card: QSize, target: QRect, room: QRect) -> QPoint:
    """The corner of a ``card`` that stays within ``room`` and covers as little as can be of ``target``, near it."""
    rows = (target.top(), target.center().y() - card.height() // 2, target.bottom() + 1 - card.height())
    columns = (target.left(), target.center().x() - card.width() // 2, target.right() + 1 - card.width())
    beside = [(x, y) for x in (target.right() + _GAP, target.left() - _GAP - card.width()) for y in rows]
    above = [(x, y) for y in (target.bottom() + _GAP, target.top() - _GAP - card.height()) for x in columns]
    most = QPoint(room.right() + 1 - card.width(), room.bottom() + 1 - card.height())

    def kept(x: int, y: int) -> QRect:
        return QRect(QPoint(max(min(x, most.x()), room.left()), max(min(y, most.y()), room.top())), card)

    corners = [(x, y) for x in (room.left(), most.x()) for y in (most.y(), room.top())]
    found = [kept(x, y) for x, y in (*beside, *above, *corners)]

    def cost(one: QRect) -> tuple[int, int]:
        covered = one.intersected(target)
        return covered.width() * covered.height(), (one.center() - target.center()).manhattanLength()

    return min(found, key=cost).topLeft()


def in_a_corner(card: QSize, room: QRect) -> QPoint:
    """The lower right corner of ``room``, where there is nothing to point at."""
    return QPoint(room.right() + 1 - card.width() - _GAP, room.bottom() + 1 - card.height() - _GAP)
