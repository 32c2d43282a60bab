"""The parser of commands: what is wrong with arguments is an error like any other."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from paretone.by_name import nearest
from paretone.commands import streams
from paretone.errors import SettingError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class ArgumentsError(SettingError):
    """Arguments that a command does not have, or that it cannot use; ``usage`` says how it is called."""

    usage = ""


MAY_BE_EMPTY = frozenset({"--transcript"})
"""Options whose empty value says something."""
SAID_LATER = frozenset({"--text", "--text-file", "--voice", "--out", "--keep-profile", "--technique"})
"""Options whose commands say what is wrong with an empty value."""


class Parser(argparse.ArgumentParser):
    """Raises :class:`ArgumentsError`, where argparse would print and exit. Subcommands get the same kind of parser."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse an empty value, as a script gives that leaves a variable unset: it would pass for an option that was
        left out."""
        near = nearest(str(value), map(str, action.choices or ()))
        if near and value not in (action.choices or ()):
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {near!r}?")
        super()._check_value(action, value)
        options = set(action.option_strings)
        if value == "" and options and options.isdisjoint(MAY_BE_EMPTY | SAID_LATER):
            raise argparse.ArgumentError(action, "its value is empty; give one, or leave the option out")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As argparse does, but an unknown option that is like one of this command's is refused here, where these are
        known."""
        found, rest = super().parse_known_args(args, namespace)
        for one in rest:
            near = one.startswith("--") and nearest(one.partition("=")[0], self._option_string_actions)
            if near:
                self.error(f"unrecognized option: {one}; did you mean {near}?")
        return found, rest

    def error(self, message: str) -> NoReturn:
        error = ArgumentsError(f"{self.prog}: error: {message}")
        error.usage = self.format_usage()
        raise error

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Help must arrive like any other output; argparse would let it be lost without a word."""
        if file is sys.stdout:
            streams.show(message.removesuffix("\n"))
        else:
            super()._print_message(message, file)


def asks_for_json(arguments: list[str]) -> bool:
    """Whether ``--json``, which may be cut short, is among ``arguments``: known before they are parsed."""
    return any(len(one) > len("--") and "--json".startswith(one) for one in arguments)
