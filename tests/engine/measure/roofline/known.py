"""Ceilings of a device that is not there."""

from __future__ import annotations

from dataclasses import replace

from engine.measure.roofline.ceilings import Ceilings


def ceilings(**changes: object) -> Ceilings:
    made = Ceilings("a device", "seconds", {"float32": 1e11, "int8": 4e11}, {"float32": 1e10}, 1e-6, torch="2")
    return replace(made, **changes)
