"""Reading values from a study's file, so that every mistake is told by the field that has it. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.errors import StudyError


class Fields:
    """The fields of one table; ``prefix`` is what their names begin with in sentences. Knows which were asked for."""

    def __init__(self, values: object, prefix: str) -> None:
        if not isinstance(values, Mapping):
            raise StudyError(f"{prefix.rstrip('.') or 'a study'} must be a table of fields, not {values!r}.")
        self.values = dict(values)
        self._prefix = prefix
        self._asked: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: object = None) -> object:
        """The value as it stands."""
        self._asked.add(name)
        return self.values.get(name, default)

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        return self._typed(name, str, "a text", default)

    def flag(self, name: str) -> bool:
        """True or false."""
        return self._typed(name, bool, "true or false", False)

    def number(self, name: str, default: float | None = None) -> float | None:
        """A number."""
        value = self.get(name, default)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise StudyError(f"{self._prefix}{name} must be a number, not {value!r}.")
        return value

    def whole(self, name: str, default: int, minimum: int = 0) -> int:
        """A whole number from ``minimum``."""
        value = self._typed(name, int, "a whole number", default)
        if value < minimum:
            raise StudyError(f"{self._prefix}{name} must be at least {minimum}, not {value}.")
        return value

    def list(self, name: str) -> list[object]:
        """A list of anything."""
        return self._typed(name, list, "a list", [])

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return self._all(name, str, "texts", ())

    def wholes(self, name: str, default: Sequence[int]) -> tuple[int, ...]:
        """A list of whole numbers from 0."""
        found = self._all(name, int, "whole numbers", default)
        if not found or min(found) < 0:
            raise StudyError(f"{self._prefix}{name} must be whole numbers from 0, at least one of them.")
        return found

    def table(self, name: str) -> Mapping[str, object]:
        """A table of fields."""
        return self._typed(name, dict, "a table of fields", {})

    def require_known(self) -> None:
        """Raise :class:`StudyError` for a field that nobody asked for."""
        for name in self.values:
            if name not in self._asked:
                known = ", ".join(sorted(self._asked))
                raise StudyError(f"{self._prefix}{name} is an unknown field; known ones: {known}.")

    def _typed(self, name: str, kind: type, words: str, default: object) -> object:
        value = self.get(name, default)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise StudyError(f"{self._prefix}{name} must be {words}, not {value!r}.")
        return value

    def _all(self, name: str, kind: type, words: str, default: Sequence) -> tuple:
        values = self._typed(name, list, f"a list of {words}", list(default))
        for value in values:
            if not isinstance(value, kind) or isinstance(value, bool):
                raise StudyError(f"{self._prefix}{name} must be a list of {words}; {value!r} is none.")
        return tuple(values)


def read_values(fields: Fields) -> dict[str, object]:
    """All fields, for knobs, which check their values themselves."""
    return {name: fields.get(name) for name in fields.values}
