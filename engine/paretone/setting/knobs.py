"""Knobs: the declared parameters of models and techniques.

Front ends build controls from these declarations and the engine checks values by them: validity is the same everywhere.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from paretone.by_name import meant
from paretone.errors import SettingError
from paretone.reading import shown


class Effect(Enum):
    """When a changed value takes effect."""

    NEXT_SYNTHESIS = "at the next synthesis"
    AFTER_CALIBRATION = "after the next calibration"
    AFTER_TRAINING = "after training"
    NEXT_VIEW = "the next time the view is computed"


@dataclass(frozen=True)
class Knob:
    """One parameter, the base of all kinds. ``symbol``: the papers' notation (δ, w, β); ``trajectory`` marks sampler
    options that shape the way from noise to speech: strategy tables depend on them. ``later`` marks knobs newer than
    users' files: a missing one means its default, which is not written, so that settings keep their fingerprints."""

    name: str
    title: str
    meaning: str
    default: bool | int | float | str
    symbol: str = ""
    unit: str = ""
    effect: Effect = Effect.NEXT_SYNTHESIS
    trajectory: bool = False
    later: bool = False

    @property
    def label(self) -> str:
        """Title, symbol and unit as one label, such as ``Threshold δ (velocity units)``."""
        parts = [self.title]
        if self.symbol:
            parts.append(self.symbol)
        if self.unit:
            parts.append(f"({self.unit})")
        return " ".join(parts)

    def check(self, value: object) -> bool | int | float | str:
        """``value`` in this knob's type. Raises :class:`SettingError` with the permitted range."""
        raise NotImplementedError


@dataclass(frozen=True)
class Switch(Knob):
    def check(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise SettingError(f"{self.title} must be true or false, not {shown(value)}.")
        return value


@dataclass(frozen=True)
class Number(Knob):
    """A number from ``minimum`` to ``maximum``, whole if ``whole``. ``step``: change per key press. ``lowest``: words
    for a minimum that is not an amount, such as "no limit"; controls show them instead."""

    default: int | float
    minimum: float = -math.inf
    maximum: float = math.inf
    step: float = 1.0
    whole: bool = False
    lowest: str = ""

    def in_words(self, value: object) -> str:
        """:attr:`lowest` if ``value`` is the minimum, otherwise ``""``."""
        return self.lowest if value == self.minimum else ""

    def check(self, value: object) -> int | float:
        # A comparison with NaN is false; whole numbers may be too large for a float.
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            raise SettingError(f"{self.title} must be a number, not {shown(value)}.")
        if self.whole and value != int(value):
            raise SettingError(f"{self.title} must be a whole number, not {shown(value)}.")
        if not self.minimum <= value <= self.maximum:
            limits = f"{self.minimum:g} and {self.maximum:g} {self.unit}".rstrip()
            raise SettingError(f"{self.title} must lie between {limits}, not at {value:g}.")
        return int(value) if self.whole else float(value)


def amount(name: str, title: str, meaning: str, default: float, between: tuple[float, float], **more: Any) -> Number:
    """Knob of a number from the first to the last of ``between``."""
    return Number(name, title, meaning, default, minimum=between[0], maximum=between[1], **more)


def count(name: str, title: str, meaning: str, default: int, between: tuple[int, int], **more: Any) -> Number:
    """Knob of a whole number from the first to the last of ``between``."""
    return amount(name, title, meaning, default, between, whole=True, **more)


@dataclass(frozen=True)
class Choice(Knob):
    """One of a few named values; ``titles`` are shown in the same order."""

    values: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()

    def check(self, value: object) -> str:
        if value not in self.values:
            raise SettingError(f"{self.title} must be one of {', '.join(self.values)}, not {shown(value)}.")
        return str(value)


@dataclass(frozen=True)
class Text(Knob):
    """One line of free text, at most ``longest`` characters; ``""``: empty."""

    longest: int = 200

    def check(self, value: object) -> str:
        if not isinstance(value, str):
            raise SettingError(f"{self.title} must be text, not {shown(value)}.")
        words = " ".join(value.split())
        if len(words) > self.longest:
            raise SettingError(f"{self.title} has {len(words)} characters, but {self.longest} at most; shorten it.")
        return words


@dataclass(frozen=True)
class WholeNumbers(Knob):
    """Whole numbers from ``least``, separated by commas, ascending and without duplicates; ``""`` for none."""

    least: int = 0
    wanted: str = "whole numbers separated by commas"
    """What it must be, with an example, for the sentence that refuses other text."""

    def check(self, value: object) -> str:
        try:
            numbers = whole_numbers(value, self.least) if isinstance(value, str) else None
        except ValueError:
            numbers = None
        if numbers is None:
            raise SettingError(f"{self.title} must be {self.wanted}, not {shown(value)}.")
        return ",".join(map(str, numbers))


def whole_numbers(text: str, least: int = 0) -> tuple[int, ...]:
    """Numbers listed in ``text``, ascending, without duplicates. Raises :class:`ValueError`."""
    numbers = sorted({int(part) for part in text.split(",") if part.strip()})
    if numbers and numbers[0] < least:
        raise ValueError(f"{numbers[0]} is below {least}")
    return tuple(numbers)


class Values(Mapping[str, Any]):
    """Immutable, hashable, picklable mapping from knob names to values of type bool, int, float or str."""

    __slots__ = ("_implied", "_items")
    _items: dict[str, Any]
    _implied: dict[str, Any]
    """Fallback values: available by key, but not listed, compared or written."""

    def __init__(self, values: Mapping[str, object] | Iterable[tuple[str, object]] = (), **more: object) -> None:
        self._keep(dict(values, **more), {})

    @classmethod
    def complete(cls, values: Mapping[str, object], implied: Mapping[str, object]) -> Values:
        """``values``, without those equal to ``implied``, which become fallbacks."""
        made = cls.__new__(cls)
        said = {name: value for name, value in values.items() if name not in implied or implied[name] != value}
        made._keep(said, implied)
        return made

    def _keep(self, values: Mapping[str, object], implied: Mapping[str, object]) -> None:
        object.__setattr__(self, "_items", dict(sorted(values.items())))
        object.__setattr__(self, "_implied", dict(implied))

    def __getitem__(self, name: str) -> Any:
        return self._items[name] if name in self._items else self._implied[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Values cannot be changed; use replace().")

    def __eq__(self, other: object) -> bool:
        return self._items == other._items if isinstance(other, Values) else super().__eq__(other)

    def __hash__(self) -> int:
        return hash(tuple(self._items.items()))

    def __repr__(self) -> str:
        return f"Values({self._items!r})"

    def __reduce__(self) -> tuple:
        return Values.complete, (dict(self._items), dict(self._implied))

    def replace(self, **changes: object) -> Values:
        return Values.complete({**self._items, **changes}, self._implied)


NO_VALUES = Values()


def defaults(knobs: Iterable[Knob]) -> Values:
    return checked(knobs, {}, "")


def checked(knobs: Iterable[Knob], values: Mapping[str, object], owner: str) -> Values:
    """Complete ``values`` with defaults and check each one. Raises :class:`SettingError` with ``owner`` and the knob
    for an unknown name or a value out of range."""
    declared = {knob.name: knob for knob in knobs}
    if unknown := sorted(set(values) - set(declared)):
        raise SettingError(f"{owner} has no knob named {shown(unknown[0])}; {meant(unknown[0], declared, 'it has')}")
    found = {name: knob.check(values.get(name, knob.default)) for name, knob in declared.items()}
    return Values.complete(found, {knob.name: knob.default for knob in declared.values() if knob.later})
