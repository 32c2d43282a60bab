"""How an engagement has its forwards launched: as CUDA graphs, compiled, or one kernel after another. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

from engine.models.base import ModelInfo
from engine.setting.setting import Setting
from engine.techniques import compilation, graphs, knobs_of
from engine.techniques.graphs import Graphing, require_offered


@dataclass(frozen=True)
class Launching:
    """What is done to forwards that changes nothing of their results."""

    graphs: Graphing | None = None
    """How they are recorded as CUDA graphs."""
    mode: str | None = None
    """In which mode of ``torch.compile`` they are compiled."""


PLAIN = Launching()


def launching(info: ModelInfo, setting: Setting) -> Launching:
    """What ``setting`` comes to on the loaded model that ``info`` describes. Raises :class:`SettingError` if its
    device cannot do so."""
    recorded, compiled = setting.engaged(graphs.NAME), setting.engaged(compilation.NAME)
    for entry in (recorded, compiled):
        if entry is not None:
            require_offered(info, entry.technique)
    return Launching(
        None if recorded is None else Graphing.of(knobs_of(recorded)),
        None if compiled is None else str(knobs_of(compiled)["mode"]),
    )
