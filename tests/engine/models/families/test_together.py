"""Texts spoken at once: each as alone, with shared passes and on several threads, whatever the others do."""

import threading
import time
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch

from paretone.bench import throughput
from paretone.errors import Cancelled
from paretone.models import load_model
from paretone.models.catalogue import entry, voices
from paretone.models.families.together import Together, Turn, speak_together
from paretone.observer import Observer, StepReport
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, scripted
from tests.engine.command_line import Console
from tests.engine.speaking import spoken_together
from tests.workload import workload

FARTHEST = 1e-3
TEXTS = ("Rice is served. The box was thrown.", "Four hours.", "Rice is served.")
SHORT = {"f5-mini": {"steps": 2}, "megatts3-mini": {"steps": 2}, "omni-mini": {"steps": 3, "by_sentence": True}}
NAMES = "lm-mini", "omni-mini", "f5-mini", *workload(["megatts3-mini"], [])
DRAFTED = UsedTechnique("speculative", Values({"tolerance": 0.4, "adaptive": False}))


def scripts(model: Any, *techniques: UsedTechnique) -> list[Any]:
    """Of different lengths, passages, voices, seeds and schedules."""
    name = model.info.id
    who, made, short = voices(name), [], SHORT.get(name, {})
    for number, text in enumerate(TEXTS):
        options = short | ({"steps": short["steps"] + number} if short else {})
        one = Setting(name, entry(name).options_with(**options), techniques, seed=number)
        make_ready(model, one, who[number % 2])
        made.append(scripted(model, text, who[number % 2], one))
    return made


def counting(model: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen, shared = [], model.shared  # Numbers of passes, by computation.

    @cache
    def counted(together: Together) -> Together:
        return lambda given: seen.append(len(given)) or together(given)

    monkeypatch.setattr(model, "shared", lambda of, ask: shared(of, lambda one, given: ask(counted(one), given)))
    return seen


@pytest.mark.parametrize(("name", "technique"), [("lm-mini", DRAFTED), *((one, None) for one in NAMES)])
def test_together_sounds_as_alone(name: str, technique: UsedTechnique | None, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(name, device="cpu")
    given = scripts(model, *([technique] if technique else []))
    alone = [model.speak(one) for one in given]
    seen = counting(model, monkeypatch)
    for threads in (2, 1):
        torch.set_num_threads(threads)
        for one, other in zip(alone, spoken_together(model, given), strict=True):
            assert one.samples.shape == other.samples.shape
            assert np.abs(one.samples - other.samples).max() < FARTHEST
            assert one.measurements.tokens == other.measurements.tokens
            assert one.measurements.ops_ratio == pytest.approx(other.measurements.ops_ratio)
        assert (seen[0] == len(TEXTS)) == (threads == 1), "one computation for all on one thread, by thread on two"
        if threads == 2:
            assert max(seen) == (2 if name == "lm-mini" else 1), "passes are shared on a thread where that is faster"
        assert torch.get_num_threads() == threads
        seen.clear()


@pytest.mark.parametrize("threads", [2, 1])
def test_one_that_is_cancelled_and_one_that_comes_later_do_not_disturb_the_others(threads: int) -> None:
    model = load_model("lm-mini", device="cpu")
    torch.set_num_threads(threads)
    given = scripts(model)
    alone = [model.speak(one).samples for one in given]
    ended: dict[int, Any] = {}
    running, stopped = list[int](), list[object]()

    class Leaving(Observer):
        def step(self, report: StepReport) -> None:
            running.append(1)
            raise Cancelled

    observers = Leaving(), Observer(), Observer()
    waiting = [Turn(given[number], partial(ended.__setitem__, number), one) for number, one in enumerate(observers)]

    def following() -> Turn | None:
        return waiting.pop(0) if len(waiting) > 1 or (waiting and running) else None

    speak_together(model, following, 2)
    assert isinstance(ended[0], Cancelled)
    for number in (1, 2):
        assert np.abs(ended[number].samples - alone[number]).max() < FARTHEST
    # All threads end with the first that finds nothing to do, or one left would speak what comes one by one.
    later = iter([None, Turn(given[0], stopped.append)])
    speak_together(model, later.__next__, 2)
    assert next(later) is not None
    # What the next text raises ends all.
    with pytest.raises(StopIteration):
        speak_together(model, iter([Turn(one, stopped.append) for one in given[:2]]).__next__, 3)
    assert [type(one) for one in stopped] == [Cancelled, Cancelled]
    assert not [one for one in threading.enumerate() if one.name.startswith("speaking") and one.is_alive()]


def test_a_text_alone_has_the_threads_of_all() -> None:
    model, alone, used = load_model("omni-mini", device="cpu"), threading.Event(), []
    torch.set_num_threads(2)

    class Waiting(Observer):
        def step(self, report: StepReport) -> None:
            used.append(torch.get_num_threads())
            assert alone.wait(30) and not time.sleep(0.1)

    turns = iter([Turn(scripts(model)[0], print, Waiting())])
    speak_together(model, lambda: next(turns, None) or alone.set(), 2)
    assert used[0] in (1, 2) and set(used[1:]) == {2}


def test_the_bench_compares_sizes_and_processes(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "harvard_sentences", lambda: ("Rice.", "Four hours."))
    report = console.data("bench", "throughput", "--batch", 2, "--rounds", 2, "--device", "cpu", "--json")
    one, two = report["rows"]
    assert (one["at once"], two["at once"]) == (1, 2) and two["low"] <= two["gain"] <= two["high"]
    assert report["headline"] == two["gain"] and 0 < two["first audio (s)"] <= two["the last's (s)"]
    assert "cannot share 1 thread;" in console.refusal("bench", "throughput", "--processes", 2)
    assert "share 2 sentences" in console.refusal(*"bench throughput --processes 3 --threads 3 --batch 2".split())
