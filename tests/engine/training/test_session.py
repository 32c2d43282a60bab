"""Real runs of both recipes at a very small size."""

import errno
import json
import os
import signal
import threading
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import save_file

from paretone.errors import Cancelled, PlainError, TrainingError
from paretone.models.minis.natural_vocoder import MelReaderConfig
from paretone.training import session as module
from paretone.training.batches import BatchQueue
from paretone.training.requests import TrainingProgress
from paretone.training.runs import log_of, save_with_log
from paretone.training.session import CHECKPOINT, LOG, Budget, Diverged, Intervals, Recipe, TrainingSession
from tests.engine.training.toy_corpus import toy_corpus
from tests.engine.training.toy_natural import toy_natural_corpus
from tests.tools.recipes.natural_codecs import NaturalVocoder, VocoderOptions
from tests.tools.recipes.natural_f5 import ARCHITECTURE, NaturalF5, NaturalF5Options

CPU = torch.device("cpu")
SMALL_DIT = replace(ARCHITECTURE, dim=64, depth=2, heads=2, dim_head=32, text_dim=32, conv_layers=1)
SMALL_READER = MelReaderConfig(width=32, inner_width=48, layers=1)
INTERVALS = Intervals(log_steps=2, validation_steps=4)


def f5() -> NaturalF5:
    options = NaturalF5Options(frames=400, warm_up=5, validation_items=4, shortest_prompt=10, longest_prompt=40)
    return NaturalF5(toy_natural_corpus(), CPU, options, SMALL_DIT)


def vocoder() -> NaturalVocoder:
    options = VocoderOptions(frames=16, batch=2, warm_up=5, validation_items=2)
    return NaturalVocoder(toy_natural_corpus(), CPU, options, SMALL_READER)


def _begun(recipe: Recipe, work: Path, resume: bool = False, **budget: float) -> TrainingSession:
    session = TrainingSession(recipe, work, Budget(**budget), INTERVALS, report=lambda line: None)
    session.begin(resume)
    return session


def _run(recipe: Recipe, work: Path, resume: bool = False, **budget: float) -> TrainingSession:
    session = _begun(recipe, work, resume, **budget)
    assert session.run()
    return session


def _log(work: Path) -> list[dict]:
    return [json.loads(line) for line in (work / LOG).read_text(encoding="utf-8").splitlines()]


_assert_equal = partial(torch.testing.assert_close, rtol=0, atol=0)


class Interrupted(Exception):
    """Stands for a power cut."""


def test_a_resumed_run_continues_to_the_very_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    straight = _run(vocoder(), tmp_path / "straight", steps=10)
    broken = vocoder()
    session = _begun(broken, tmp_path / "broken", steps=10)
    step = broken.step

    def step_until_the_power_fails(number: int, progress: float) -> dict[str, float]:
        if number == 6:
            session.save()
        if number == 8:
            raise Interrupted
        return step(number, progress)

    monkeypatch.setattr(broken, "step", step_until_the_power_fails)
    with pytest.raises(Interrupted):
        session.run()
    resumed = _run(vocoder(), tmp_path / "broken", steps=10, resume=True)
    assert resumed.number == straight.number == 10
    _assert_equal(straight.recipe.state(), resumed.recipe.state())

    def losses(name: str) -> list[dict]:
        entries = [entry for entry in _log(tmp_path / name)[1:] if "resumed" not in entry]
        return [{key: entry[key] for key in entry if key != "seconds"} for entry in entries]

    # The steps after the checkpoint were logged twice and made twice, but stand in the log once.
    assert [entry["step"] for entry in losses("broken")] == [entry["step"] for entry in losses("straight")]
    assert losses("broken")[-3:] == losses("straight")[-3:]
    (note,) = [entry for entry in _log(tmp_path / "broken") if "resumed" in entry]
    assert note["step"] == 5
    header = _log(tmp_path / "broken")[0]
    assert header.pop("run") != _log(tmp_path / "straight")[0]["run"], "by this, runs of one kind are told apart"
    assert note["resumed"] == header


