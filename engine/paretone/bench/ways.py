"""Which techniques benches compare, with their knobs, titles and order: ``resources/benches``. Torch-free.

A bench of several techniques has a TOML file of its name there, reads it with :func:`read`, and asks the registry for
everything else that it needs to know about them. A technique is written as a table::

    technique = "name"
    knobs = { knob = 4 }           # others have their defaults
    computed = { knob = "half" }   # values that the bench knows by these names

Titles may contain such names in braces.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from paretone.errors import PlainError, SettingError
from paretone.fields import Fields
from paretone.paths import resource
from paretone.reading import parsed_toml, read_text, shown
from paretone.setting.knobs import Knob, Values, checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import Technique, technique


@dataclass(frozen=True)
class Entry:
    """A technique with its knobs, as far as the file gives them."""

    technique: Technique
    knobs: Values
    computed: Values
    """Names of values that the bench knows, by knob."""

    def with_values(self, known: Mapping[str, object]) -> UsedTechnique:
        """The technique under its knobs; ``known`` are the values that the bench knows."""
        computed = {knob: known[name] for knob, name in self.computed.items()}
        return UsedTechnique(self.technique.name, Values({**self.knobs, **computed}))


@dataclass(frozen=True)
class Addition:
    """Techniques that are used together, and what that is called."""

    title: str
    entries: tuple[Entry, ...]
    each: bool = False
    """Whether there is such a way for each narrower precision of the device, which is then known as ``precision``."""
    on: tuple[str, ...] = ()
    """The ways that it is added to, by the bench's names of them; none: the plain one."""
    needs: tuple[str, ...] = ()
    """Techniques that the device must offer as well, though they are not used."""
    judged: bool = True
    """Whether the judge listens to it. A way that is not judged speaks single sentences as the plain one does."""
    headline: bool = False
    """Whether it may be the headline."""

    def added_to(self, setting: Setting, known: Mapping[str, object]) -> Setting:
        """``setting`` with the techniques; ``known`` are the values that the bench knows."""
        for entry in self.entries:
            setting = setting.with_technique(entry.with_values(known))
        return setting


class Read(Fields):
    """A table of such a file. Raises :class:`SettingError` that names the file and the field at fault."""

    def __init__(self, values: object, prefix: str) -> None:
        super().__init__(values, prefix, SettingError, "a bench's file")
        self.prefix = prefix

    def part(self, name: str) -> Read:
        """A table in it."""
        return Read(self.table(name), f"{self.prefix}{name}.")

    def tables(self, name: str) -> list[Read]:
        """Tables in their order, at least one."""
        found = [Read(one, f"{self.prefix}{name}[{at}].") for at, one in enumerate(self.list(name))]
        if not found:
            raise SettingError(f"{self.prefix}{name} must be a list of tables, at least one.")
        return found

    def technique(self) -> Technique:
        """The technique that ``technique`` names."""
        return self._declared(self.text("technique"), "technique")

    def knob(self, of: Technique) -> Knob:
        """The knob of a technique that ``knob`` names."""
        name = self.text("knob")
        for one in of.knobs:
            if one.name == name:
                return one
        raise SettingError(f"{self.prefix}knob: {of.title} has no knob {shown(name)}.")

    def choice(self, name: str, of: Collection[str]) -> str:
        """One of some texts."""
        value = self.text(name)
        if value not in of:
            raise SettingError(f"{self.prefix}{name} must be one of {', '.join(of)}, not {shown(value)}.")
        return value

    def given(self, name: str) -> float:
        """A number that must be there."""
        value = self.number(name)
        if value is None:
            raise SettingError(f"{self.prefix}{name} is missing; it must be a number.")
        return value

    def title(self, known: Collection[str], name: str = "title") -> str:
        """A text that must be there, with no names in braces but those of ``known``."""
        title = self.text(name)
        try:
            wrong = [one for _, one, _, _ in string.Formatter().parse(title) if one is not None and one not in known]
        except ValueError as error:
            raise SettingError(f"{self.prefix}{name} cannot be read: {error}.") from None
        if not title or wrong:
            names = ", ".join(sorted(known)) or "none"
            raise SettingError(f"{self.prefix}{name} must be a title; names in braces that it may contain: {names}.")
        return title

    def entry(self, known: Collection[str], rest: bool = False) -> Entry:
        """A technique with its knobs; with ``rest``, the table may have other fields, which are read elsewhere."""
        of, knobs, computed = self.technique(), Values(self.table("knobs")), Values(self.table("computed"))
        try:
            checked(of.knobs, knobs, of.title)
        except PlainError as error:
            raise SettingError(f"{self.prefix}knobs: {error}") from None
        names = {one.name for one in of.knobs}
        for knob, name in computed.items():
            if knob not in names or name not in known:
                raise SettingError(
                    f"{self.prefix}computed.{knob} must be a knob of {of.title}, and its value one of "
                    f"{', '.join(sorted(known)) or 'none'}, not {shown(name)}."
                )
        if not rest:
            self.require_known()
        return Entry(of, knobs, computed)

    def addition(self, known: Collection[str], on: Collection[str] = ()) -> Addition:
        """A way of speaking; ``on`` are the bench's names of those that it may be added to."""
        where = self.texts("on")
        needs = tuple(self._declared(one, "needs").name for one in self.texts("needs"))
        for one in where:
            if one not in on:
                raise SettingError(f"{self.prefix}on must be some of {', '.join(on) or 'none'}, not {shown(one)}.")
        found = Addition(
            self.title(known),
            tuple(one.entry(known) for one in self.tables("techniques")),
            self.flag("each"),
            where,
            needs,
            not self.flag("unjudged"),
            self.flag("headline"),
        )
        self.require_known()
        return found

    def _declared(self, name: str, field: str) -> Technique:
        try:
            return technique(name)
        except PlainError as error:
            raise SettingError(f"{self.prefix}{field}: {error}") from None


def read(name: str) -> Read:
    """The file of the bench called ``name``. Raises :class:`SettingError` if it cannot be read."""
    path = resource("benches", f"{name}.toml")
    return read_file(path, f"resources/benches/{path.name}")


def read_file(path: Path, where: str) -> Read:
    """The file at ``path``, which messages call ``where``. Raises :class:`SettingError` if it cannot be read."""
    try:
        data = parsed_toml(read_text(path))
    except (OSError, ValueError) as error:
        raise SettingError(f"{where} could not be read: {error}.") from error
    return Read(data, f"{where}: ")
