"""Blocks of Python in the documents: all are Python, and those that need nothing else run."""

import ast
import os
from pathlib import Path

import pytest

from tests.documents.blocks import DOCUMENTS, Block, blocks, name
from tests.documents.running import Runner, prepared_voices  # noqa: F401
from tests.engine.command_line import loaded

NOT_RUN = {
    "average-velocity.md": "needs the official package; tests/engine/export/test_f5_tts.py runs it there",
    "official-package.md": "needs the official package and its checkpoint; test_f5_tts.py runs the module there",
    "servers.md": "runs in another program; the tests of its target run the module",
    "speech-server.md": "needs a server; tests/engine/serving/test_speech_server.py asks it in both ways",
    "your-own-model.md": "a package in parts; tests/plugins/test_plugins.py installs and uses it",
    "your-own-technique.md": "a package in three parts; test_tutorial.py installs and uses it",
}
"""Documents whose blocks are read only, and why."""
LANGUAGES = ("python", "py")
FEWER = {
    '{"steps": 16}': '{"steps": 2}',
    "[0.05, 0.1, 0.2]": "[0.2]",
    '"Rice is often served in round bowls.", "Milk."], threshold=0.2': '"Rice."], threshold=0.2, options={"steps": 2}',
    "seed=3)": 'seed=3, options={"steps": 2})',
    "A whole book.": "A book.",
}


def python(document: Path) -> list[Block]:
    return [one for one in blocks(document) if one.language in LANGUAGES]


WITH_PYTHON = [one for one in DOCUMENTS if python(one)]
RUN = [one for one in WITH_PYTHON if name(one) not in NOT_RUN]


@pytest.mark.parametrize("document", WITH_PYTHON, ids=name)
def test_it_is_python(document: Path) -> None:
    for block in python(document):
        ast.parse(block.text, f"{name(document)}:{block.line}")


@pytest.mark.parametrize("document", RUN, ids=name)
def test_it_runs(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a document in one module, where files that it names are there."""
    Runner(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paretone.setting.profile.load_model", loaded)
    found: dict[str, object] = {"__name__": "document"}
    for block in python(document):
        text = block.text
        for given, instead in FEWER.items():
            text = text.replace(given, instead)
        exec(compile(text, f"{name(document)}:{block.line}", "exec"), found)
    assert len(found) > 2, "it makes something"
    assert os.getcwd() == str(tmp_path)


def test_those_that_are_not_run_are_there() -> None:
    assert set(NOT_RUN) & set(map(name, DOCUMENTS)) <= set(map(name, WITH_PYTHON))
    assert RUN
