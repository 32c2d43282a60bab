"""Additions to Qt's accessibility: announcements, and roles of painted widgets."""

from PySide6 import QtGui
from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget

_EVENT = getattr(QtGui, "QAccessibleAnnouncementEvent", None)
"""Missing in some versions of Qt."""
PICTURE, CHART, GROUP = QAccessible.Role.Graphic, QAccessible.Role.Chart, QAccessible.Role.Grouping
"""Values of the class attribute ``screen_role``, for widgets without a role in Qt."""


def announce(widget: QWidget, sentence: str) -> None:
    """Have screen readers speak ``sentence``, on behalf of ``widget``."""
    if _EVENT is not None and sentence:
        QAccessible.updateAccessibility(_EVENT(widget, sentence))


def _with_role(_class_name: str, thing: QObject) -> QAccessibleInterface | None:
    """The ``screen_role`` of a widget for screen readers; otherwise such widgets are “filler”."""
    role = getattr(thing, "screen_role", None)
    return QAccessibleWidget(thing, role) if role is not None and isinstance(thing, QWidget) else None


# On import, before Qt makes its cache of interfaces: at exit, what was made last is ended first, and the cache has to
# end before PySide frees the interfaces in it.
QAccessible.installFactory(_with_role)
