"""Runs the work of command-line commands by the same executor as the window, directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paretone import models
from paretone.commands.terminal import Terminal
from paretone.errors import Cancelled, SettingError
from paretone.models.base import SpeechModel
from paretone.session.commands import Command, LoadModel
from paretone.session.events import Event

if TYPE_CHECKING:
    from paretone.session.executor import Executor

JOB = 1
"""The number of all jobs: the command line has one at a time."""


class Session:
    """An executor, which is there once something is to be done, and the terminal that shows what it does."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._executor: Executor | None = None

    def carry_out(self, command: Command, hear: Callable[[Event], None] | None = None) -> Any:
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
