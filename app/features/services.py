"""What every feature is given: the state and the window's shared parts, and a way to find other features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QMainWindow

from app.features.presenter import Presenter
from app.shell.actions import Actions
from app.shell.docks import Docks
from app.shell.notices import Notices
from app.shell.status_line import StatusLine
from app.shell.theme import Theme
from app.state.app_state import AppState

Found = TypeVar("Found")


class Presenters:
    """The presenters of a window, by the names of their features, in the order of the list."""

    def __init__(self) -> None:
        self._made: dict[str, Presenter] = {}

    def add(self, name: str, presenter: Presenter) -> None:
        """Register the presenter of the feature called ``name``."""
        self._made[name] = presenter

    def __getitem__(self, name: str) -> Presenter:
        return self._made[name]

    def __iter__(self) -> Iterator[Presenter]:
        return iter(self._made.values())

    def find(self, kind: type[Found]) -> Found:
        """The presenter of this class. While presenters are made, only those before in the list are there."""
        for one in self._made.values():
            if isinstance(one, kind):
                return one
        raise LookupError(f"There is no {kind.__name__} (yet); list its feature, before those that need it at once.")


@dataclass(frozen=True)
class Services:
    """The window's shared parts."""

    window: QMainWindow
    state: AppState
    actions: Actions
    docks: Docks
    notices: Notices
    status: StatusLine
    theme: Theme
    settings: QSettings
    """What is kept between sessions."""
    folder: Path
    """The user's data."""
    features: Presenters = field(default_factory=Presenters)
    """The other features."""
