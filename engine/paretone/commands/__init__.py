"""The commands of the command line, one module each.

A command is a module with ``NAME``, ``SUMMARY``, ``declare(parser)``, which adds its arguments, and ``run(options,
session)``, which does the work and returns a :class:`paretone.commands.command.Result`. To add a command, add its
module and name it in ``OURS``; techniques bring their own. All are torch-free at import.
"""

from __future__ import annotations

from paretone.commands import (
    compare,
    doctor,
    download,
    export,
    judge,
    load,
    models,
    roofline,
    samples,
    say,
    serve,
    speak,
    study,
    tokens,
    train,
    view,
)
from paretone.commands.command import Command, technique_commands

OURS = (
    *(models, download, speak, say, study, compare, judge, export, serve, load),
    *(tokens, train, view, samples, roofline, doctor),
)
"""Commands that belong to no technique."""


def commands() -> tuple[Command, ...]:
    """All commands, in the help's order. Those of two words, such as ``train draft``, are subcommands of the first."""
    ours = tuple(map(Command.of, OURS))
    names = ("bench", *(one.name for one in ours))
    return (*ours, *(one for one in technique_commands(names) if " " not in one.name))
