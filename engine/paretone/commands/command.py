"""A command of the command line, its result, and the commands of techniques."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from paretone.techniques.registry import brought, report_taken

if TYPE_CHECKING:
    from paretone.commands.terminal import Session


@dataclass(frozen=True)
class Result:
    """JSON values for machines and text for people, with the same numbers."""

    data: Mapping[str, object]
    text: str = ""
    problem: str = ""
    """Reason for an incomplete result, as a sentence for standard error; ``""`` if complete."""
    exit_code: int = 0


@dataclass(frozen=True)
class Command:
    """A command; a module with the names ``NAME``, ``SUMMARY``, ``declare`` and ``run`` is one, too."""

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
    """Commands of techniques. A command that cannot be imported, or has one of ``names``, is left out."""
    taken = set(names)
    found = []
    for technique, there in brought("commands"):
        command = Command.of(there)
        if command.name in taken:
            report_taken(technique, "command", command.name)
            continue
        taken.add(command.name)
        found.append(command)
    return tuple(found)
