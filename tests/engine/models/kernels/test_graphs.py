"""Recordings of forwards: a cache of them, and where they are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from paretone.measure.roofline import benchmarks
from paretone.measure.roofline import ceilings as store
from paretone.measure.roofline.measuring import RooflineTarget, measure_roofline
from paretone.models import load_model
from paretone.models.base import Utterance
from paretone.models.catalogue import voice
from paretone.models.kernels.graphs import GraphCache, record_cuda
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques import conflict, problem
from paretone.techniques.graphs import Graphing
from tests.engine import small_speech, speaking
from tests.engine.models.kernels.replaying import Again, flow, graphs, language, masked
from tests.engine.models.omnivoice import small_release
from tests.engine.small_language import write_model

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA graphics card")


# --- The cache --------------------------------------------------------------------------------------------------------
def test_the_one_used_longest_ago_is_given_up():
    graphs: GraphCache[str] = GraphCache(Again())
    graphs.most = 2
    for name in "abacb":
        assert graphs.find(name, lambda name=name: f"made {name}", name) == f"made {name}"
    assert len(graphs) == 2
    notes = graphs.notes()
    assert [note.split(" took")[0][-1] for note in notes] == ["a", "b", "c", "b"]
    assert graphs.notes() == ()
    graphs.clear()
    assert len(graphs) == 0


class Weighed:
    """Stands in for a card's memory: what is recorded says what it weighs."""

    def __init__(self, capacity: int) -> None:
        self.total, self.bytes = capacity, 0

    def held(self) -> int:
        return self.bytes

    def capacity(self) -> int:
        return self.total

    def taking(self, more: int) -> Callable[[], str]:
        def make() -> str:
            self.bytes += more
            return "made"

        return make


def test_recordings_hold_no_more_memory_than_they_may():
    memory = Weighed(1000)
    graphs: GraphCache[str] = GraphCache(Again(), memory)
    graphs.bound(Graphing(bucket=1, most=8, share=0.5))
    for name in "abc":
        assert graphs.find(name, memory.taking(200), name) == "made"
    assert (len(graphs), graphs.bytes) == (2, 400), "a made room, though there may be eight"
    assert "and 0 MB" in graphs.notes()[0]
    assert graphs.find("large", memory.taking(501), "all of it") is None
    assert (len(graphs), graphs.bytes) == (2, 400)
    assert graphs.notes()[-1].startswith("No CUDA graph could be recorded of all of it (it takes 0 MB")
    graphs.bound(Graphing(bucket=1, most=8, share=0.25))
    assert graphs.bytes == 200, "the one used last is left"
    graphs.bound(Graphing(bucket=1, most=8, share=0.9))
    assert graphs.find("large", memory.taking(501), "all of it") == "made", "there is room for it now"


def test_memory_that_is_short_gives_the_others_up():
    def make() -> str:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nMore.")

    graphs: GraphCache[str] = GraphCache(Again())
    graphs.most = 4
    graphs.find("a", lambda: "made", "a")
    graphs.notes()
    assert graphs.find("b", make, "b") is None
    assert len(graphs) == 0
    assert graphs.notes() == (
        "No CUDA graph could be recorded of b (CUDA out of memory. Tried to allocate 2 GiB.), so it ran without one.",
    )


def test_what_is_being_recorded_is_told():
    told: list[str] = []
    graphs: GraphCache[str] = GraphCache(Again())
    graphs.status = told.append
    for _ in range(2):
        graphs.find("a", lambda: "made", "a step")
    assert told == ["Recording a CUDA graph of a step …"]


def test_recordings_of_what_is_gone_are_given_up():
    def failing() -> str:
        raise RuntimeError("not now")

    owner, other = object(), object()
    graphs: GraphCache[str] = GraphCache(Again())
    graphs.most = 4
    for one in (owner, other):
        graphs.find(("language", id(one), 1), lambda: "made", "a pass")
        graphs.find(("language", id(one), 2), failing, "a longer pass")
    graphs.forget(owner)
    assert list(graphs._kept) == [("language", id(other), 1)]
    assert graphs.find(("language", id(owner), 2), lambda: "made", "a longer pass") == "made", "whoever is named so now"
    assert graphs.find(("language", id(other), 2), lambda: "made", "a longer pass") is None


