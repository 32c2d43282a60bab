"""A command of the command line, its result, and the commands that techniques bring."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from paretone.techniques.registry import brought, registry

if TYPE_CHECKING:
    from paretone.commands.terminal import Session


@dataclass(frozen=True)
class Result:
    """JSON values for machines, text for people; both give the same numbers."""

    data: Mapping[str, object]
    text: str = ""
    problem: str = ""
    """Why there is only a part of it, as a sentence for standard error; ``""`` for the whole."""
    exit_code: int = 0


@dataclass(frozen=True)
class Command:
    """A command that shares its module with others; the only one of a module may be the module itself, with the same
    names in capitals: ``NAME``, ``SUMMARY``, ``declare`` and ``run``."""

    name: str
    summary: str
    declare: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Session], Result]

    @classmethod
    def of(cls, given: ModuleType | Command) -> Command:
        if isinstance(given, Command):
            return given
        return cls(given.NAME, given.SUMMARY, given.declare, given.run)


def technique_commands(names: Iterable[str]) -> tuple[Command, ...]:
    """The commands of techniques. One that cannot be imported, or has one of the ``names`` of other commands, is left
    out."""
    taken = set(names)
    found = []
    for technique, there in brought("commands"):
        command = Command.of(there)
        if command.name in taken:
            registry().report(
                f"{technique.title}: its command {command.name!r} was left out: there is one of that name; rename it."
            )
            continue
        taken.add(command.name)
        found.append(command)
    return tuple(found)
