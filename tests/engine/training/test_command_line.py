from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch

from engine.cli import main as paretone
from engine.commands import train_bundled
from engine.errors import TrainingError
from engine.models.minis.lm_mini.checkpoint import LmMiniFolder
from engine.models.minis.omni_mini.checkpoint import OmniMiniFolder
from engine.models.minis.omni_mini.codec import ResidualCodec, ResidualCodecConfig
from engine.models.networks.quantised_mel import read_quantised_mel
from engine.models.networks.vocos import Vocos
from engine.training import corpora
from engine.training.natural_corpus import CorpusOptions, make_corpus
from engine.training.recipes import bundled_training
from engine.training.recipes.bundled_training import RECIPES
from engine.training.recipes.manifest import main as write_manifest
from engine.training.session import CHECKPOINT, LOG
from tests.engine.training.toy_natural import Hummer
from tests.workload import workload

HELD_OUT = workload(4, 2)
"""Clips of each voice to validate on."""
needs_flite = pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")


def main(arguments: list[str]) -> int:
    return paretone(["train", *arguments])


FRAMES = ("NaturalF5Options", "NaturalMegaOptions", "OmniOptions")
EXCERPTS = ("CodecMiniOptions", "SpeechTokenizerOptions", "VocosOptions")
SMALLER: dict[str, dict[str, int]] = {
    **{name: {"frames": 400, "validation_items": 2} for name in FRAMES},
    **{name: {"batch": 2} for name in EXCERPTS},
    "LmOptions": {"positions": 500, "validation_items": 2},
    "NaturalTokenOptions": {"batch": 2, "validation_items": 2},
    "VocoderOptions": {"batch": 2, "validation_items": 2},
}
"""What a step of each recipe learns from and is validated on; all of it where tests are thorough."""


@pytest.fixture
def few_clips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "HELD_OUT", HELD_OUT)
    for name, smaller in workload({}, SMALLER).items():
        monkeypatch.setattr(bundled_training, name, partial(getattr(bundled_training, name), **smaller))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The corpus of all trainings here that do not look at how it is made; the first one makes it."""
    return str(tmp_path_factory.mktemp("spoken") / "corpus")


@pytest.fixture(scope="module")
def natural(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus of natural speech where recipes look for it: beside their work folders."""
    folder = tmp_path_factory.mktemp("natural")
    options = CorpusOptions(voices=2, sentences=4, held_out_voices=1, held_out_sentences=2)
    make_corpus(folder / "voice-corpus", options, lambda: Hummer(frames=150))
    return folder


@needs_flite
@pytest.mark.slow
def test_from_nothing_to_a_vocoder_interrupted_and_resumed(
    few_clips: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    command = ["vocos-mini", "--work", str(tmp_path / "run"), "--sentences", "6"]
    assert main([*command, "--steps", "2"]) == 0
    assert "Preparing the corpus" in capsys.readouterr().err
    Vocos.load(tmp_path / "run" / "export")

    assert main([*command, "--steps", "3", "--resume", "--export", str(tmp_path / "shipped")]) == 0
    assert "3 steps" in capsys.readouterr().out
    Vocos.load(tmp_path / "shipped")
    header, *entries = map(json.loads, (tmp_path / "shipped" / "training.jsonl").read_text("utf-8").splitlines())
    assert header["recipe"] == "vocos-mini"
    assert entries[-1]["step"] == 3
    assert set(entries[-1]["validation"]) == {"mel", "spectrum", "upper_harmonics", "buzz"}

    assert main([*command, "--steps", "3"]) == 1
    assert "resume it, or choose another work folder" in capsys.readouterr().err


@needs_flite
@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint_to_resume_from(
    few_clips: None, corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    work = tmp_path / "run"
    command = ["codec-mini", "--work", str(work), "--sentences", "6", "--corpus", corpus]

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
    assert read_quantised_mel(work / "export", ResidualCodec)[0].config == ResidualCodecConfig()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@needs_flite
def test_a_device_that_is_not_there_is_said_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["lm-mini", "--work", str(tmp_path / "run"), "--steps", "1", "--device", "cuda"]) == 7
    assert "cpu" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "corpus").exists()


