from __future__ import annotations

import json
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from paretone.cli import main as paretone
from paretone.commands import train
from paretone.errors import TrainingError
from paretone.models.minis.lm_mini import LmMiniFolder
from paretone.models.minis.natural_vocoder import MelReader
from paretone.models.minis.omni_mini import OmniMiniFolder
from paretone.models.networks.quantised_mel import ResidualCodec, read_quantised_mel
from paretone.training.natural_corpus import CorpusOptions, make_corpus
from paretone.training.recipes import bundled_training
from paretone.training.recipes.bundled_training import RECIPES
from paretone.training.recipes.natural_tokens import CODEC, TOKENIZER
from paretone.training.session import CHECKPOINT, LOG
from tests.engine.training.toy_natural import Hummer
from tests.workload import only_in_full, workload


def main(arguments: list[str]) -> int:
    return paretone(["train", *arguments])


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


@only_in_full("recipes")
@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint_to_resume_from(
    few_clips: None, natural: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    work = tmp_path / "run"
    command = ["voice-codec", "--work", str(work), "--corpus", str(natural / "voice-corpus")]

    def interrupt() -> None:
        """Press Ctrl-C once the training has begun."""
        while not (work / LOG).is_file():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    presses = threading.Thread(target=interrupt, daemon=True)
    presses.start()
    assert main([*command, "--minutes", "60"]) == 130
    presses.join()
    assert "to resume from" in capsys.readouterr().err
    done = torch.load(work / CHECKPOINT, weights_only=True)["step"]
    assert main([*command, "--steps", str(done + 1), "--resume"]) == 0
    assert f"{done + 1} steps" in capsys.readouterr().out
    assert read_quantised_mel(work / "export", ResidualCodec).config == CODEC


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_said_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["voice-lm", "--work", str(tmp_path / "run"), "--steps", "1", "--device", "cuda"]) == 7
    assert "cpu" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_budget_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["voice-vocoder", "--work", str(tmp_path)]) == 2
    assert "one of the arguments --minutes --steps --epochs is required" in capsys.readouterr().err


def test_every_recipe_has_its_command():
    assert list(train.SUMMARIES) == list(RECIPES)


@only_in_full("recipes")
@pytest.mark.slow
def test_a_tokenizer_and_the_language_model_over_its_tokens(
    few_clips: None, natural: Path, capsys: pytest.CaptureFixture[str]
):
    common = ["--steps", "1", "--json"]
    tokenizer = ["voice-tokenizer", "--work", str(natural / "voice-tokenizer")]
    assert main([*tokenizer, *common]) == 0
    assert main([*tokenizer, "--steps", "2", "--resume"]) == 0
    assert "2 steps" in capsys.readouterr().out
    # The tokenizer lies where the recipe looks for it.
    assert main(["voice-lm", "--work", str(natural / "lm"), "--export", str(natural / "lm-made"), *common]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["steps"] == 1
    assert set(made["validation"]) == {"cross_entropy", "first", "among_ten"}
    assert LmMiniFolder(natural / "lm-made").network(torch.device("cpu")).tokens.codes == TOKENIZER.codes


@only_in_full("recipes")
@pytest.mark.slow
def test_a_codec_and_the_masked_model_over_its_codes(
    few_clips: None, natural: Path, capsys: pytest.CaptureFixture[str]
):
    common = ["--steps", "1", "--json"]
    assert main(["voice-codec", "--work", str(natural / "own-codec"), *common]) == 0
    made = json.loads(capsys.readouterr().out)
    assert set(made["validation"]) == {"components", "cents", "voicing", "phones", "codes"}
    command = ["voice-omni", "--work", str(natural / "omni"), "--codec", made["folder"]]
    assert main([*command, "--export", str(natural / "omni-made"), *common]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["steps"] == 1
    assert set(made["validation"]) == {"cross_entropy", "first", "second"}
    assert OmniMiniFolder(natural / "omni-made").network().config.codebooks == CODEC.codebooks
    assert main([*command, "--resume", "--steps", "2"]) == 0
    assert "2 steps" in capsys.readouterr().out


@only_in_full("recipes")
@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["voice-f5", "voice-megatts3"])
def test_natural_speech_and_what_learns_from_it(
    few_clips: None, recipe: str, natural: Path, capsys: pytest.CaptureFixture[str]
):
    """So do the other recipes in the tests above, which begin and resume one run each."""
    command = [recipe, "--work", str(natural / f"run-{recipe}"), "--json"]
    assert main([*command, "--steps", "1"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert list(Path(made["folder"]).rglob("model.safetensors"))
    assert main([*command, "--steps", "2", "--resume"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 2


def test_a_recipe_without_its_corpus_says_how_to_make_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["voice-f5", "--work", str(tmp_path / "run"), "--steps", "1"]) == TrainingError.exit_code
    assert "paretone train voice-corpus" in capsys.readouterr().err
