"""The command that trains the bundled models anew."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from paretone.errors import TrainingError
from paretone.models.minis.natural_vocoder import MelReader
from paretone.training.natural_corpus import CorpusOptions, make_corpus
from tests.engine.training.toy_natural import Hummer
from tests.tools.recipes import bundled_training
from tests.tools.recipes.__main__ import SUMMARIES, main
from tests.tools.recipes.bundled_training import RECIPES
from tests.workload import only_in_full, workload

FRAMES = ("NaturalF5Options", "NaturalMegaOptions", "OmniOptions")
SMALLER: dict[str, dict[str, int]] = {
    **{name: {"frames": 400, "validation_items": 2} for name in FRAMES},
    "LmOptions": {"positions": 500, "validation_items": 2},
    "NaturalTokenOptions": {"batch": 2, "validation_items": 2},
    "VocoderOptions": {"batch": 2, "validation_items": 2},
}
"""What a step of each recipe learns from and is validated on; all of it where tests are thorough."""


@pytest.fixture
def few_clips(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, smaller in workload({}, SMALLER).items():
        monkeypatch.setattr(bundled_training, name, partial(getattr(bundled_training, name), **smaller))


@pytest.fixture(scope="module")
def natural(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus of natural speech where recipes look for it: beside their work folders."""
    folder = tmp_path_factory.mktemp("natural")
    options = CorpusOptions(voices=2, sentences=4, held_out_voices=1, held_out_sentences=2)
    make_corpus(folder / "voice-corpus", options, lambda: Hummer(frames=150))
    return folder


@pytest.mark.slow
def test_a_run_is_resumed_and_not_begun_twice(few_clips: None, natural: Path, capsys: pytest.CaptureFixture[str]):
    work = natural / "run"
    command = ["voice-vocoder", "--work", str(work)]
    assert main([*command, "--steps", "2"]) == 0
    assert "Preparing the corpus" in capsys.readouterr().err
    MelReader.load(work / "export")

    assert main([*command, "--steps", "3", "--resume", "--export", str(natural / "shipped")]) == 0
    assert "3 steps" in capsys.readouterr().out
    MelReader.load(natural / "shipped")
    header, *entries = map(json.loads, (natural / "shipped" / "training.jsonl").read_text("utf-8").splitlines())
    assert header["recipe"] == "voice-vocoder"
    assert entries[-1]["step"] == 3 and entries[-1]["validation"]

    assert main([*command, "--steps", "3"]) == 1
    assert "resume it, or choose another work folder" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_said_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["voice-lm", "--work", str(tmp_path / "run"), "--steps", "1", "--device", "cuda"]) == 7
    assert "cpu" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_every_recipe_has_its_command():
    assert list(SUMMARIES) == list(RECIPES)


@only_in_full("recipes")
@pytest.mark.slow
def test_every_recipe_is_begun_exported_and_resumed(few_clips: None, natural: Path, capsys: pytest.CaptureFixture[str]):
    """In dependency order: tokenizer and codec lie where their models' recipes look for them."""
    for recipe in RECIPES:
        command = [recipe, "--work", str(natural / recipe), "--json"]
        assert main([*command, "--steps", "1"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert made["steps"] == 1 and made["validation"]
        assert list(Path(made["folder"]).rglob("model.safetensors"))
        assert main([*command, "--steps", "2", "--resume"]) == 0
        assert json.loads(capsys.readouterr().out)["steps"] == 2


def test_a_recipe_without_its_corpus_says_how_to_make_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["voice-f5", "--work", str(tmp_path / "run"), "--steps", "1"]) == TrainingError.exit_code
    assert "paretone train voice-corpus" in capsys.readouterr().err
