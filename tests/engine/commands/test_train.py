"""``paretone train`` as people type it: one process, an interrupted one, several."""

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch.distributed import run as launcher

from paretone.commands import train
from paretone.errors import TextError
from paretone.techniques.resolving import known
from paretone.training.forms import usual_sentences
from paretone.training.requests import FineTuningRequest
from paretone.training.session import CHECKPOINT, LOG
from tests.engine.command_line import Console
from tests.engine.training.toy_model import toy_manifest, toy_model
from tests.packages import needs
from tests.workload import only_in_full

pytestmark = needs("accelerate")
PATIENCE_SECONDS = 600
"""For a process that loads torch, and perhaps another, on a machine that does much else."""


class Job(NamedTuple):
    manifest: Path
    folder: Path
    work: Path


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(toy_manifest(tmp_path), toy_model(tmp_path / "model"), tmp_path / "work")


def _command(job: Job, *more: str) -> list[str]:
    return [
        *("-m", "paretone", "train", "cfg-free", "--w", "0.5", "--device", "cpu", "--threads", "1", "--frames", "300"),
        *("--folder", str(job.folder), "--manifest", str(job.manifest), "--work", str(job.work), *more),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("cfg-free", "--w", "0.5", "--resume"), 1, "to resume from; start afresh."),
        (("cfg-free", "--w", "0.5", "--model", "megatts3-mini"), 9, "MegaTTS 3 mini cannot be trained here"),
        (("spade", "--depth", "6", "--resume"), 1, "to resume from; start afresh."),
    ],
)
def test_what_cannot_begin_is_said_before_any_work(
    tmp_path: Path, console: Console, arguments: tuple, code: int, words: str
):
    """Minutes of preparing speech would come first."""
    said = console.refusal("train", *arguments, "--work", tmp_path / "work", "--steps", "1", code=code)
    assert words in said and "\n" not in said.strip()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_command_trains_and_says_where_the_result_lies(job: Job, console: Console):
    _, _, *arguments = _command(job, "--epochs", "0.01", "--json")
    done = console(*arguments)
    data = done.data
    assert data["equivalent_guidance"] == 1
    assert data["steps"] == 1, "a step draws more than a hundredth of the clips"
    assert Path(data["checkpoint"]).is_file()
    assert done.code == 0 and "Training" in done.err


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_SECONDS)
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_control_c_leaves_a_checkpoint_and_says_how_to_go_on(job: Job, console: Console):
    log = job.work / LOG

    def interrupt() -> None:
        """Press Ctrl-C after some steps."""
        while not (log.is_file() and '{"step": 25,' in log.read_text(encoding="utf-8")):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    presses = threading.Thread(target=interrupt, daemon=True)
    presses.start()
    _, _, *arguments = _command(job, "--steps", "100000")
    assert "to resume from" in console.refusal(*arguments, code=130)
    presses.join()
    assert torch.load(job.work / CHECKPOINT, weights_only=True)["step"] >= 25


@pytest.fixture
def _as_before() -> Iterator[None]:
    """Signals' handlers and environment are in the end what they were: torch's launcher changes both."""
    handlers = {one: signal.getsignal(one) for one in signal.valid_signals()}
    environment = dict(os.environ)
    yield
    for number, handler in handlers.items():
        if handler is not signal.getsignal(number):
            signal.signal(number, handler)
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)


@only_in_full("cluster")
@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE_SECONDS)
@pytest.mark.usefixtures("_as_before")
def test_two_processes_train_one_model(job: Job, capfd: pytest.CaptureFixture[str]):
    # accelerate's own launcher starts one process a graphics card; on processors it is torch's. Torch is here already.
    launcher.main(["--standalone", "--nproc_per_node", "2", *_command(job, "--steps", "3", "--json")])
    (printed,) = capfd.readouterr().out.strip().splitlines()
    assert Path(json.loads(printed)["checkpoint"]).is_file()
    state = torch.load(job.work / CHECKPOINT, weights_only=True)["state"]
    assert len(state["draws"]) == 2
    assert not torch.equal(state["draws"][0]["generator"], state["draws"][1]["generator"])
    assert json.loads((job.work / LOG).read_text(encoding="utf-8").splitlines()[0])["processes"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--w", "1", "--steps", "1"], "explode"),
        (["--w", "0.5", "--steps", "1", "--epochs", "1"], "not allowed with argument"),
        (["--weight", "0", "--steps", "1"], "between 0 and 1"),
        (["--w", "2/3", "--steps", "1", "--model", "guessed"], "no model named"),
    ],
)
def test_what_makes_no_sense_is_said_before_any_work(job: Job, arguments: list[str], words: str, console: Console):
    command = ["train", "cfg-free", "--manifest", str(job.manifest), "--work", str(job.work), "--device", "cpu"]
    place = [] if "--model" in arguments else ["--folder", str(job.folder)]
    assert words in console.refusal(*command, *place, *arguments, "--threads", "1")
    assert not (job.work / CHECKPOINT).exists()


@pytest.mark.parametrize("option", ["--work", "--export"])
def test_a_file_is_no_folder_to_work_in(option: str, tmp_path: Path, console: Console) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("mine", encoding="utf-8")
    folders = {"--work": str(tmp_path / "work"), option: str(file / "further" / "in")}
    words = (word for pair in folders.items() for word in pair)
    said = console.refusal("train", "draft", "--steps", "1", "--device", "cpu", *words, code=1)
    assert f"{file} is a file; give the name of a folder." in said and "Reading" not in said
    assert file.read_text(encoding="utf-8") == "mine"


def options(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    train.add_speech(parser)
    train.add_training(parser, "usual", "none")
    return parser.parse_args([*given, "--work", "runs", "--steps", "3"])


def request(*given: str) -> FineTuningRequest:
    return FineTuningRequest(**train.fine_tuning_request(options(*given)))


def test_without_speech_a_released_model_says_as_many_sentences_as_the_window_proposes() -> None:
    model = ("--model", "F5TTS_v1_Base")
    assert request(*model).sentences == usual_sentences(known("F5TTS_v1_Base"))["sentences"] == 200
    assert request(*model, "--manifest", "data.csv").sentences == request(*model, "--sentences", "0").sentences == 0
    assert usual_sentences(known("f5-mini"))["sentences"] == 0


def test_what_the_model_is_to_say_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("One.\n\nTwo.\nThree.\n", encoding="utf-8")
    file = str(tmp_path / "texts.txt")
    made = request("--texts", file)
    assert made.texts == ("One.", "Two.", "Three.") and made.sentences == 3, "each once in every voice"
    assert request("--texts", file, "--sentences", "7").sentences == 7
    assert request("--sentences", "7").names_speech and request("--sentences", "7").texts == ()
    with pytest.raises(TextError):
        request("--texts", str(tmp_path / "none.txt"))
