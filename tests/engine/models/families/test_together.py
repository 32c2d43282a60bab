"""Texts spoken at once: each as alone, with shared passes, whatever the others do."""

import functools
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from paretone.bench import throughput
from paretone.errors import Cancelled
from paretone.models import load_model
from paretone.models.base import Synthesis
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


def scripts(model: Any, *techniques: UsedTechnique) -> list[Any]:
    """Of different lengths, passages, voices and seeds."""
    name = model.info.id
    setting = Setting(name, entry(name).options_with(**SHORT.get(name, {})), techniques)
    who = voices(name)
    made = []
    for number, text in enumerate(TEXTS):
        one = replace(setting, seed=number)
        make_ready(model, one, who[number % 2])
        made.append(scripted(model, text, who[number % 2], one))
    return made


def counting(model: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    seen, shared = [], model.shared  # Numbers of passes, by computation.

    @functools.cache
    def counted(together: Together) -> Together:
        return lambda given: seen.append(len(given)) or together(given)

    monkeypatch.setattr(model, "shared", lambda of, ask: shared(of, lambda one, given: ask(counted(one), given)))
    return seen


@pytest.mark.parametrize(
    ("name", "technique"),
    [
        ("lm-mini", None),
        ("lm-mini", UsedTechnique("speculative", Values({"tolerance": 0.4, "adaptive": False}))),
        ("omni-mini", None),
        ("f5-mini", None),
        *workload([("megatts3-mini", None)], []),
    ],
)
def test_together_sounds_as_alone(name: str, technique: UsedTechnique | None, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(name, device="cpu")
    given = scripts(model, *([technique] if technique else []))
    alone = [model.speak(one) for one in given]
    seen = counting(model, monkeypatch)
    found = spoken_together(model, given)
    for one, other in zip(alone, found, strict=True):
        assert one.samples.shape == other.samples.shape
        assert np.abs(one.samples - other.samples).max() < FARTHEST
        assert one.measurements.tokens == other.measurements.tokens
        assert one.measurements.ops_ratio == pytest.approx(other.measurements.ops_ratio)
    assert seen[0] == len(TEXTS), "one computation for all"


def test_one_that_is_cancelled_and_one_that_comes_later_do_not_disturb_the_others() -> None:
    model = load_model("lm-mini", device="cpu")
    first, second, third = scripts(model)
    alone = {id(one): model.speak(one).samples for one in (first, second, third)}
    ended: dict[int, Synthesis | BaseException] = {}
    running: list[int] = []

    class Leaving(Observer):
        def step(self, report: StepReport) -> None:
            running.append(1)
            raise Cancelled

    turns = {
        id(one): Turn(one, lambda found, key=id(one): ended.__setitem__(key, found), observer)  # type: ignore[misc]
        for one, observer in ((first, Leaving()), (second, Observer()), (third, Observer()))
    }
    waiting = [turns[id(first)], turns[id(second)]]

    def following() -> Turn | None:
        if running and id(third) not in ended and turns[id(third)] not in begun:
            waiting.append(turns[id(third)])
        if not waiting:
            return None
        begun.append(waiting.pop(0))
        return begun[-1]

    begun: list[Turn] = []
    speak_together(model, following, 2)
    assert isinstance(ended[id(first)], Cancelled)
    for one in (second, third):
        found = ended[id(one)]
        assert isinstance(found, Synthesis)
        assert np.abs(found.samples - alone[id(one)]).max() < FARTHEST
    assert not [one for one in threading.enumerate() if one.name == "speaker" and one.is_alive()]


def test_the_bench_compares_sizes_and_processes(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "harvard_sentences", lambda: ("Rice.", "Four hours."))
    report = console.data("bench", "throughput", "--batch", 2, "--rounds", 2, "--device", "cpu", "--json")
    one, two = report["rows"]
    assert (one["at once"], two["at once"]) == (1, 2) and two["low"] <= two["gain"] <= two["high"]
    assert report["headline"] == two["gain"] and 0 < two["first audio (s)"] <= two["the last's (s)"]
    assert "cannot share 1 threads" in console.refusal("bench", "throughput", "--processes", 2)
