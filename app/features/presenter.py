"""What a presenter is: it binds the panels and actions of one feature to the state.

A presenter is made once, when the window is. It binds its actions and puts panels that are there at once into their
docks. Panels that draw with pyqtgraph come later, so that the window is painted first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMainWindow, QWidget

from engine.session.messages import Event, Progress, Telemetry

Panel = TypeVar("Panel", bound=QWidget)


class Windowed(Protocol):
    """What the base of presenters needs of :class:`app.features.services.Services`."""

    @property
    def window(self) -> QMainWindow: ...


class Presenter(QObject):
    """What the window asks of every presenter. A feature overrides what concerns it."""

    changed = Signal()
    """Something changed that other features show: the window refreshes them all."""

    later: Mapping[str, Callable[[], QWidget]] = {}
    """Panels to build after the first paint, by the name of their place."""

    def __init__(self, services: Windowed) -> None:
        super().__init__(services.window)

    def engine_starts(self) -> None:
        """The window was painted and the engine starts: report what went wrong before."""

    def follow(self, event: Event) -> None:
        """Take in an event of the engine. The state has it already; a job that it ends still counts as running."""

    def show_progress(self, event: Progress) -> None:
        """Show how far a job is, at most twelve times a second."""

    def show_telemetry(self, event: Telemetry) -> None:
        """Show live figures of a synthesis, at most twelve times a second."""

    def show_reports(self, events: Sequence[Event]) -> None:
        """Show what preparations reported since the last call, at most twelve times a second."""

    def refresh(self) -> None:
        """Show the present state: enable what can be done, and say why the rest cannot."""

    def shut_down(self) -> None:
        """The window closes and the engine has stopped: end threads, close files."""


def built(panel: Panel | None) -> Panel:
    """``panel``, in what happens only once there is one: because it was asked for there, for example. Raises
    :class:`RuntimeError` if there is none yet."""
    if panel is None:
        raise RuntimeError("The panel has not been built yet.")
    return panel
