"""How a technique presents itself: identity, knobs, and with what it cannot be combined. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.setting.knobs import Knob, Values
from engine.setting.setting import Setting


@dataclass(frozen=True)
class Paper:
    """Where a technique was published."""

    title: str
    reference: str


@dataclass(frozen=True)
class Technique:
    """One acceleration, as the application shows it and the engine checks it.

    ``prepared_by`` is ``"calibration"``, ``"training"`` or ``""`` (nothing to prepare). ``conflict`` returns the reason
    why the technique cannot take part in a setting, as a sentence, or ``None``; the setting's options are those that
    all techniques have reshaped. ``reshape`` gets the model's options and the technique's knobs, all of them present,
    and returns the options in force. ``describe`` says in a few words what the knobs' values come to. ``remarks`` gets
    the options in force and the knobs, and gives sentences that belong on a take.
    """

    name: str
    title: str
    summary: str
    paper: Paper
    families: tuple[str, ...]
    knobs: tuple[Knob, ...]
    options: tuple[str, ...] = ()
    """What a model must have of these among its options."""
    prepared_by: str = ""
    conflict: Callable[[Setting], str | None] = lambda setting: None
    reshape: Callable[[Values, Values], Values] = lambda options, knobs: options
    describe: Callable[[Values], str] = lambda knobs: ""
    remarks: Callable[[Values, Values], tuple[str, ...]] = lambda options, knobs: ()


def ordinal(number: int) -> str:
    """A number from 2 on as it is said behind "every": second, third, 4th, 21st."""
    words = {2: "second", 3: "third"}
    if number in words:
        return words[number]
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
