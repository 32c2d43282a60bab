"""Actions that do nothing, for panels on their own, and keys that people press there."""

from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from paretone_app.widgets.action import Action

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Acts = TypeVar("Acts", bound="DataclassInstance")


class NamedActs(dict[str, Action]):
    """An action for each name that is asked for."""

    def __missing__(self, name: str) -> Action:
        return self.setdefault(name, Action(name))


def acts(number: int) -> list[Action]:
    return [Action(f"Action {index + 1}") for index in range(number)]


def press(widget: QWidget, *keys: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    for key in keys:
        QTest.keyClick(widget, key, modifier)


def acts_of(kind: type[Acts], **given: object) -> Acts:
    """An action for each field of ``kind``, called like it; some are ``given``."""
    return kind(**{one.name: given.get(one.name) or Action(one.name) for one in fields(kind)})
