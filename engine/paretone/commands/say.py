"""``paretone say``: what is read in a text, and words taught to the bundled models."""

from __future__ import annotations

import argparse

from paretone.commands import arguments
from paretone.commands.command import Result
from paretone.commands.terminal import Session
from paretone.errors import TextError
from paretone.front_end.pronunciations import lexicon_file
from paretone.sampling.options import DATES
from paretone.wording import counted

NAME = "say"
SUMMARY = "Print a text as the bundled models read it, or teach them a word."


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", metavar="TEXT", help="text to read")
    parser.add_argument("--text-file", metavar="FILE", help="file with the text, UTF-8; - for standard input")
    parser.add_argument("--phones", action="store_true", help="print phonemes in place of words")
    parser.add_argument("--dates", choices=DATES.values, default=DATES.default, help=DATES.meaning)
    group = parser.add_argument_group("lexicon")
    group.add_argument(
        "--teach",
        nargs=2,
        metavar=("WORD", "SAID"),
        help="have WORD said as a respelling (PAIR-uh-tone) or as IPA (/ˈpɛɹətoʊn/), by all bundled models",
    )
    group.add_argument("--forget", metavar="WORD", help="say WORD as before")
    group.add_argument("--taught", action="store_true", help="list the words that were taught")


def run(options: argparse.Namespace, session: Session) -> Result:
    from paretone import saying

    if options.text is not None and options.text_file is not None:
        raise TextError("There are a text and a text file; give one of them.")
    lines: list[str] = []
    data: dict[str, object] = {}
    if options.teach is not None:
        word, said = options.teach
        data = {"word": word, "phonemes": saying.teach(word, said)}
        lines.append(f"{word} is said {data['phonemes']}; it is kept in {lexicon_file()}.")
    if options.forget is not None:
        saying.forget(options.forget)
        lines.append(f"{options.forget} is said as before.")
    if options.taught:
        words = saying.lexicon()
        data["taught"] = words
        lines += [f"{counted(len(words), 'word', 'words')} in {lexicon_file()}."]
        lines += [f"{word} = {said}" for word, said in words.items()]
    if options.text is not None or options.text_file is not None:
        read = saying.say(arguments.text(options), dates=options.dates, phones=options.phones)
        data |= read.to_json()
        lines += [str(read), *read.notes]
    if not lines:
        raise TextError("There is nothing to read; give a text, --text-file, --teach, --forget or --taught.")
    return Result(data, "\n".join(lines))
