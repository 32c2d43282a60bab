"""A command, its result, and the session that carries it out: by the same executor as the window, directly."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from paretone import models
from paretone.commands.terminal import Terminal
from paretone.errors import Cancelled, SettingError
from paretone.models.base import SpeechModel
from paretone.session.commands import Command as EngineCommand
from paretone.session.commands import LoadModel
from paretone.session.events import Event
from paretone.techniques.registry import brought, registry

if TYPE_CHECKING:
    from paretone.session.executor import Executor


@dataclass(frozen=True)
class Result:
    """JSON values for machines, text for people; both give the same numbers."""

    data: Mapping[str, object]
    text: str = ""
    problem: str = ""
    """Why there is only a part of it, as a sentence for standard error; ``""`` for the whole."""
    exit_code: int = 0


JOB = 1
"""The number of all jobs: the command line has one at a time."""


class Session:
    """An executor, which is there once something is to be done, and the terminal that shows what it does."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._executor: Executor | None = None

    def carry_out(self, command: EngineCommand, hear: Callable[[Event], None] | None = None) -> Any:
        """Do what ``command`` says; the event that says what came of it.

        ``hear`` is called with every event before that, in place of :meth:`Terminal.hear`. Raises what goes wrong, and
        :class:`paretone.errors.Cancelled`.
        """
        self.terminal.begin()
        try:
            return self._here.carry_out(command, hear or self.terminal.hear, self.terminal.cancelled)
        except KeyboardInterrupt as interruption:
            # What the command says after a cancelled job, such as what was kept, holds here as well.
            raise Cancelled from interruption

    def load(
        self, model: str, folder: str = "", variant: str = "", device: str = "auto", vocoder: str = ""
    ) -> SpeechModel:
        """Load a model in place of the present one."""
        self.terminal.status(f"Loading {model}")
        self.carry_out(LoadModel(JOB, model, folder, variant, device, vocoder))
        if self._here.model is None:
            raise SettingError("No model is loaded.")
        return self._here.model

    def another(self) -> Session:
        """Another session on the same terminal, for a second model."""
        return Session(self.terminal)

    @property
    def machine(self) -> str:
        """The machine in a line."""
        return self._here.machine

    @property
    def _here(self) -> Executor:
        if self._executor is None:
            from paretone.session.executor import Executor  # Imports torch.

            # Looked up now, so that a replacement takes effect.
            self._executor = Executor(models.load_model)
        return self._executor


@dataclass(frozen=True)
class Command:
    """A command that shares its module with others; the only one of a module may be the module itself, with the same
    names in capitals: ``NAME``, ``SUMMARY``, ``declare`` and ``run``."""

    name: str
    summary: str
    declare: Callable[[argparse.ArgumentParser], None]
    """Adds its arguments."""
    run: Callable[[argparse.Namespace, Session], Result]
    """Has the work done."""

    @classmethod
    def of(cls, given: ModuleType | Command) -> Command:
        """The command that ``given`` is."""
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
