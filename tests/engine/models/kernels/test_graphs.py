"""CUDA graphs: recording, and the same results of flow, language and masked models."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.measure.roofline.measuring import RooflineTarget, measure_roofline
from paretone.models import load_model
from paretone.models.base import Utterance
from paretone.models.catalogue import voice
from paretone.models.kernels.graphs import CudaMemory, GraphCache, GraphedTransformer
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted, synthesise
from paretone.techniques import conflict, problem
from paretone.techniques.graphs import Graphing
from tests.engine import small_speech, speaking
from tests.engine.measure.roofline.known import keep_known_ceilings
from tests.engine.models.official import used
from tests.engine.models.omnivoice import small_release
from tests.engine.small_language import write_model
from tests.workload import crossed, workload


class Again:
    def __init__(self) -> None:
        self.recorded = self.replayed = 0

    def __call__(self, run: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        output = run()
        self.recorded += 1

        def replay() -> None:
            self.replayed += 1
            output.copy_(run())

        return replay, output


def graphs(**knobs: object) -> UsedTechnique:
    return UsedTechnique("graphs", Values({"bucket": 64, "most": 8} | knobs))


def recording(model: Any, record: Callable) -> Any:
    """``model`` as on a device that can record."""
    model.info, model.graphs = replace(model.info, lacking=()), GraphCache(record)
    return model


def masked(tmp_path: Path, record: Callable):
    return recording(small_release.load(small_release.write_release(tmp_path / "model")), record)


# --- The cache --------------------------------------------------------------------------------------------------------


class Weighed(CudaMemory):
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


@pytest.fixture
def four() -> GraphCache[str]:
    cache: GraphCache[str] = GraphCache(Again())
    cache.most = 4
    return cache


def failing() -> str:
    raise RuntimeError("not now\nmore")


def test_memory_that_is_short_gives_the_others_up(four: GraphCache[str]):
    def make() -> str:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nMore.")

    four.find("a", lambda: "made", "a")
    four.notes()
    assert four.find("b", make, "b") is None
    assert len(four) == 0
    assert four.notes() == (
        "No CUDA graph could be recorded of b (CUDA out of memory. Tried to allocate 2 GiB.), so it ran without one.",
    )


def test_recordings_of_what_is_gone_are_given_up(four: GraphCache[str]):
    graphs, owner, other = four, object(), object()
    for one in (owner, other):
        graphs.find(("language", id(one), 1), lambda: "made", "a pass")
        graphs.find(("language", id(one), 2), failing, "a longer pass")
    graphs.forget(owner)
    assert len(graphs) == 1 and graphs.find(("language", id(other), 1), failing, "a pass") == "made"
    assert graphs.find(("language", id(owner), 2), lambda: "made", "a longer pass") == "made", "whoever is named so now"
    assert graphs.find(("language", id(other), 2), lambda: "made", "a longer pass") is None


def test_a_failure_is_not_that_of_a_later_object_with_the_same_identity(four: GraphCache[str]):
    class Network:
        pass

    for _ in range(20):  # Python gives the same address again.
        network = Network()
        for _ in range(2):
            assert four.find(("frame", weakref.ref(network)), failing, "a frame") is None
        assert len(four.notes()) == 1, "it is not tried again"
        del network
        gc.collect()
    network = Network()
    assert four.find(("frame", weakref.ref(network)), lambda: "made", "a frame") == "made"


def test_recorded_forwards_have_rooflines(tmp_path, monkeypatch):
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    keep_known_ceilings()
    record = Again()
    small = small_speech.setting(3).with_technique(graphs())
    lm, omnivoice = recording(speaking.load(write_model(tmp_path / "lm")), record), masked(tmp_path, record)
    cases = (
        (recording(small_speech.load(), record), Utterance("One sentence.", small_speech.VOICE), small),
        (lm, Utterance(speaking.TEXT, voice("", "lm-mini")), speaking.setting(graphs())),
        (omnivoice, Utterance(small_release.TEXT, voice("", "OmniVoice")), small_release.setting(graphs())),
    )
    for model, utterance, chosen in workload(cases, cases[:1]):
        before = record.replayed
        made = measure_roofline(RooflineTarget(model, utterance, chosen), Observer(), rounds=1)
        assert record.replayed > before, "the whole forward is the recorded one"
        assert all(one.seconds is not None for phase in made.phases for one in phase.components)


def test_what_cannot_have_graphs_is_refused(tmp_path):
    info = speaking.load(write_model(tmp_path / "model")).info
    assert "CUDA graphs need an NVIDIA GPU" in (problem(info, speaking.setting(graphs())) or "")
    for name, other, said in (
        ("ditreducio", "graphs", "another part of every evaluation"),
        ("dual_block_cache", "compilation", "another part of every evaluation"),
        ("compilation", "graphs", "do without one of the two"),
    ):
        setting = Setting("f5-mini").with_technique(UsedTechnique(name)).with_technique(UsedTechnique(other))
        assert said in conflict(setting, other)


# --- On a card --------------------------------------------------------------------------------------------------------
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA graphics card")
@pytest.mark.parametrize("bucket", [1, 64])
def test_cuda_graphs_say_the_same(bucket):
    model = load_model("f5-mini", device="cuda")
    plain = Setting("f5-mini", Values(steps=7))
    text, ways = "The birch canoe slid on the smooth planks.", (plain, plain.with_technique(graphs(bucket=bucket)))
    expected, found = (synthesise(model, text, voice(), one) for one in ways)
    np.testing.assert_allclose(found.samples, expected.samples, atol=1e-3)
    assert any("Recording a CUDA graph" in note for note in found.notes)


def spoken(model, setting: Setting, text: str = "One sentence."):
    return synthesise(model, text, small_speech.VOICE, setting)


def compared(plain: Setting, variant: str = "", text: str = "One sentence.", atol: float = 1e-5, **knobs: object):
    """A flow model that has said the same without and with recordings: it, what records, and both syntheses."""
    record = Again()
    model = recording(small_speech.load(variant=variant), record)
    expected = spoken(model, plain, text)
    assert record.recorded == 0
    found = spoken(model, plain.with_technique(graphs(**knobs)), text)
    np.testing.assert_allclose(found.samples, expected.samples, atol=atol)
    return model, record, expected, found


FLOWS = crossed([1, 32], [{}, {"guidance": 0.0}, {"solver": "midpoint"}], [""])


@pytest.mark.parametrize(("bucket", "options", "variant"), [*FLOWS, (32, {}, "flat")])
def test_flow_models_say_the_same(bucket, options, variant):
    """Convolutions of the flat transformer of E2 would see padding, so every length has a separate recording."""
    _, record, expected, found = compared(small_speech.setting(4, **options), variant, bucket=bucket)
    assert record.recorded == 1
    assert record.replayed == (8 if options.get("solver") == "midpoint" else 4)
    assert found.measurements.ops_ratio == expected.measurements.ops_ratio
    assert any(f"of an evaluation of {22 if bucket == 1 or variant else 32} frames" in note for note in found.notes)


def test_what_is_recorded_outside_of_a_take_is_told_to_none():
    record, take, lines = Again(), Observer(), []
    take.status = lines.append
    model, chosen = recording(small_speech.load(), record), small_speech.setting(4).with_technique(graphs(bucket=1))
    synthesise(model, "One sentence.", small_speech.VOICE, chosen, (), take)
    assert len(lines) == record.recorded == 1
    alone = small_speech.setting(4, guidance=0.0).with_technique(graphs(bucket=1))
    model.sampling(scripted(model, "One sentence.", small_speech.VOICE, alone))()
    assert record.recorded == 2 and len(lines) == 1


def test_guided_and_unguided_evaluations_have_recordings_of_their_own():
    interval = UsedTechnique("guidance_interval", Values(steps=2))
    assert compared(small_speech.setting(5).with_technique(interval))[1].recorded == 2


def test_a_failed_recording_falls_back():
    def fails(run: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        raise RuntimeError("no room")

    model, plain = recording(small_speech.load(), fails), small_speech.setting(3)
    found, expected = spoken(model, plain.with_technique(graphs())), spoken(model, plain)
    np.testing.assert_array_equal(found.samples, expected.samples)
    assert any("(no room), so it ran without one" in note for note in found.notes)


def test_a_recording_keeps_what_it_is_of():
    """It is found by the backbone's identity, which another one could have once the first is gone."""
    model = recording(small_speech.load(), lambda run: (lambda: None, run()))
    spoken(model, small_speech.setting(2).with_technique(graphs()))
    made, backbone = model.graphs, weakref.ref(model.backbone)
    del model
    gc.collect()
    assert len(made) == 1 and backbone() is not None
    del made
    gc.collect()
    assert backbone() is None


