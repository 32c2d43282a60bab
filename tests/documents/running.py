"""Printed commands, run for real: in this process, one after another in one folder, on a short text.

Models are loaded once for all commands. The shipped voices say only the beginning of their prompts.
"""

import contextlib
import io
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from paretone import cli, models
from paretone.models import catalogue, voices
from paretone.models.voices import PLACE
from paretone.sampling.actions import SkipAction
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import compatibility_of
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.training.natural_corpus import CorpusOptions, make_corpus
from tests.documents.blocks import ROOT, Command
from tests.documents.rules import ADDED, FEWER, SHORTER
from tests.engine.command_line import loaded
from tests.engine.training.toy_natural import Hummer
from tests.prompts import shortened
from tests.workload import is_thorough

STUDY = """
model = "f5-mini"
sentences = ["Rice."]

[options]
steps = 2

[grid]
"steps.steps" = ["off", 1]
"""
SAMPLES = """
title = "Two samples"
introduction = "One step, and what it is compared with."
text = "Rice."
voice = "anna"
seed = 1

[[sample]]
name = "plain"
title = "Plain"
model = "f5-mini"
"""
"""Files of the reader's own that documents name."""


@dataclass(frozen=True)
class Outcome:
    words: list[str]
    """What was run."""
    code: int
    out: str
    err: str


class Runner:
    """Runs commands of ``document`` in ``folder``, which has the files that readers are told to save or have."""

    def __init__(self, folder: Path, document: Path | None = None) -> None:
        self.folder = folder
        speech = voices.resource(*PLACE) / "anna.wav"
        for name in ("take", "voice", "seed0", "seed1", "seed2", "person"):
            shutil.copyfile(speech, folder / f"{name}.wav")
        for name in ("ten", "eight", "chapter"):
            (folder / f"{name}.txt").write_text("Rice.\n", encoding="utf-8")
        (folder / "my.toml").write_text(STUDY, encoding="utf-8")
        (folder / "my-samples.toml").write_text(SAMPLES, encoding="utf-8")
        (folder / "heard").mkdir()
        rows = (f"{one}.wav,Rice is often served." for one in ("take", "voice", "seed0", "seed1", "seed2"))
        (folder / "data.csv").write_text("\n".join(["audio,text", *rows]) + "\n", encoding="utf-8")
        studies = folder / "resources" / "studies"
        shutil.copytree(ROOT / "resources" / "studies", studies)
        for one in (studies / "papers").glob("*.toml"):
            one.write_text(fewer(one.read_text(encoding="utf-8")), encoding="utf-8")
        self.profile(folder / "p.json")
        shutil.copyfile(folder / "p.json", folder / "my.json")
        if is_thorough() and document and "paretone train voice-corpus" not in document.read_text(encoding="utf-8"):
            few = CorpusOptions(voices=2, sentences=4, held_out_voices=1, held_out_sentences=2)
            make_corpus(folder / "runs" / "voice-corpus", few, lambda: Hummer(frames=150))
        for name, text in saved(document).items() if document else ():
            (folder / name).write_text(fewer(text), encoding="utf-8")

    def __call__(self, command: Command) -> Outcome:
        """Run a command of ``paretone``."""
        words = shorter(command.arguments or [], self.folder)
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            patch.chdir(self.folder)
            patch.setattr(models, "load_model", loaded)
            try:
                code = cli.main(words)
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Outcome(words, code, out.getvalue(), err.getvalue())

    def profile(self, path: Path) -> None:
        """Write a profile with a strategy table made by hand."""
        model = loaded("f5-mini", device="cpu")
        setting = Setting("f5-mini", catalogue.entry("f5-mini").options_with(steps=4), seed=3)
        table = StrategyTable.computing(compatibility_of(model.info, setting), model.info.layers)
        for layer in range(1, model.info.layers):
            table = table.changed(layer, 2, SkipAction.TS)
        used = UsedTechnique("ditreducio", artefact=table.fingerprint)
        Profile.of(setting.with_technique(used), model.info, (table,)).save(path)


_SAVED = re.compile(r"[Ss]ave this as `([\w.-]+)`.*?^```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)


def saved(document: Path) -> dict[str, str]:
    """Files that a document has its readers save, by name: "Save this as `name`", and the block after it."""
    return {found[1]: found[2] for found in _SAVED.finditer(document.read_text(encoding="utf-8"))}


def fewer(text: str) -> str:
    for pattern, instead in FEWER:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text


def shorter(arguments: list[str], folder: Path) -> list[str]:
    """``arguments`` with less to say and fewer steps, and with the files in ``folder`` that ``*`` stands for."""
    words: list[str] = []
    for word in arguments:
        value = SHORTER.get(words[-1]) if words and word != "0" else None
        found = sorted(folder.glob(word)) if "*" in word and value is None else []
        words += [str(one.relative_to(folder)) for one in found] or [fewer(word) if value is None else value]
    if "--as" in words and "--table" in words and words[0] == "speak":
        words += ["--steps", "2"]
    if "--features" in words:  # One sentence in every voice leaves too little to learn from and be held out.
        words[words.index("--sentences") + 1] = "4"
    if words[0] == "compare":
        words = [f"{word},steps=2" if ",table=" in word else word for word in words]
    for option, *values in ADDED.get(words[0], ADDED.get(" ".join(words[:2]), ())):
        if option not in words and not (option == "--steps" and "lm-mini" in words):
            words += [option, *values]
    return words


@pytest.fixture(scope="module", autouse=True)
def prepared_voices() -> Iterator[None]:
    """Let the shipped voices say only the beginning of their prompts."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        resource, short = voices.resource, shortened(Path(folder))
        patch.setattr(voices, "resource", lambda *parts: short if parts == PLACE else resource(*parts))
        yield
