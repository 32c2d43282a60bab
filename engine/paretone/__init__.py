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
    "load": "paretone.notebook",
    "run_study": "paretone.notebook",
    "verify_study": "paretone.notebook",
    "say": "paretone.saying",
    "teach": "paretone.saying",
    "forget": "paretone.saying",
    "lexicon": "paretone.saying",
    "parts": "paretone.front_end.speakable",
    "Model": "paretone.notebook",
    "Speech": "paretone.notebook",
    "Rows": "paretone.notebook",
    "PlainError": "paretone.errors",
    "Profile": "paretone.setting.profile",
    "Setting": "paretone.setting.setting",
    "UsedTechnique": "paretone.setting.setting",
    "Take": "paretone.setting.take",
    "EngineThread": "paretone.session.engine_thread",
    "load_model": "paretone.models",
    "finished_part": "paretone.models.base",
    "spread": "paretone.measure.timing",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'paretone' has no attribute {name!r}")
