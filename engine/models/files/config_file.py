"""Reading the ``config.yaml`` and ``config.json`` files of published models.

Entries that are missing or of another kind are named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from engine.errors import CheckpointError
from engine.fields import is_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Sizes = TypeVar("Sizes", bound="DataclassInstance")


@dataclass(frozen=True)
class ConfigFile:
    """A mapping from such a file, and its place there. All methods raise :class:`CheckpointError`."""

    entries: Mapping[str, object]
    where: str

    @classmethod
    def read(cls, path: Path) -> ConfigFile:
        """Read a file in YAML, or in JSON if it is called so."""
        try:
            text = path.read_text(encoding="utf-8")
            data = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing; it belongs in the folder of the weights.") from None
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise CheckpointError(f"{path} cannot be read as a configuration ({error}); download it again.") from None
        if not isinstance(data, dict):
            raise CheckpointError(f"{path} is not a configuration: it should be a list of names and values.")
        return cls(data, str(path))

    def part(self, name: str) -> ConfigFile:
        """The mapping under ``name``; empty if there is none."""
        entries = self.entries.get(name, {})
        if not isinstance(entries, Mapping):
            raise CheckpointError(f"{self.where}: {name} should be a list of names and values, not {entries!r}.")
        return ConfigFile(entries, f"{self.where}: {name}")

    def number(self, name: str, default: int | None = None) -> int:
        """A positive whole number."""
        return self._entry(name, default, int, lambda value: value > 0, "a positive whole number")

    def sizes(self, kind: type[Sizes]) -> Sizes:
        """A dataclass of positive whole numbers; each must be there."""
        return kind(**{one.name: self.number(one.name) for one in fields(kind)})

    def flag(self, name: str, default: bool | None = None) -> bool:
        """True or false."""
        return self._entry(name, default, bool, lambda value: True, "true or false")

    def text(self, name: str, default: str | None = None) -> str:
        """A word."""
        return self._entry(name, default, str, bool, "a word")

    def numbers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Positive whole numbers."""
        values = self._entry(
            name, default, list | tuple, lambda found: all(map(_is_count, found)), "whole numbers above 0"
        )
        return tuple(values)

    def texts(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """Words."""
        values = self._entry(name, default, list | tuple, lambda found: all(map(_is_text, found)), "a list of words")
        return tuple(values)

    def _entry(self, name: str, default: object, kind: Any, holds: Callable[[Any], bool], wanted: str) -> Any:
        value = self.entries.get(name)
        if value is None:
            value = default
        if value is None:
            raise CheckpointError(f"{self.where} lacks {name!r}, which should be {wanted}; download the file again.")
        if not is_of(value, kind) or not holds(value):
            raise CheckpointError(f"{self.where}: {name} should be {wanted}, not {value!r}.")
        return value


def _is_count(value: object) -> bool:
    return is_of(value, int) and value > 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)
