"""Every command that a guide prints is one that the command line takes."""

import functools
from pathlib import Path

import pytest

from paretone import bench, cli
from paretone.commands.arguments import ArgumentsError, Parser
from tests.documents.blocks import DOCUMENTS, commands, name

GUIDES = [one for one in DOCUMENTS if any(each.arguments for each in commands(one))]


parser_of = functools.cache(cli.parser)


def read(words: list[str]) -> None:
    if words[0] != "bench":
        parser_of(words[0]).parse_args(words)
    elif len(words) > 1:
        parser = Parser()
        parser.add_argument("--json", action="store_true")
        getattr(bench.bench(words[1]), "add_arguments", lambda _: None)(parser)
        parser.parse_args(words[2:])


@pytest.mark.parametrize("guide", GUIDES, ids=name)
def test_commands_are_read_as_printed(guide: Path) -> None:
    for command in commands(guide):
        try:
            read(command.arguments or ["models"])
        except ArgumentsError as error:
            pytest.fail(f"{command}\n{error}")


def test_a_command_that_there_is_not_is_refused() -> None:
    for words in (["spoke", "--text", "One."], ["bench", "ssd", "--tolerances", "0.4"]):
        with pytest.raises(ArgumentsError):
            read(words)
