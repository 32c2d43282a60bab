"""How a technique presents itself: identity, knobs, and with what it cannot be combined. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.knobs import Knob
from engine.setting import Setting


@dataclass(frozen=True)
class Paper:
    """Where a technique was published."""

    title: str
    reference: str


@dataclass(frozen=True)
class Technique:
    """One acceleration, as the application shows it and the engine checks it.

    ``prepared_by`` is ``"calibration"``, ``"training"`` or ``""`` (nothing to prepare). ``conflict`` returns the reason
    why the technique cannot take part in a setting, as a sentence, or ``None``.
    """

    name: str
    title: str
    summary: str
    paper: Paper
    families: tuple[str, ...]
    knobs: tuple[Knob, ...]
    prepared_by: str = ""
    conflict: Callable[[Setting], str | None] = lambda setting: None