def test_the_log_begins_with_what_was_trained_and_ends_with_a_validation(tmp_path: Path):
    recipe = vocoder()
    _run(recipe, tmp_path, steps=6)
    header, *entries = _log(tmp_path)
    assert header["recipe"] == recipe.name
    assert header["parameters"] == sum(one.numel() for one in recipe.model.parameters())
    assert "options" in header and "cpu" in header["machine"]
    assert [entry["step"] for entry in entries if "losses" in entry] == [2, 4, 6]
    assert [entry["step"] for entry in entries if "validation" in entry] == [4, 6]
    assert entries[-1]["validation"] == {name: float(f"{value:.5g}") for name, value in recipe.validate().items()}


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path: Path):
    _run(vocoder(), tmp_path, steps=3)
    good = (tmp_path / CHECKPOINT).read_bytes()
    again = vocoder()
    session = _begun(again, tmp_path, resume=True, steps=9)
    with torch.no_grad():
        next(iter(again.model.parameters())).view(-1)[0] = float("nan")
    before = {name: value.clone() for name, value in again.average.module.state_dict().items()}
    with pytest.raises(Diverged, match="step 4"):
        session.run()
    again.validate = lambda: {"distance": torch.nan}
    with pytest.raises(Diverged, match="held-out distance is nan"):
        _run(again, tmp_path, resume=True, steps=3)
    assert (tmp_path / CHECKPOINT).read_bytes() == good
    _assert_equal(before, again.average.module.state_dict())


def test_a_run_that_diverges_before_its_first_checkpoint_leaves_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recipe = vocoder()
    session = _begun(recipe, tmp_path, steps=9)
    with monkeypatch.context() as full:
        full.setattr(torch, "save", Mock(side_effect=OSError(errno.ENOSPC, "full")))
        with pytest.raises(TrainingError, match=r"the disk is full; .* It has no checkpoint; start afresh"):
            session.save()
    step = recipe.step

    def third_diverges(number: int, progress: float) -> dict[str, float]:
        return {"loss": module.require_finite(torch.nan, "loss", number)} if number == 3 else step(number, progress)

    recipe.step = third_diverges
    with pytest.raises(Diverged, match=r"step 3.*last good checkpoint is kept; resume from it with lower"):
        session.run()
    assert torch.load(tmp_path / CHECKPOINT, weights_only=True)["step"] == 2
    assert _run(vocoder(), tmp_path, resume=True, steps=4).number == 4


@pytest.mark.parametrize(("method", "call", "left"), [("step", 3, 3), ("validate", 1, 4)])
def test_control_c_finishes_a_step_ends_a_validation_and_leaves_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, call: int, left: int
):
    """A validation of a large model takes minutes."""
    recipe, said, calls = vocoder(), [], count(1)
    session = TrainingSession(recipe, tmp_path, Budget(steps=1_000), INTERVALS, report=said.append)
    session.begin(resume=False)
    whole = getattr(recipe, method)

    def interrupted(*given: float) -> dict[str, float]:
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGINT)
        return whole(*given)

    monkeypatch.setattr(recipe, method, interrupted)
    handler = signal.getsignal(signal.SIGINT)
    assert session.run() is False and session.number == left
    assert torch.load(tmp_path / CHECKPOINT, weights_only=True)["step"] == left
    assert signal.getsignal(signal.SIGINT) is handler and not any("held out" in line for line in said)
    assert _run(vocoder(), tmp_path, steps=left + 2, resume=True).number == left + 2


def test_every_step_and_validation_is_told(tmp_path: Path):
    told: list[TrainingProgress] = []
    intervals = replace(INTERVALS, validates_first=True)
    session = TrainingSession(vocoder(), tmp_path, Budget(steps=5), intervals, lambda line: None, told.append)
    session.begin(resume=False)
    session.run()
    assert [(one.step, bool(one.losses), bool(one.validation)) for one in told] == [
        (0, False, True),
        *((step, True, False) for step in (1, 2, 3, 4)),
        (4, False, True),
        (5, True, False),
        (5, False, True),
    ]
    assert [one.share for one in told if one.losses] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert told[0].seconds_left is None and all(one.seconds_left >= 0 for one in told[1:])
    assert told[-1].validation == session.validation


@pytest.mark.parametrize("channel", ["follow", "report"])
def test_whoever_follows_can_stop_it_within_a_step(channel: str, tmp_path: Path):
    def stop(told: object) -> None:
        raise Cancelled

    callbacks = {"report": lambda line: None, channel: stop}
    session = TrainingSession(vocoder(), tmp_path, Budget(steps=50), INTERVALS, **callbacks)
    session.begin(resume=False)
    assert session.run() is False
    assert session.number == (1 if channel == "follow" else INTERVALS.log_steps)
    assert torch.load(tmp_path / CHECKPOINT, weights_only=True)["step"] == session.number


def test_of_several_processes_one_writes_and_all_stop_together(tmp_path: Path):
    class Second:
        is_first, count = False, 2

        def agree(self, progress: float, stop: bool) -> tuple[float, bool]:
            return 0.25, session.number == 3

    told: list[object] = []
    session = TrainingSession(vocoder(), tmp_path, Budget(steps=9), INTERVALS, told.append, told.append, Second())
    session.begin(resume=False)
    assert session.run() is False and session.number == 3
    assert told == [] and list(tmp_path.iterdir()) == []


