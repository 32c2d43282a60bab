"""Messages of the command line about values that an option does not take."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from paretone import cli
from paretone.commands import arguments
from tests.engine.command_line import Console

PLAIN = (int, float, Path)
"""Of these argparse says something that people understand."""


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Those of ``parser`` and of all commands below it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from actions(one)
        else:
            yield action


TYPES = {one.type for one in actions(cli.parser()) if one.type not in (None, *PLAIN)}


@pytest.mark.parametrize("text", ["abc", "1/0"])
@pytest.mark.parametrize("kind", sorted(TYPES, key=lambda one: one.__name__), ids=lambda one: one.__name__)
def test_types_say_what_they_want(kind: object, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as error:
        kind(text)
    assert str(error.value).startswith("must be ") and str(error.value).endswith(f", not {text!r}")


SPEAK = ("speak", "--text", "Rice.", "--out", "o.wav")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("train", "draft", "--upper", "-1"), "--upper: must be a whole number from 0, not '-1'"),
        (("train", "draft", "--lower", "0"), "--lower: must be a whole number from 1, not '0'"),
        (("train", "draft", "--rate", "nan"), "--rate: must be a number above 0, not 'nan'"),
        (("train", "spade", "--layers", "top"), "--layers: must be a list of layers such as 0,1,5, not 'top'"),
        (("train", "cfg-free", "--w", "1/0"), "must be a number, or a fraction such as 2/3, not '1/0'"),
        (("train", "draft", "--minutes", "inf"), "--minutes: must be a number above 0, not 'inf'"),
        (("train", "draft", "--seed", "-1"), "--seed: must be a whole number between 0 and 2**63 - 1, not '-1'"),
        (("train", "draft", "--spoken-share", "nan"), "--spoken-share: must be a number, not 'nan'"),
        (("bench", "intelligibility", "--sentences", "0"), "--sentences: must be a whole number from 1, not '0'"),
        (("doctr",), "invalid choice: 'doctr'; did you mean 'doctor'?"),
        (("view", "tabels"), "invalid choice: 'tabels'; did you mean 'tables'?"),
        (("bench", "stacked", "--ruonds", "3"), "unrecognized option: --ruonds; did you mean --rounds?"),
        ((*SPEAK, "--techniqe=steps"), "unrecognized option: --techniqe=steps; did you mean --technique?"),
        ((*SPEAK, "--xyz"), "unrecognized arguments: --xyz"),
        ((*SPEAK, "--model", "f5-minni"), "There is no model named 'f5-minni'; did you mean 'f5-mini'?"),
        ((*SPEAK, "--voice", "ana"), "There is no voice named 'ana'; did you mean 'anna'? Use a recording"),
        ((*SPEAK, "--technique", "SSD"), "There is no technique named 'SSD'; did you mean 'speculative'?"),
        ((*SPEAK, "--technique", "multistp"), "There is no technique named 'multistp'; did you mean 'multistep'?"),
        ((*SPEAK, "--technique", "steps:spacin=epss"), "has no knob named 'spacin'; did you mean 'spacing'?"),
        (("compare", "baseline", "guidence=1", "--text", "Rice."), "named 'guidence'; did you mean 'guidance'?"),
    ],
)
def test_what_an_option_wants_and_what_may_be_meant_is_said(typed: tuple, words: str, console: Console) -> None:
    assert words in console.refusal(*typed, code=2)


def test_what_fits_is_taken() -> None:
    assert {arguments.positive, arguments.count, arguments.above_zero} < TYPES, "there are types of our own to look at"
    assert [arguments.positive("1"), arguments.count("0"), arguments.above_zero("1e-4")] == [1, 0, 1e-4]
    options = cli.parser().parse_args(["train", "cfg-free", "--w", "2/3", "--work", "runs", "--steps", "1"])
    assert options.weight == pytest.approx(2 / 3)
