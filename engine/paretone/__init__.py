"""Paretone's engine: models, techniques, measurements. Never imports Qt.

The names below are the public Python interface; begin with :mod:`paretone.notebook`. They are imported on first use, so
that ``import paretone`` (and with it every front end) stays free of torch until something needs it.
"""

from __future__ import annotations

from importlib import import_module

from paretone.own_process import cap_kernels

cap_kernels()  # Here, because it must precede torch's first convolution, and every program imports this first.

__version__ = "0.2.0"

_PUBLIC = {
    name: f"paretone.{module}"
    for module, names in {
        "notebook": "load run_study verify_study Model Speech Rows",
        "saying": "say teach forget lexicon",
        "front_end.speakable": "parts",
        "errors": "PlainError",
        "setting.profile": "Profile",
        "setting.setting": "Setting UsedTechnique",
        "setting.take": "Take",
        "session.engine_thread": "EngineThread",
        "models": "load_model",
        "models.base": "finished_part",
        "measure.timing": "spread",
    }.items()
    for name in names.split()
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'paretone' has no attribute {name!r}")
