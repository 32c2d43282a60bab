"""Printed commands are run, or rules say why not: in the gate one of each kind and page, all with ``--thorough``."""

import itertools
import re
import shlex
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.documents.blocks import DOCUMENTS, ROOT, SHELL, Command, blocks, commands, name
from tests.documents.rules import NOT_RUN, ONLY_IN_FULL, REFUSED, Rule
from tests.documents.running import Runner, prepared_voices  # noqa: F401
from tests.workload import is_thorough

LANGUAGES = {*SHELL, "text", "python", "toml", "json", "yaml", "csv"}
"""What blocks may be called: commands, output, code and files."""
ALL = [one for document in DOCUMENTS for one in commands(document)]


def rules_of(command: Command) -> list[Rule]:
    return [one for one in (*NOT_RUN, *ONLY_IN_FULL) if one.matches(command.text, name(command.document))]


def run_here(command: Command) -> bool:
    """Whether the tests run it, as thorough as they are."""
    rules = rules_of(command)
    return not rules or (is_thorough() and rules[0] in ONLY_IN_FULL)


def kind(command: Command) -> frozenset[str]:
    """The command, its subcommand, and what it is for."""
    words = command.words[1:]
    called = {word for word in words[:2] if re.fullmatch(r"[\w-]+", word)}
    return frozenset(
        called | {after for before, after in itertools.pairwise(words) if before in ("--judge", "--target")}
    )


def files(command: Command) -> set[str]:
    """Files and folders that it names."""
    words = (word for word in command.words[1:] if " " not in word and not word.endswith("."))
    return {word.partition("/")[0].rpartition("=")[2] for word in words if re.search(r"\w[./]", word)}


def makes(command: Command, needed: set[str]) -> bool:
    """Whether some of the files ``needed`` may be its work: a comparison only reads what it does not name as output."""
    outputs = {after.partition("/")[0] for before, after in itertools.pairwise(command.words) if before == "--out"}
    return bool(needed & (outputs if "compare" in command.words[:2] else files(command)))


def chosen() -> dict[Path, list[Command]]:
    """Commands to run of each page, in their order."""
    found: dict[Path, list[Command]] = {}
    known: set[frozenset[str]] = set()
    for document in DOCUMENTS:
        there = [one for one in commands(document) if run_here(one)]
        kept: list[Command] = []
        for one in there:
            if is_thorough() or one is there[0] or kind(one) not in known:
                kept.append(one)
            known.add(kind(one))
        needed: set[str] = set()
        for one in reversed(there):  # What makes their files runs as well.
            if one in kept or makes(one, needed):
                needed |= files(one)
                found.setdefault(document, []).insert(0, one)
    return found


RUN = chosen()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("document", RUN, ids=name)
def test_commands_run_as_printed(document: Path, tmp_path: Path) -> None:
    """One after another in one folder, as a reader would."""
    run = Runner(tmp_path, document)
    for command in RUN[document]:
        outcome = run(command)
        if refusal := REFUSED.get(shlex.join(command.words[1:])):
            assert outcome.code and refusal in outcome.err, command
            continue
        assert outcome.code == 0, f"{command}\nrun as: {outcome.words}\n{outcome.err[-2000:]}"
        assert outcome.out.strip(), f"{command} prints nothing"
        assert "Traceback" not in outcome.err, command


def test_a_command_is_run_or_one_rule_says_why_not() -> None:
    for command in ALL:
        rules = rules_of(command)
        assert len(rules) <= 1, f"{command}: {[one.pattern for one in rules]}"
        assert rules or command.arguments, f"{command}: another program's command needs a rule that says who runs it"


@pytest.mark.parametrize("rule", [*NOT_RUN, *ONLY_IN_FULL], ids=lambda one: one.pattern)
def test_a_rule_is_about_a_command_and_names_tests_that_there_are(rule: Rule) -> None:
    about = {name(one.document) for one in ALL if fnmatch(name(one.document), rule.page)}
    if about or rule.page == "*":
        assert any(rule.matches(one.text, name(one.document)) for one in ALL), "nothing is printed that it is about"
    for named in re.findall(r"test_\w+\.py", rule.reason):
        assert list((ROOT / "tests").rglob(named)), named


def test_most_commands_are_run() -> None:
    assert sum(not rules_of(one) for one in ALL) > 75
    assert len(RUN) > 35
    assert {kind(one) for commands in RUN.values() for one in commands} == {kind(one) for one in ALL if run_here(one)}


def test_blocks_say_what_they_are() -> None:
    """Whatever has no language is taken for commands."""
    for block in (each for document in DOCUMENTS for each in blocks(document)):
        known = block.language in LANGUAGES or block.language.startswith("{")
        assert known, f"{name(block.document)}:{block.line} is called {block.language!r}"
