"""The machine and devices of the engine."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from paretone.computing import Computing
from paretone.session.events import EngineReady, Event


class Machine(QObject):
    """Known once the engine is ready."""

    changed = Signal()
    """The engine became ready."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.device = ""
        """The best one, where models run by default."""
        self.devices: tuple[str, ...] = ()
        self.title = ""
        """The machine in a line."""
        self.computing: Computing | None = None
        """What the engine computes with, and why not on a graphics card."""

    def follow(self, event: Event) -> None:
        """Take in what the engine says of itself."""
        if isinstance(event, EngineReady):
            self.device, self.devices, self.title = event.device, event.devices, event.machine
            self.computing = event.computing
            self.changed.emit()
