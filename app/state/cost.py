"""Cost of takes: operations as the engine counted them, and the share of them that a setting needs."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.state.artefacts import Artefacts
from app.state.selection import Selection
from engine.errors import PlainError
from engine.sampling.operations import OperationCounts
from engine.session.events import Event, TakeReady
from engine.setting.plan import FlowPlan, Plan
from engine.techniques import resolve


class Cost(QObject):
    """Cost of the chosen model; unknown before something was synthesised with it."""

    changed = Signal()
    """Operations were counted, or forgotten with their model."""

    def __init__(self, selection: Selection, artefacts: Artefacts, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._artefacts = artefacts
        self.operations: OperationCounts | None = None

    def follow(self, event: Event) -> None:
        """Take in counted operations."""
        if isinstance(event, TakeReady) and event.operations is not None:
            self.set_operations(event.operations)

    def set_operations(self, operations: OperationCounts | None) -> None:
        """Set the operations of an evaluation; ``None`` while unknown."""
        self.operations = operations
        self.changed.emit()

    @property
    def plan(self) -> Plan | None:
        """Plan of the accelerated setting for the loaded model; ``None`` if it cannot be used."""
        info, setting = self._selection.info, self._selection.setting
        if info is None or any(self._artefacts.problem(one.technique) for one in setting.techniques):
            return None
        try:
            return resolve(info, setting, self._artefacts.of(setting))
        except PlainError:
            return None

    @property
    def ops_ratio(self) -> float | None:
        """Share of the baseline's operations that the accelerated setting needs; ``None`` while it is unknown."""
        plan, operations = self.plan, self.operations
        return plan.ops_ratio(operations) if isinstance(plan, FlowPlan) and operations is not None else None