def test_what_cannot_be_recorded_is_not_tried_again():
    tried = []

    def make() -> str:
        tried.append(1)
        raise RuntimeError("not while a stream is recorded\nmore")

    graphs: GraphCache[str] = GraphCache(Again())
    assert graphs.find("a", make, "a step") is None
    assert graphs.find("a", make, "a step") is None
    assert len(tried) == 1
    assert graphs.notes() == (
        "No CUDA graph could be recorded of a step (not while a stream is recorded), so it ran without one.",
    )


def test_without_a_card_nothing_can_be_recorded():
    if torch.cuda.is_available():
        pytest.skip("there is a graphics card")
    with pytest.raises(RuntimeError, match="no CUDA device"):
        record_cuda(lambda: torch.zeros(1))


# --- The roofline -----------------------------------------------------------------------------------------------------
def test_recorded_forwards_have_rooflines(tmp_path, monkeypatch):
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    blank = benchmarks._blank(torch.device("cpu"))
    store.keep(replace(blank, operations={"float32": 1e11}, bytes={"float32": 1e10}, launch_seconds=1e-6))
    record = Again()
    small = small_speech.setting(3).with_technique(graphs())
    cases = (
        (flow(record), Utterance("One sentence.", small_speech.VOICE), small),
        (
            language(write_model(tmp_path / "lm"), record),
            Utterance(speaking.TEXT, voice("", "lm-mini")),
            speaking.setting(graphs()),
        ),
        (
            masked(tmp_path, record),
            Utterance(small_release.TEXT, voice("", "OmniVoice")),
            small_release.setting(graphs()),
        ),
    )
    for model, utterance, chosen in cases:
        before = record.replayed
        made = measure_roofline(RooflineTarget(model, utterance, chosen), Observer(), rounds=1)
        assert record.replayed > before, "the whole forward is the recorded one"
        assert all(one.seconds is not None for phase in made.phases for one in phase.components)


# --- What is refused --------------------------------------------------------------------------------------------------
def test_a_device_without_graphs_is_refused():
    model = load_model("f5-mini", device="cpu")
    setting = Setting("f5-mini").with_technique(graphs())
    assert "CUDA graphs need an NVIDIA GPU" in (problem(model.info, setting) or "")


@pytest.mark.parametrize("name", ["ditreducio", "error_curve", "first_block", "dual_block_cache"])
@pytest.mark.parametrize("other", ["graphs", "compilation"])
def test_partial_evaluations_are_not_recorded(name, other):
    setting = Setting("f5-mini").with_technique(UsedTechnique(name)).with_technique(UsedTechnique(other))
    assert "another part of every evaluation" in conflict(setting, other)


def test_graphs_and_compiling_exclude_each_other():
    setting = Setting("f5-mini").with_technique(graphs()).with_technique(UsedTechnique("compilation"))
    assert "do without one of the two" in conflict(setting, "graphs")


# --- On a card --------------------------------------------------------------------------------------------------------
@needs_cuda
@pytest.mark.parametrize("bucket", [1, 64])
def test_cuda_graphs_say_the_same(bucket):
    model = load_model("f5-mini", device="cuda")
    plain = Setting("f5-mini", Values(steps=7))
    text, ways = "The birch canoe slid on the smooth planks.", (plain, plain.with_technique(graphs(bucket=bucket)))
    expected, found = (synthesise(model, text, voice(), one) for one in ways)
    np.testing.assert_allclose(found.samples, expected.samples, atol=1e-3)
    assert any("Recording a CUDA graph" in note for note in found.notes)


@needs_cuda
def test_memory_stays_flat_over_many_lengths():
    model = load_model("f5-mini", device="cuda")
    setting = Setting("f5-mini", Values(steps=3)).with_technique(graphs(bucket=1, most=2))
    used = []
    for words in range(3, 23):
        text = " ".join(["canoe"] * words) + "."
        synthesise(model, text, voice(), setting)
        used.append(torch.cuda.memory_reserved())
    assert max(used[10:]) <= 1.5 * max(used[:10])
