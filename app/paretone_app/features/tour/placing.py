"""Where the tour's card stands: near its target, and covering as little of it as possible."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize

from paretone_app.shell.theme import WIDE


def placed(card: QSize, target: QRect, room: QRect, clear: QRect | None = None) -> QPoint:
    """Upper left corner of a ``card`` within ``room``, near ``target`` and covering as little as possible of that and
    of what is around it, ``clear``."""
    clear = target if clear is None else clear.united(target)
    rows = (target.top(), target.center().y() - card.height() // 2, target.bottom() + 1 - card.height())
    columns = (target.left(), target.center().x() - card.width() // 2, target.right() + 1 - card.width())
    sides = [(x, y) for x in (clear.right() + WIDE, clear.left() - WIDE - card.width()) for y in rows]
    ends = [(x, y) for y in (clear.bottom() + WIDE, clear.top() - WIDE - card.height()) for x in columns]
    most = QPoint(room.right() + 1 - card.width(), room.bottom() + 1 - card.height())

    def inside(x: int, y: int) -> QRect:
        return QRect(QPoint(max(min(x, most.x()), room.left()), max(min(y, most.y()), room.top())), card)

    corners = [(x, y) for x in (room.left(), most.x()) for y in (most.y(), room.top())]
    found = [inside(x, y) for x, y in (*sides, *ends, *corners)]

    def cost(one: QRect) -> tuple[int, int]:
        covered = one.intersected(clear)
        return covered.width() * covered.height(), (one.center() - target.center()).manhattanLength()

    return min(found, key=cost).topLeft()


def in_a_corner(card: QSize, room: QRect) -> QPoint:
    """The lower right corner of ``room``, where there is nothing to point at."""
    return QPoint(room.right() + 1 - card.width() - WIDE, room.bottom() + 1 - card.height() - WIDE)
