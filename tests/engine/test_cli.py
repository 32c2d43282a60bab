"""The command line without a model: help, lists, refusals."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import paretone
from paretone import models
from paretone.commands.technique_args import typed_technique
from paretone.errors import CheckpointError, PlainError, SettingError
from paretone.models.base import SpeechModel
from paretone.models.f5.checkpoint import VariantUnknown
from paretone.models.voices import shipped_names
from paretone.setting.knobs import Values
from paretone.setting.setting import UsedTechnique
from tests.engine.command_line import Console


@pytest.fixture
def without_model(console: Console, monkeypatch: pytest.MonkeyPatch) -> Console:
    """Runs the command line where it must not get as far as loading a model."""
    monkeypatch.setattr(models, "load_model", lambda name, **more: pytest.fail("a model was loaded"))
    return console


def test_help_is_quick_because_it_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from paretone.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        "    print(sorted({'torch', 'soundfile', 'PySide6', 'sqlite3'} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    for words in ("download", "speak", "calibrate", "compare", "bench", "130  Cancelled", "6  A profile or"):
        assert words in done.stdout


def test_commands_have_help_and_a_version(without_model: Console) -> None:
    for command in ("models", "calibrate"):
        assert "--json" in without_model.out(command, "--help")
    assert without_model("--version").out.strip() == f"paretone {paretone.__version__}"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("magic", "no technique named 'magic'"),
        ("steps:steps", "'steps' is not a knob of Step pruning; write KNOB=VALUE"),
        ("steps:steps=7,spacing=epss", "by ';', not ',', and put quotes.*: 'steps:steps=7;spacing=epss'"),
        ("steps:steps=2;steps=3", "'steps' of Step pruning is given twice; give each knob once"),
        ("steps:steps=seven", "Steps must be a number, not 'seven'"),
        ("speculative:weights=", "weights= names no weights"),
        ("ditreducio:weights=table", "DiTReducio has no knob named 'weights'"),
        ("speculative:weights=draft-2;tolerance=7", "must lie between"),
    ],
)
def test_techniques_that_cannot_be_read_are_refused(typed: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        typed_technique(typed)


def test_techniques_are_read_from_arguments() -> None:
    assert typed_technique("steps:steps=6; spacing=uniform").knobs == Values(steps=6, spacing="uniform", sway=-1.0)
    assert typed_technique("precision") == UsedTechnique("precision", Values(precision="bfloat16"))


def test_exit_codes_in_the_help_are_those_of_the_errors(without_model: Console) -> None:
    text = without_model("--help").out
    # Other modules' errors, which other tests may have imported, never reach the command line.
    for kind in (one for one in PlainError.__subclasses__() if one.__module__ == PlainError.__module__):
        assert f"{kind.exit_code}  {kind.__doc__.split('.')[0].split(';')[0]}" in text


def test_models_and_benches_are_listed(without_model: Console) -> None:
    data = without_model.data("models", "--json")
    found = {one["id"]: one for one in data["models"]}
    assert [found["F5TTS_v1_Base"][one] for one in ("licence", "downloadable")] == ["CC-BY-NC-4.0", True]
    assert tuple(one["id"] for one in data["voices"] if "f5-mini" in one["models"]) == shipped_names()
    knobs = {one["name"]: [knob["name"] for knob in one["knobs"]] for one in data["techniques"]}
    assert knobs["steps"] == ["steps", "spacing", "sway"] and knobs["guidance_free"] == ["weight", "guidance"]
    assert "download with: paretone download F5TTS_v1_Base" in without_model("models").out
    assert "skipping" in without_model.out("bench")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("speak", "--text", "a", "--out", "no/where.wav"), 1, "The folder no does not exist"),
        (("speak", "--text", "a", "--out", "."), 1, ". is a folder"),
        (("speak", "--text-file", "none.txt", "--out", "a.wav"), 3, "There is no text none.txt; check the path"),
        (("speak", "--text", " ", "--out", "a.wav"), 3, "There is no text to speak"),
        (("speak", "--text", "a", "--out", "a.wav", "--voice", "nobody"), 2, "There is no voice named 'nobody'"),
        (("speak", "--text", "a", "--out", "a.wav", "--voice", "none.wav"), 4, "There is no recording none.wav"),
        (("speak", "--text", "a", "--out", "a.wav", "--transcript", "b"), 4, "--transcript needs a recording"),
        (("speak", "--text", "a", "--out", "a.wav", "--profile", "none.json"), 6, "There is no profile none.json"),
        (("calibrate", "--text", "a"), 2, "No output: give"),
        (("calibrate", "--table", "t.json", "--technique", "ditreducio:metric=relative"), 2, "DiTReducio are options"),
        (("search-grid", "--grid", "g.json", "--technique", "ditreducio"), 2, "its strategy table, which this command"),
        (("group-tokens", "--technique", "token_groups:similarity=0.5"), 2, "are options of this command; see --help"),
        (("calibrate", "--table", "t.json", "--transcript", "a"), 4, "more --transcript options than recordings"),
        (("calibrate", "--table", "t.json", "--text-file", "/dev/null"), 3, "it is a device; choose a regular file"),
        (("calibrate", "--table", "t.json", "--threshold", "1", "--thresholds", "1"), 2, "--threshold or --thresholds"),
        (("calibrate", "--table", "t.json", "--thresholds", "0.1", "0.2", ".1"), 2, "has a threshold twice"),
        (("calibrate", "--table", "t.json", "--thresholds", "0.1", "9"), 2, "Threshold must lie between"),
        (("download", "f5-mini"), 2, "F5 mini comes with Paretone"),
        (("models", "--folder", "no/where"), 5, "There is no folder no/where; check the path."),
        (("download", "F5TTS_Base", "--accept-licence", "MIT"), 2, "is published under CC-BY-NC-4.0, not MIT"),
        (("calibrate", "--profile", "p.json", "--steps", "0"), 2, "Steps must lie between"),
        (("compare", "baseline", "baseline"), 2, "Both sides are 'baseline'"),
        (("compare", "baseline", "steps=5", "--model", "f5-mini"), 2, "'steps=5' names none; write the other side out"),
        (("compare", "steps=5", "steps=5.0", "--model", "f5-mini"), 2, "are the same setting with the same seed"),
        (("compare", "baseline", "seed=0"), 2, "'seed=0' names none; name a technique"),
        (("compare", "baseline", "nonsense"), 2, "'nonsense' is not a side"),
        (("compare", "baseline", " "), 2, "A side of the comparison is empty"),
        (("compare", "baseline", "table="), 2, "table= names no file; write its path"),
        (("compare", "baseline", "steps=4", "--folder="), 2, "argument --folder: its value is empty; give one"),
        (("compare", "baseline", "steps=4,steps=8"), 2, "'steps' is given twice"),
        (("compare", "baseline", "seed=-1"), 2, "seed must be a whole number between 0 and 2**63 - 1, not -1"),
        (("compare", "baseline", "technique=steps,technique=steps:steps=3"), 2, "Step pruning is given twice"),
        (("speak", "--text", "a", "--out", "a.wav", "--keep-profile", "./a.wav"), 1, "keep-profile name the same file"),
        (("speak", "--text", "a", "--out", "a.wav", "--profile", "a.wav"), 1, "--profile and --out name the same file"),
        (("speak", "--text", "a", "--out", "a.wav", "--keep-profile", ""), 1, "The name of a file to write is empty"),
        (("roofline", "--trace", "t.json", "--csv", "t.json"), 1, "--trace and --csv name the same file"),
        (("export", "--target", "f5-tts", "--profile", "p", "--out", ""), 1, "The name of a folder to write is empty"),
        (("study", "run", "x" * 300), 1, "xxx… is too long for a file; check it, or choose a shorter one."),
        (("speak", "--model", "MegaTTS3", "--text", "Rice.", "--out", "o.wav"), 5, "Type: paretone download MegaTTS3"),
    ],
)
def test_errors_are_one_sentence_and_an_exit_code(
    without_model: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple, code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = without_model(*arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert words in outcome.err and "Traceback" not in outcome.err
    as_json = without_model(*arguments, "--json")
    assert as_json.code == as_json.data["exit_code"] == code
    assert words in as_json.data["error"]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "arguments", [(), ("dance",), ("speak", "--text", "a"), ("speak", "--steps", "x", "--text", "a", "--out", "b")]
)
def test_arguments_that_make_no_sense(without_model: Console, arguments: tuple[str, ...]) -> None:
    outcome = without_model(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "usage: paretone" in outcome.err
    for asked in ("--json", "--js"):
        as_json = without_model(*arguments, asked)
        assert as_json.code == as_json.data["exit_code"] == 2
        assert as_json.data["error"] in as_json.err


def test_an_architecture_that_nothing_says_is_asked_for(
    without_model: Console, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def undecided(model: str, folder: str, variant: str, **more: object) -> SpeechModel:
        if not variant:
            raise VariantUnknown(Path(folder) / "model.safetensors", ("F5TTS_v1_Base", "F5TTS_Base"))
        raise CheckpointError(f"Asked for {variant}.")

    monkeypatch.setattr(models, "load_model", undecided)
    arguments = "speak", "--text", "a", "--out", tmp_path / "a.wav", "--folder", tmp_path
    said = without_model.refusal(*arguments, code=5)
    assert said.strip().endswith("Here: --variant F5TTS_v1_Base or --variant F5TTS_Base.")
    assert "Asked for F5TTS_Base." in without_model(*arguments, "--variant", "F5TTS_Base").err


def test_the_unforeseen_gets_a_sentence_and_a_traceback(
    without_model: Console, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*arguments: object, **more: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(models, "load_model", broken)
    outcome = without_model("speak", "--text", "a", "--out", tmp_path / "a.wav", "--json")
    assert outcome.code == 1
    assert "boom" in outcome.data["error"]
    assert "Traceback" in outcome.err