def test_a_run_outside_the_main_thread_leaves_signals_alone(tmp_path: Path):
    finished = []
    thread = threading.Thread(target=lambda: finished.append(_run(vocoder(), tmp_path, steps=2)))
    thread.start()
    thread.join()
    assert finished[0].number == 2


def test_a_budget_in_minutes_ends_and_its_clock_goes_on_after_resuming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now = iter(range(0, 10_000, 10))
    monkeypatch.setattr(module.time, "process_time", lambda: float(next(now)))
    session = _begun(vocoder(), tmp_path, minutes=1)
    session.run()
    assert session.number == 6 and session.seconds == 60
    longer = _begun(vocoder(), tmp_path, resume=True, minutes=1.5)
    longer.run()
    assert longer.number == 9


def test_what_cannot_be_begun_is_said(tmp_path: Path):
    with pytest.raises(PlainError, match="start afresh"):
        _run(f5(), tmp_path, steps=2, resume=True)
    _run(f5(), tmp_path, steps=1)
    with pytest.raises(PlainError, match="resume it, or choose another work folder"):
        _run(f5(), tmp_path, steps=2)
    with pytest.raises(PlainError, match="belongs to voice-f5"):
        _run(vocoder(), tmp_path, steps=2, resume=True)


@pytest.mark.parametrize(
    "amounts", [{}, {"minutes": 1, "steps": 1}, {"minutes": 0}, {"minutes": float("nan")}, {"steps": -3}, {"epochs": 0}]
)
def test_a_budget_is_one_amount_above_zero(amounts: dict):
    with pytest.raises(PlainError):
        Budget(**amounts)


def test_an_epoch_is_as_many_clips_as_there_are_and_resumes_bit_for_bit(tmp_path: Path):
    whole = _run(f5(), tmp_path / "whole", epochs=1.5)
    assert 1.5 <= whole.recipe.epochs < 1.5 + 20 / len(whole.recipe.clips)
    _run(f5(), tmp_path / "parts", epochs=0.7)
    parts = _run(f5(), tmp_path / "parts", resume=True, epochs=1.5)
    assert (parts.number, parts.recipe.epochs) == (whole.number, whole.recipe.epochs)
    with pytest.raises(PlainError, match="voice-vocoder draws no clips to count epochs by"):
        TrainingSession(vocoder(), tmp_path / "other", Budget(epochs=1), INTERVALS).begin(resume=False)


def test_links_and_pipes_in_the_way_stay(tmp_path: Path) -> None:
    work, target = tmp_path / "work", tmp_path / "out" / "draft.safetensors"
    work.mkdir()
    target.parent.mkdir()
    (work / LOG).write_text('{"run": 1}\n')

    def save(path: Path) -> None:
        save_file({"a": torch.ones(3)}, path)

    os.mkfifo(target)
    written = save_with_log(save, target, work)
    assert written.name == "draft-2.safetensors" and target.is_fifo() and log_of(written).is_file()
    target.unlink()
    target.symlink_to("nowhere")
    assert save_with_log(save, target, work) == written and target.is_symlink()
    target.unlink()
    target.symlink_to(written.name)
    before = written.stat().st_ino
    assert save_with_log(save, target, work) == target, "it says the same"
    assert target.is_symlink() and written.stat().st_ino == before


def test_batches_are_full_and_join_one_voice_only():
    clips = toy_corpus(20).training
    queue = BatchQueue(clips, frames=600, joined_share=0.5, seed=0)
    joined = total = 0
    for _ in range(200):
        batch = queue.next()
        lengths = [sum(clips[number].frames for number in item) for item in batch]
        assert max(lengths) * len(batch) <= 600
        assert all(len({clips[number].voice for number in item}) == 1 for item in batch)
        joined += sum(len(item) == 2 for item in batch)
        total += len(batch)
    assert queue.epochs * len(clips) == total + joined, "a joined item has two clips"
    assert 0.4 < joined / total < 0.6
    queue = BatchQueue(clips, frames=100 * max(clip.frames for clip in clips), joined_share=0.0, seed=0)
    shares = []
    for _ in range(40):
        lengths = [clips[number].frames for item in queue.next() for number in item]
        shares.append(sum(lengths) / (max(lengths) * len(lengths)))
    assert sum(shares) / len(shares) > 0.95, "little of a batch is padding"


def test_a_run_does_not_resume_on_fewer_clips():
    clips = toy_corpus(20).training
    queue = BatchQueue(clips, frames=600, joined_share=0.5, seed=0)
    queue.next()
    BatchQueue(clips, frames=600, joined_share=0.5, seed=0).restore(queue.state())
    with pytest.raises(TrainingError, match=r"more clips than the 10 .*same validation set"):
        BatchQueue(clips[:10], frames=600, joined_share=0.5, seed=0).restore(queue.state())