def test_a_missing_flite_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("PATH", "")
    assert main(["vocos-mini", "--work", str(tmp_path / "run"), "--steps", "1", "--sentences", "2"]) == 1
    assert "apt install flite" in capsys.readouterr().err


def test_a_budget_is_needed(tmp_path: Path):
    with pytest.raises(SystemExit):
        main(["vocos-mini", "--work", str(tmp_path)])


def test_every_recipe_has_its_command():
    assert list(train_bundled.SUMMARIES) == list(RECIPES)


@needs_flite
@pytest.mark.slow
def test_a_tokenizer_and_the_language_model_over_its_tokens(
    few_clips: None, corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    common = ["--sentences", "6", "--steps", "1", "--corpus", corpus, "--json"]
    assert main(["speech-tokenizer", "--work", str(tmp_path / "tokenizer"), *common]) == 0
    tokenizer = json.loads(capsys.readouterr().out)["folder"]
    command = ["lm-mini", "--work", str(tmp_path / "run"), "--codec", tokenizer, "--export", str(tmp_path / "made")]
    assert main([*command, *common]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["steps"] == 1
    assert set(made["validation"]) == {"cross_entropy", "first", "among_ten"}
    assert LmMiniFolder(tmp_path / "made").network(torch.device("cpu")).tokens.codes == 1920


@needs_flite
@pytest.mark.slow
def test_a_codec_and_the_masked_model_over_its_codes(
    few_clips: None, corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    common = ["--sentences", "6", "--steps", "1", "--corpus", corpus, "--json"]
    assert main(["codec-mini", "--work", str(tmp_path / "codec"), *common]) == 0
    made = json.loads(capsys.readouterr().out)
    assert set(made["validation"]) == {"mel", "phones", "codes"}
    command = ["omni-mini", "--work", str(tmp_path / "run"), "--codec", made["folder"]]
    assert main([*command, "--export", str(tmp_path / "made"), *common]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["steps"] == 1
    assert set(made["validation"]) == {"cross_entropy", "first", "second"}
    assert OmniMiniFolder(tmp_path / "made").network().config.codebooks == 8
    assert main([*command, "--resume", "--sentences", "6", "--steps", "2", "--corpus", corpus]) == 0
    assert "2 steps" in capsys.readouterr().out


@needs_flite
@pytest.mark.slow
def test_the_corpus_is_written_as_a_manifest(few_clips: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["--manifest", str(tmp_path / "flite.csv"), "--corpus", str(tmp_path / "corpus"), "--sentences", "3"]
    assert write_manifest(arguments) == 0
    assert f"Wrote 6 clips to train and {2 * HELD_OUT} to validate on" in capsys.readouterr().out
    assert len((tmp_path / "flite.csv").read_text(encoding="utf-8").splitlines()) == 7 + 2 * HELD_OUT


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["voice-vocoder", "voice-f5", "voice-megatts3", "voice-tokenizer", "voice-codec"])
def test_natural_speech_and_what_learns_from_it(
    few_clips: None, recipe: str, natural: Path, capsys: pytest.CaptureFixture[str]
):
    command = [recipe, "--work", str(natural / f"run-{recipe}"), "--json"]
    assert main([*command, "--steps", "1"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert list(Path(made["folder"]).rglob("model.safetensors"))
    assert main([*command, "--steps", "2", "--resume"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 2


def test_a_recipe_without_its_corpus_says_how_to_make_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["voice-f5", "--work", str(tmp_path / "run"), "--steps", "1"]) == TrainingError.exit_code
    assert "paretone train voice-corpus" in capsys.readouterr().err
