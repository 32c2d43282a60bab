"""Reading the official ``config.yaml`` files: entries that are missing or of another kind are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from engine.errors import CheckpointError


@dataclass(frozen=True)
class ConfigFile:
    """A mapping out of ``config.yaml``, and where it stands there. All methods raise :class:`CheckpointError`."""

    entries: Mapping[str, object]
    where: str

    @classmethod
    def read(cls, path: Path) -> ConfigFile:
        """Read a file."""
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing; it belongs beside the official weights.") from None
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise CheckpointError(f"{path} cannot be read as a configuration: {error}.") from None
        if not isinstance(data, dict):
            raise CheckpointError(f"{path} is not a configuration: it should be a list of names and values.")
        return cls(data, str(path))

    def part(self, name: str) -> ConfigFile:
        """The mapping under ``name``; empty where there is none."""
        entries = self.entries.get(name, {})
        if not isinstance(entries, Mapping):
            raise CheckpointError(f"{self.where}: {name} should be a list of names and values, not {entries!r}.")
        return ConfigFile(entries, f"{self.where}: {name}")

    def number(self, name: str, default: int | None = None) -> int:
        """A positive whole number."""
        return self._entry(name, default, int, lambda value: value > 0, "a positive whole number")

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
            raise CheckpointError(f"{self.where} lacks {name!r}, which should be {wanted}; fetch the file again.")
        right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not right or not holds(value):
            raise CheckpointError(f"{self.where}: {name} should be {wanted}, not {value!r}.")
        return value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)
