"""Actions that do nothing, for panels on their own."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

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


def acts_of(kind: type[Acts], **given: object) -> Acts:
    """An action for each field of ``kind``, called like it; some are ``given``."""
    return kind(**{one.name: given.get(one.name) or Action(one.name) for one in fields(kind)})