def test_passes_have_the_same_hidden_states(tmp_path):
    """Token by token, several at once, some taken back, and again from the beginning: all after one prompt."""
    record = Again()
    plain = speaking.load(write_model(tmp_path / "model")).own.tokens
    graphs: GraphCache = GraphCache(record)
    graphs.most = 32
    graphed = plain.with_transformer(GraphedTransformer(plain.transformer, graphs, bucket=16))
    torch.manual_seed(0)
    for _ in range(2):
        caches = [one.cache(90) for one in (plain, graphed)]
        begun = (30, 30), (1, 31), (1, 32), (4, 34), (4, 38), (1, 39)
        for tokens, kept in (*begun, *((1, one) for one in range(40, 70))):
            embedded = torch.randn(1, tokens, plain.transformer.config.hidden)
            places = torch.arange(tokens) + caches[0].length
            both = zip((plain, graphed), caches, strict=True)
            states = [one.transformer(embedded, cache, places) for one, cache in both]
            torch.testing.assert_close(states[1], states[0], atol=1e-4, rtol=1e-4)
            for cache in caches:
                cache.crop(kept)
    assert record.replayed == 2 * 35, "all but the prompts"
    before = record.recorded
    graphed.reach(2 * len(plain.transformer.rotations))
    caches[1].crop(68)
    torch.testing.assert_close(graphed.transformer(embedded, caches[1], places), states[0], atol=1e-4, rtol=1e-4)
    assert record.recorded == before + 1, "the rotations of further positions are another table"
    assert record.recorded == len(graphs) < 12


