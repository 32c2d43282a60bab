"""Choice of kept layers: the most important ones by measurement, as many as the depth knob says, or those chosen by
hand.

The choice is kept in SPADE's knobs, so that controls, takes and profiles agree; every change can be undone.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from paretone.errors import PlainError, SettingError
from paretone.models.files.layer_importance import ImportanceRecord, read_record
from paretone.paths import own_place
from paretone.techniques import spade
from paretone_app.state.app_state import AppState
from paretone_app.state.editing import ALONE, Edit

_DEPTH_EDIT = 2


class LayerChoice(QObject):
    """Measurement of the loaded model's layers, and the choice of kept layers."""

    measured = Signal()
    """Another record is at hand, or none any more."""
    problem = Signal(str)
    """A sentence about a record that cannot be read."""

    def __init__(self, state: AppState, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state = state
        self.record: ImportanceRecord | None = None
        state.selection.model_changed.connect(self.look)

    @property
    def layers(self) -> int:
        """Number of layers of the loaded model if they can be removed; else 0."""
        info = self._state.selection.info
        return info.layers if info is not None and info.family in spade.TECHNIQUE.families else 0

    @property
    def depth(self) -> int:
        """Number of kept layers if they are not chosen by hand."""
        knobs = self._state.selection.knobs(spade.NAME).replace(layers="")
        return min(spade.kept_count(knobs, self.layers), self.layers)

    @property
    def by_hand(self) -> bool:
        """Whether layers are chosen by hand."""
        return bool(self._state.selection.knobs(spade.NAME)["layers"])

    @property
    def retained(self) -> tuple[int, ...]:
        """Kept layers, in order; all if nothing says which to remove."""
        if self.by_hand:
            listed = spade.parsed_layers(str(self._state.selection.knobs(spade.NAME)["layers"]))
            return tuple(layer for layer in listed if layer < self.layers)
        if self.record is None or self.record.layers != self.layers:
            return tuple(range(self.layers))
        return self.record.retained(self.depth)

    def toggle(self, layer: int) -> None:
        """Keep ``layer``, or remove it if it is kept. Raises :class:`SettingError` for the last one that is left."""
        kept = set(self.retained) ^ {layer}
        if not kept:
            raise SettingError("Keep at least one layer.")
        listed = ",".join(map(str, sorted(kept)))
        verb = "keep" if layer in kept else "remove"
        self._edit(f"{verb} layer {layer}", layers=listed)

    def set_depth(self, depth: int) -> None:
        """Keep the ``depth`` most important layers; discards manual selection."""
        depth = max(1, min(depth, self.layers))
        if self.layers and (depth != self.depth or self.by_hand):
            self._edit("keep more or fewer layers", _DEPTH_EDIT, depth=depth, layers="")

    def choose_by_importance(self) -> None:
        """Discard manual selection."""
        if self.by_hand:
            self._edit("keep the most important layers", layers="")

    def take_up(self, record: ImportanceRecord) -> None:
        """Use a new measurement, if it is of the loaded checkpoint."""
        info = self._state.selection.info
        if info is not None and record.checkpoint == info.fingerprint:
            self.record = record
            self.measured.emit()

    def look(self) -> None:
        """Read the measurement of the loaded checkpoint, if there is one."""
        info = self._state.selection.info
        before, self.record = self.record, None
        if info is not None and self.layers:
            checkpoint = Path(info.checkpoint)
            folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
            folders = folder, own_place(info.id)
            try:
                self.record = read_record(folders, info.fingerprint)
            except PlainError as error:
                self.problem.emit(str(error))
        if self.record is not before:
            self.measured.emit()

    def _edit(self, text: str, merging: int = ALONE, **values: object) -> None:
        knobs = self._state.selection.knobs(spade.NAME)
        before = {name: knobs[name] for name in ("depth", "layers")}
        self._state.undo_stack.push(Edit(text, before, before | values, self._put, merging))

    def _put(self, values: dict[str, object]) -> None:
        for name, value in values.items():
            self._state.selection.set_knob(spade.NAME, name, value)
