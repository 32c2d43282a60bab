"""Paretone's engine: models, techniques, measurements. Never imports Qt.

The names below are the public Python interface. They are imported on first use, so that ``import engine`` (and with it
every front end) stays free of torch until something needs it.
"""

from __future__ import annotations

from importlib import import_module

from engine.surroundings import cap_kernels

cap_kernels()  # Here, because it has to precede torch's first convolution, and every program imports this first.

__version__ = "0.1.0"

_PUBLIC = {
    "Profile": "engine.setting.profile",
    "Setting": "engine.setting.setting",
    "UsedTechnique": "engine.setting.setting",
    "Take": "engine.setting.take",
    "EngineThread": "engine.session.engine_thread",
    "load_model": "engine.models",
    "finished_part": "engine.models.base",
    "spread": "engine.measure.timing",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'engine' has no attribute {name!r}")