def test_language_models_speak_by_recordings(tmp_path):
    record = Again()
    model = recording(speaking.load(write_model(tmp_path / "model")), record)
    chosen = speaking.setting(graphs(bucket=64))
    found, expected = speaking.spoken(model, chosen), speaking.spoken(model, speaking.setting())
    assert found.trace.decoding.tokens[:20] == expected.trace.decoding.tokens[:20]
    assert record.replayed == found.measurements.target_passes
    assert any("a pass over 1 token within" in note for note in found.notes)
    before = record.recorded
    assert speaking.spoken(model, chosen).trace.decoding.tokens == found.trace.decoding.tokens
    assert record.recorded == before, "the next request has the same recordings"


def test_drafts_are_recorded_too(tmp_path):
    record, root = Again(), speaking.write_all(tmp_path / "model")
    drafted = speaking.drafted(draft_length=3, adaptive=False)
    found = speaking.spoken(recording(speaking.load(root), record), speaking.setting(drafted, graphs(bucket=32)))
    assert any("a pass over 4 tokens" in note for note in found.notes)
    assert any("a pass over 1 token" in note for note in found.notes)
    assert record.replayed > found.measurements.target_passes


BLOCKS = used(
    "blockwise", block=16, first_block=16, first_steps=2, later_steps=3, adaptive=False, look_ahead=16, text_every=1
)


@pytest.fixture(scope="module")
def omnivoice(tmp_path_factory: pytest.TempPathFactory):
    return masked(tmp_path_factory.mktemp("graphs"), Again())


@pytest.mark.parametrize("techniques", [(), (used("guidance_stride"),), (BLOCKS,)])
def test_masked_models_say_the_same(omnivoice, techniques):
    plain = small_release.setting(*techniques)
    expected = small_release.spoken(omnivoice, plain)
    for bucket in workload((1, 32), (32,)):
        record, chosen = Again(), plain.with_technique(graphs(bucket=bucket, most=16))
        omnivoice.graphs = GraphCache(record)
        found = small_release.spoken(omnivoice, chosen)
        for one, other in zip(expected.trace.demasking.passages, found.trace.demasking.passages, strict=True):
            np.testing.assert_array_equal(one.codes, other.codes)
            np.testing.assert_array_equal(one.order, other.order)
        np.testing.assert_allclose(found.samples, expected.samples, atol=1e-5)
        assert record.replayed == found.measurements.evaluations, "every step is a recorded one"
        assert found.measurements.ops_ratio == pytest.approx(expected.measurements.ops_ratio)
        kept = record.recorded
        np.testing.assert_allclose(small_release.spoken(omnivoice, chosen).samples, expected.samples, atol=1e-5)
        assert record.recorded == kept


def test_texts_of_masked_models_share_recordings(omnivoice):
    model, record, plain = omnivoice, Again(), small_release.setting()
    model.graphs = GraphCache(record)
    lengths = set()
    for text in (small_release.TEXT, "Rice is served."):
        ways = plain, plain.with_technique(graphs(bucket=128))
        expected, found = (small_release.spoken(model, one, text) for one in ways)
        (one,), (other,) = expected.trace.demasking.passages, found.trace.demasking.passages
        np.testing.assert_array_equal(one.codes, other.codes)
        lengths.add(one.codes.shape[1])
        assert record.recorded == 1, "one graph has room for all"
    assert len(lengths) == 2
