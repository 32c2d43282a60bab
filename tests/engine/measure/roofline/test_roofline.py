"""Counts, ceilings, clock and reports of the roofline, and small models taken apart."""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from engine.errors import Cancelled, SettingError
from engine.measure.roofline import benchmarks, counts
from engine.measure.roofline import ceilings as store
from engine.measure.roofline import clock as clock_module
from engine.measure.roofline.ceilings import COMPUTE, LAUNCH, MEMORY, Ceilings
from engine.measure.roofline.clock import Clock, Part, Stage
from engine.measure.roofline.counts import Work
from engine.measure.roofline.launches import counted, write_chrome_trace
from engine.measure.roofline.measuring import RooflineTarget, measure_roofline
from engine.measure.roofline.report import (
    ATTENTION,
    FEED_FORWARD,
    HEAD,
    JOINS,
    NORMS,
    PROJECTIONS,
    REST,
    SAVED_TOGETHER,
    TITLES,
    WITHIN_NOISE,
    Component,
    Phase,
    RooflineReport,
    shares,
)
from engine.models import load_model
from engine.models.base import FLOW, Utterance
from engine.models.catalogue import entry, voice
from engine.models.silent_observer import SilentObserver
from engine.sampling.demasking import Guide
from engine.setting.knobs import Values
from engine.setting.setting import Engaged, Setting
from tests.engine import small_language, small_speech, speaking
from tests.engine.models.omnivoice.small_release import TEXT as OMNIVOICE_TEXT
from tests.engine.models.omnivoice.small_release import write_release
from tests.engine.small_language import write_model

CPU = torch.device("cpu")


def ceilings(**changes: object) -> Ceilings:
    made = Ceilings("a device", "seconds", {"float32": 1e11, "int8": 4e11}, {"float32": 1e10}, 1e-6, torch="2")
    return replace(made, **changes)


@pytest.fixture
def known_ceilings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ceilings:
    """Ceilings that are kept for this machine, so that no test has to measure them."""
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    blank = benchmarks._blank(CPU)
    kept = replace(blank, operations={"float32": 1e11}, bytes={"float32": 1e10}, launch_seconds=1e-6)
    store.keep(kept)
    return kept


# --- Counts ---------------------------------------------------------------------------------------------------------
def test_products_and_attention_are_counted_as_torch_counts_them():
    rows, hidden, queries, keys, inner = 7, 24, 32, 16, 40
    x = torch.randn(rows, hidden)
    with FlopCounterMode(display=False) as counter:
        F.linear(x, torch.randn(queries + 2 * keys, hidden))
        F.linear(torch.randn(rows, queries), torch.randn(hidden, queries))
    assert counts.projections(rows, hidden, queries, keys).operations == counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        F.linear(F.silu(F.linear(x, torch.randn(2 * inner, hidden)))[:, :inner], torch.randn(hidden, inner))
    assert counts.feed_forward(rows, hidden, inner, gated=True).operations == counter.get_total_flops()
    query = torch.randn(2, 4, rows, 8)
    with FlopCounterMode(display=False) as counter:
        (query @ query.transpose(-1, -2)) @ query
    assert counts.attention(2, rows, 32, 32).operations == counter.get_total_flops()


def test_bytes_are_those_of_the_tensors():
    work = counts.linear(7, 24, 32, width=4)
    tensors = torch.randn(7, 24), torch.randn(24, 32), torch.randn(7, 32)
    assert work.bytes == sum(one.numel() * one.element_size() for one in tensors)
    assert counts.linear(7, 24, 32, width=4, weight_width=1).bytes == work.bytes - 3 * 24 * 32
    # A token that sees 100 keys: its query, all keys and values, what comes of it.
    assert counts.attention(1, 1, 32, 16, width=2, seen=100).bytes == 2 * (32 + 2 * 100 * 16 + 32)


def test_operators_are_counted_without_views():
    weight, x = torch.randn(6, 5), torch.randn(3, 5)
    launched, work = counted(lambda: F.linear(x, weight).view(2, 9).transpose(0, 1).add_(1.0))
    assert launched == 2
    assert work.operations == 2 * 3 * 5 * 6
    assert work.bytes == 4 * (3 * 5 + 6 * 5 + 3 * 6) + 4 * 2 * 18


def test_the_processors_own_attention_is_counted():
    query = torch.randn(1, 2, 6, 8)
    launched, work = counted(lambda: F.scaled_dot_product_attention(query, query, query))
    assert launched == 1
    assert work.operations == counts.attention(1, 6, 16, 16).operations


# --- Ceilings -------------------------------------------------------------------------------------------------------
def test_what_takes_longest_bounds():
    known = ceilings()
    assert known.bound(Work(1e9, 1e3), "float32", 1) == COMPUTE
    assert known.bound(Work(1e3, 1e9), "float32", 1) == MEMORY
    assert known.bound(Work(1e3, 1e3), "float32", 5) == LAUNCH
    assert known.floor(Work(1e9, 1e9), "float32") == pytest.approx(0.1)
    assert known.ridge("float32") == 10
    # What was not measured in a precision is float32's.
    assert known.seconds(Work(4e11, 1e10), "int8") == (1.0, 1.0)


def test_graphs_launch_by_their_own_ceiling():
    known = ceilings(graph_launch_seconds=1e-7)
    assert known.launching(10) == pytest.approx(1e-5)
    assert known.launching(10, graphed=True) == pytest.approx(1e-6)
    assert ceilings().launching(10, graphed=True) == pytest.approx(1e-5)


def test_ceilings_are_kept_per_device(monkeypatch, tmp_path):
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "new"))
    one, other = ceilings(), ceilings(device="another", graph_launch_seconds=2e-7)
    assert store.kept(one.key) is None
    store.keep(one)
    store.keep(other)
    assert store.kept(one.key) == one and store.kept(other.key) == other
    store.keep(replace(one, launch_seconds=3e-6))
    assert store.kept(one.key).launch_seconds == 3e-6 and store.kept(other.key) == other


@pytest.mark.parametrize("content", ["", "[]", "{", '{"schema": 99}', '{"schema": 1, "ceilings": [{"device": 1}]}'])
def test_a_damaged_file_counts_as_none(monkeypatch, tmp_path, content):
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    (tmp_path / store.FILE).write_text(content)
    assert store.kept(ceilings().key) is None


def test_ceilings_that_are_no_numbers_are_refused():
    data = ceilings().to_json()
    assert Ceilings.from_json(data) == ceilings()
    with pytest.raises(ValueError, match="positive"):
        Ceilings.from_json(data | {"launch_seconds": -1.0})
    with pytest.raises(ValueError, match="float32"):
        Ceilings.from_json(data | {"operations": {"int8": 1.0}})


@pytest.mark.slow
def test_this_machine_has_ceilings(monkeypatch):
    monkeypatch.setitem(benchmarks.SIZES, "cpu", (256,))
    monkeypatch.setitem(benchmarks.COPIED, "cpu", 2**22)
    measured = benchmarks.measure(CPU)
    assert measured.device and measured.threads == torch.get_num_threads()
    # Orders of magnitude only, for a unit that was mistaken: how fast the machine is, and how busy, is not known.
    assert measured.operations["float32"] > 1e6 and measured.bytes["float32"] > 1e6
    assert 1e-9 < measured.launch_seconds < 0.1
    assert Ceilings.from_json(json.loads(json.dumps(measured.to_json()))) == measured


# --- Clock ----------------------------------------------------------------------------------------------------------
def busy(rows: int):
    weight, x = torch.randn(256, 256), torch.randn(rows, 256)
    return lambda: F.linear(x, weight)


def test_a_stage_is_measured_part_by_part():
    small, large = busy(64), busy(640)
    layer = [(PROJECTIONS, small), (FEED_FORWARD, large)]
    parts = Part(PROJECTIONS, Work(1, 1), 3), Part(FEED_FORWARD, None, 3, share=0.5, note="half")

    def whole() -> None:
        for _, run in layer * 3:
            run()

    ticks = []
    clock = Clock(CPU, lambda: ticks.append(1), rounds=3)
    stage = Stage("evaluation", "Evaluations", 4, parts, tuple(layer * 3), whole, layers=(small, large))
    phase = clock.measure(stage)
    first, second = phase.components
    assert (first.calls, second.calls) == (12, 6)
    assert first.work == Work(1, 1)
    assert second.work.operations == 2 * 640 * 256 * 256 and second.note == "half"
    assert (first.launches, phase.launches, phase.layer_launches) == (1, 6, (1, 1))
    assert second.seconds > 0 and first.seconds > 0
    assert phase.rest.name == REST and len(ticks) == clock.blocks([stage])
    assert phase.seconds == pytest.approx(4 * phase.whole_seconds)
    assert sum(one.total_seconds for one in phase.rows()) == pytest.approx(phase.seconds)


def test_layers_may_be_what_is_missing_without_them():
    one = busy(8)

    def forward(layers: int) -> None:
        for _ in range(2 * layers + 1):
            one()

    stage = Stage(
        "decode",
        "Passes",
        1,
        (Part(HEAD),),
        ((HEAD, one),),
        lambda: forward(3),
        layers=(lambda: forward(2),) * 3,
        without=True,
    )
    assert Clock(CPU, rounds=1).measure(stage).layer_launches == (2, 2, 2)


@pytest.mark.parametrize(
    ("beyond", "said"),
    [
        ((0.05, -0.06, 0.04, -0.01, 0.02), WITHIN_NOISE),
        ((0.05, 0.06, 0.04, 0.01, 0.02), ""),
        ((-0.05, -0.06, -0.04, -0.01, -0.02), SAVED_TOGETHER),
    ],
)
def test_the_rest_is_told_from_noise_within_rounds(monkeypatch, beyond, said):
    """On a clock of our own, under other programs that make rounds up to ten times as slow as others."""
    slow = (1, 10, 1, 4, 2)
    now, rounds = 0.0, []
    turns: list[str] = []

    def factor(name: str) -> float:
        """Slowness of this round; pieces and whole each run first in some rounds."""
        turns.append(name)
        return slow[max(0, turns.count(name) - 3)]  # Each is run twice to see how long it takes.

    def spend(seconds: float) -> None:
        nonlocal now
        now += seconds

    def first() -> None:
        rounds.append(factor("p"))
        spend(0.005 * rounds[-1])

    def whole() -> None:
        once = factor("w")
        spend(0.02 * once * (1 + beyond[max(0, turns.count("w") - 3)]))

    monkeypatch.setattr(time, "process_time", lambda: now)
    monkeypatch.setattr(clock_module, "launches", lambda run, device: 2)
    monkeypatch.setattr(clock_module, "counted", lambda run: (1, Work(1, 1)))
    pieces = (PROJECTIONS, first), (FEED_FORWARD, lambda: spend(0.015 * rounds[-1]))
    parts = Part(PROJECTIONS), Part(FEED_FORWARD)
    phase = Clock(CPU, rounds=5).measure(Stage("evaluation", "Evaluations", 4, parts, pieces, whole))
    assert "".join(turns) == "ppww" + "pwwpwppwpw", "taking turns in going first"
    wholes = [0.02 * one * (1 + more) for one, more in zip(slow, beyond, strict=True)]
    assert phase.whole_seconds == pytest.approx(median(wholes))
    share = median(1 / (1 + more) for more in beyond)
    taken = [one.seconds for one in phase.components]
    assert taken == pytest.approx([share * phase.whole_seconds * one for one in (0.25, 0.75)])
    left = [1 - 1 / (1 + more) for more in beyond]
    assert phase.rest_range == pytest.approx((min(left) * phase.whole_seconds, max(left) * phase.whole_seconds))
    assert phase.rest.seconds == pytest.approx((1 - share) * phase.whole_seconds)
    assert phase.bound(phase.rest, ceilings()) == said and phase.rest_is_noise == (said == WITHIN_NOISE)
    low, high = (4000 * one for one in phase.rest_range)
    assert f"between {low:.3g} and {high:.3g} ms" in phase.rest.note


def test_few_rounds_say_nothing_of_noise():
    run = busy(64)
    stage = Stage("evaluation", "Evaluations", 1, (Part(HEAD),), ((HEAD, run),), run)
    phase = Clock(CPU, rounds=2).measure(stage)
    assert phase.rest_range is None and not phase.rest_is_noise and phase.rest.note == ""


def test_measuring_can_be_cancelled():
    def tick() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        Clock(CPU, tick, rounds=1).measure(Stage("a", "A", 1, (Part(HEAD),), ((HEAD, busy(8)),)))


# --- Reports --------------------------------------------------------------------------------------------------------
def report() -> RooflineReport:
    components = (
        Component(ATTENTION, 8, Work(1e9, 1e3), "float32", 1, 0.02),
        Component(NORMS, 8, Work(1e3, 1e7), "float32", 2, 0.001),
    )
    phases = (
        Phase("evaluation", "Evaluations", 4, components, 0.05, 7, (3, 3)),
        Phase("decoder", "Decoder", 1, (Component(HEAD, 1, Work(1e3, 1e3), "float32", 50, 0.004),), None, 50),
    )
    return RooflineReport("small", "Small", Setting("small"), ceilings(), phases, "Text.", "voice")


def test_what_follows_from_a_measurement():
    made = report()
    assert made.measured == pytest.approx(4 * 0.05 + 0.004)
    assert made.floor == pytest.approx(8 * 0.01 + 8 * 0.001 + 1e-7)
    assert made.launches == 4 * 7 + 50
    assert made.by_component() == pytest.approx({ATTENTION: 0.16, NORMS: 0.008, HEAD: 0.004, REST: 0.032})
    bound = shares(made)
    assert sum(bound.values()) == pytest.approx(1)
    assert bound[COMPUTE] == pytest.approx(0.16 / 0.204) and bound[LAUNCH] == pytest.approx(0.004 / 0.204)
    rest = made.phases[0].rest
    assert rest.seconds == pytest.approx(0.05 - (0.16 + 0.008) / 4)
    assert rest.launches == pytest.approx(7 - 2 * 3)
    assert rest.bound(made.ceilings) == "" and rest.ratio(made.ceilings) is None


def test_launches_by_layer_are_said_of_every_layer():
    said = {
        (): "",
        (14, 14, 14): "14 per layer",
        (12, 14, 14, 14, 15): "12, 3 × 14, 15 by layer",
        (9, 8): "9, 8 by layer",
    }
    for layers, words in said.items():
        assert Phase("evaluation", "Evaluations", 1, (), layer_launches=layers).launches_by_layer == words


def test_a_rest_that_is_no_time_bounds_nothing():
    made = report()
    noise = replace(made, phases=(replace(made.phases[0], rest_range=(-0.01, 0.02)), made.phases[1]))
    saved = replace(
        made, phases=(replace(made.phases[0], whole_seconds=0.04, rest_range=(-0.003, -0.001)), made.phases[1])
    )
    assert noise.rest_is_noise and not saved.rest_is_noise and not made.rest_is_noise
    for one in (noise, saved):
        bound = shares(one)
        assert bound["uncounted"] == 0 and sum(bound.values()) == pytest.approx(1)
        assert bound[COMPUTE] == pytest.approx(0.16 / 0.172)
    assert saved.by_component()[REST] == pytest.approx(-0.008), "it is shown all the same"
    assert noise.to_json()["phases"][0]["rest_seconds_range"] == [-0.01, 0.02]
    assert "within noise: between -40 and 80 ms" in noise.to_csv()


def test_a_report_crosses_to_a_front_end_and_to_files():
    made = report()
    assert pickle.loads(pickle.dumps(made)) == made
    data = json.loads(json.dumps(made.to_json(), allow_nan=False))
    assert [one["component"] for one in data["components"]] == [ATTENTION, NORMS, REST, HEAD]
    rows = [line for line in made.to_csv().splitlines() if not line.startswith("#")]
    assert len(rows) == 1 + 4 and rows[1].startswith("evaluation,attention,float32,8,")


# --- Models ---------------------------------------------------------------------------------------------------------
def measured(model, setting: Setting, **more: object) -> RooflineReport:
    target = RooflineTarget(model, Utterance("One sentence.", small_speech.VOICE), setting)
    return measure_roofline(target, SilentObserver(), rounds=1, **more)


def small_flow(variant: str = ""):
    return small_speech.load("small", "", variant, "cpu", lambda text: None, lambda: None)


def test_a_flow_model_is_taken_apart(known_ceilings, tmp_path):
    trace = tmp_path / "trace.json"
    made = measured(small_flow(), small_speech.setting(4), trace=trace)
    assert made.ceilings == known_ceilings
    assert [phase.name for phase in made.phases] == ["conditioning", "evaluation", "decoder"]
    evaluation = made.phases[1]
    by_name = {one.name: one for one in evaluation.components}
    frames, config = small_speech.PROMPT_FRAMES + 12, small_speech.CONFIG
    assert evaluation.forwards == 4
    assert by_name[ATTENTION].calls == 4 * small_speech.LAYERS
    counted_too = small_flow()._backbone.operations(frames, guided=True)
    both = by_name[ATTENTION].work.operations + by_name[PROJECTIONS].work.operations
    assert both == counted_too.branches * counted_too.attention
    assert by_name[FEED_FORWARD].work.operations == counted_too.branches * counted_too.feed_forward
    assert by_name[PROJECTIONS].work == counts.projections(2 * frames, config.dim, 16, 16, 4, 4)
    assert len(evaluation.layer_launches) == small_speech.LAYERS and min(evaluation.layer_launches) > 5
    assert all(one.seconds is not None for one in evaluation.components)
    events = json.loads(trace.read_bytes())["traceEvents"]
    assert {"Evaluations", "Decoder"} <= {one["name"] for one in events}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_flat_transformer_of_e2_is_taken_apart(known_ceilings, precision):
    model, setting = small_flow("flat"), small_speech.setting(4)
    if precision != "float32":
        setting = setting.with_technique(Engaged("precision", Values(precision=precision)))
    made = measured(model, setting)
    assert [phase.name for phase in made.phases] == ["conditioning", "evaluation", "decoder"]
    evaluation = made.phases[1]
    by_name = {one.name: one for one in evaluation.components}
    assert list(by_name) == [name for name in TITLES if name in by_name]
    config, frames = small_speech.FLAT_CONFIG, small_speech.PROMPT_FRAMES + 12
    expected = model._backbone.operations(frames, guided=True)
    assert by_name[JOINS].calls == 4 * config.depth / 2
    assert by_name[ATTENTION].calls == 4 * config.depth
    both = by_name[ATTENTION].work.operations + by_name[PROJECTIONS].work.operations
    assert both == expected.branches * expected.attention
    assert by_name[FEED_FORWARD].work.operations == expected.branches * expected.feed_forward
    joined = 2 * expected.branches * (frames + 1) * 2 * config.dim * config.dim
    assert by_name[JOINS].work.operations == joined
    assert by_name[FEED_FORWARD].precision == precision
    first, *_, last = evaluation.layer_launches
    assert len(evaluation.layer_launches) == config.depth and last > first, "late layers join"
    assert all(one.seconds is not None for one in evaluation.components)


def test_what_is_skipped_is_not_counted(known_ceilings):
    always = Engaged("first_block", Values(threshold=1.0))
    plain = measured(small_flow(), small_speech.setting(6)).phases[1]
    made = measured(small_flow(), small_speech.setting(6).with_technique(always)).phases[1]
    calls = {one.name: one.calls for one in made.components}
    assert calls[ATTENTION] < {one.name: one.calls for one in plain.components}[ATTENTION]
    assert calls[HEAD] == 6
    assert "are computed" in made.components[1].note


def test_guided_and_unguided_evaluations_are_apart(known_ceilings):
    half = Engaged("guidance_interval", Values(steps=2))
    made = measured(small_flow(), small_speech.setting(6).with_technique(half))
    guided, unguided = made.phases[1:3]
    assert (guided.forwards, unguided.forwards) == (2, 4)
    assert guided.components[1].work.operations == 2 * unguided.components[1].work.operations


def test_a_language_model_is_taken_apart(known_ceilings, tmp_path):
    model = speaking.load(write_model(tmp_path / "model"))
    target = RooflineTarget(model, Utterance(speaking.TEXT, voice("slt")), speaking.setting())
    made = measure_roofline(target, SilentObserver(), rounds=1)
    assert [phase.name for phase in made.phases] == ["prefill", "decode", "decoder"]
    decode = made.phases[1]
    by_name = {one.name: one for one in decode.components}
    assert list(by_name) == [name for name in TITLES if name in by_name]
    transformer = model.own.tokens.transformer
    context = int(decode.shape.rpartition(" ")[2]) - 1
    layers = sum(by_name[name].work.operations for name in (PROJECTIONS, ATTENTION, FEED_FORWARD))
    assert layers * small_language.LAYERS == transformer.operations(1, context)
    assert by_name[HEAD].work.operations == 2 * model.own.tokens.head.numel()
    assert len(decode.layer_launches) == small_language.LAYERS and min(decode.layer_launches) > 5


def test_drafting_and_checking_are_apart(known_ceilings, tmp_path):
    model = speaking.load(speaking.write_all(tmp_path / "model"))
    chosen = speaking.setting(speaking.drafted(draft_length=3, adaptive=False))
    made = measure_roofline(
        RooflineTarget(model, Utterance(speaking.TEXT, voice("slt")), chosen), SilentObserver(), rounds=1
    )
    phases = {phase.name: phase for phase in made.phases}
    assert phases["draft"].forwards > phases["decode"].forwards
    assert len(phases["draft"].layer_launches) == 2 < len(phases["decode"].layer_launches)
    assert phases["decode"].shape.startswith("4 tokens")


def test_what_has_no_layers_is_refused(known_ceilings):
    class Other:
        def __init__(self) -> None:
            self.info = replace(small_flow().info, family=FLOW, title="Other")

        def make_ready(self, *arguments: object) -> None: ...

    with pytest.raises(SettingError, match="Other cannot be measured by component"):
        measured(Other(), small_speech.setting(2))


def test_a_trace_that_cannot_be_written_says_so(tmp_path):
    from engine.errors import PlainError

    with pytest.raises(PlainError, match="could not be written"):
        write_chrome_trace(lambda: None, tmp_path / "missing" / "trace.json", CPU)


def test_writing_a_trace_says_nothing(tmp_path, capfd):
    write_chrome_trace(lambda: torch.ones(3).add_(1.0), tmp_path / "trace.json", CPU)
    assert capfd.readouterr() == ("", "")
    assert any("add" in one["name"] for one in json.loads((tmp_path / "trace.json").read_bytes())["traceEvents"])


def masked_model(tmp_path: Path, layers: int = 2):
    model = load_model("OmniVoice", folder=str(write_release(tmp_path / "model", layers=layers)), device="cpu")
    options = entry("OmniVoice").options_with(clone=False, steps=6, post_process=False)
    return model, Setting("OmniVoice", options)


def test_a_masked_model_is_taken_apart(known_ceilings, tmp_path):
    model, setting = masked_model(tmp_path)
    utterance = Utterance(OMNIVOICE_TEXT, voice("", "OmniVoice"))
    made = measure_roofline(RooflineTarget(model, utterance, setting), SilentObserver(), rounds=1)
    assert [phase.name for phase in made.phases] == ["conditioning", "evaluation", "decoder"]
    phase = made.phases[1]
    by_name = {one.name: one for one in phase.components}
    works = model.internals(utterance.text, utterance.voice, setting)
    config, request = works.network.config, works.request
    # The first layer projects the canvas once for both branches, and the last one computes what is filled in only.
    most = request.operations(config, request.frames, Guide.BOTH)
    spent = sum(by_name[name].work.operations * by_name[name].calls for name in (PROJECTIONS, ATTENTION, FEED_FORWARD))
    spent = (spent + by_name[HEAD].work.operations * by_name[HEAD].calls) / phase.forwards
    assert 0.5 * most < spent < most
    assert by_name[HEAD].work.operations == 2 * request.frames * config.transformer.hidden * config.rows


def test_guided_steps_of_a_masked_model_are_apart(known_ceilings, tmp_path):
    model, setting = masked_model(tmp_path)
    half = Engaged("guidance_interval", Values(steps=2))
    utterance = Utterance(OMNIVOICE_TEXT, voice("", "OmniVoice"))
    target = RooflineTarget(model, utterance, setting.with_technique(half))
    made = measure_roofline(target, SilentObserver(), rounds=1)
    guided, unguided = made.phases[1:3]
    assert (guided.title, unguided.title) == ("Guided steps", "Unguided steps")
    assert guided.forwards == 2 and unguided.forwards == 4
    assert guided.components[1].work.operations > unguided.components[1].work.operations


def test_steps_that_keep_the_text_are_apart_and_cost_less(known_ceilings, tmp_path):
    model, setting = masked_model(tmp_path)
    kept = setting.with_technique(Engaged("frozen_prefix", Values(every=3)))
    utterance = Utterance(OMNIVOICE_TEXT, voice("", "OmniVoice"))
    made = measure_roofline(RooflineTarget(model, utterance, kept), SilentObserver(), rounds=1)
    whole, short = made.phases[1:3]
    assert (whole.title, short.title) == ("Steps", "Steps, text kept")
    assert (whole.forwards, short.forwards) == (2, 4), "the first and the fourth of six"
    works = model.internals(utterance.text, utterance.voice, kept)
    prefix, frames, config = works.request.prefix, works.request.frames, works.network.config.transformer
    assert prefix > 10
    by_name = [{one.name: one.work.operations for one in phase.components} for phase in (whole, short)]
    assert by_name[0][HEAD] == by_name[1][HEAD]
    # Products of a layer are over fewer rows; the canvas attends to the text all the same.
    last, others = frames * 2, config.layers - 1
    rows = ((prefix + 2 * frames) * others + last) / (2 * frames * others + last)
    assert by_name[0][FEED_FORWARD] / by_name[1][FEED_FORWARD] == pytest.approx(rows)
    columns = 4 * config.heads * config.head_width
    assert by_name[1][ATTENTION] == pytest.approx(columns * frames * (prefix + 2 * frames))
    assert short.layer_launches and all(one.seconds is not None for one in short.components)


def test_steps_that_reuse_layers_are_apart_and_cost_less(known_ceilings, tmp_path):
    model, setting = masked_model(tmp_path, layers=4)
    knobs = Values(every=3, ends=1)
    reused = setting.with_technique(Engaged("layer_reuse", knobs))
    utterance = Utterance(OMNIVOICE_TEXT, voice("", "OmniVoice"))
    made = measure_roofline(RooflineTarget(model, utterance, reused), SilentObserver(), rounds=1)
    whole, short = made.phases[1:3]
    assert (whole.title, short.title) == ("Steps", "Steps, layers reused")
    assert (whole.forwards, short.forwards) == (2, 4), "the first and the fourth of six"
    assert len(short.layer_launches) == 2 < len(whole.layer_launches) == model.info.layers
    strided = reused.with_technique(Engaged("guidance_stride", Values(every=2)))
    made = measure_roofline(RooflineTarget(model, utterance, strided), SilentObserver(), rounds=1)
    # Both branches at steps 0, 2 and 4, all layers at 0 and 3, and at 4, for which 3 found nothing of the other branch.
    assert {phase.title: phase.forwards for phase in made.phases[1:-1]} == {
        "Guided steps": 2,
        "Guided steps, layers reused": 1,
        "Steps with reused guidance": 1,
        "Steps with reused guidance, layers reused": 2,
    }


def test_blocks_say_which_of_them_was_measured(known_ceilings, tmp_path):
    model, setting = masked_model(tmp_path)
    knobs = Values(block=16, first_block=16, first_steps=2, later_steps=4, look_ahead=16)
    utterance = Utterance(" ".join([OMNIVOICE_TEXT] * 3), voice("", "OmniVoice"))
    blocks = setting.with_technique(Engaged("blockwise", knobs)).with_technique(Engaged("frozen_prefix"))
    made = measure_roofline(RooflineTarget(model, utterance, blocks), SilentObserver(), rounds=1)
    count = len(model.internals(utterance.text, utterance.voice, blocks).blocks)
    steps = 2 + 4 * (count - 1)
    (note,) = (one for one in made.notes if "were measured on block" in one)
    assert note.startswith(f"All {steps} steps, the most that each may take, were measured on block {count // 2 + 1}")
    whole, short = made.phases[1:3]
    assert (whole.forwards, short.forwards) == (count, steps - count), "each block begins with a whole step"
    assert not any("were measured on block" in one for one in measured_plainly(model, setting, utterance).notes)


def measured_plainly(model, setting: Setting, utterance: Utterance) -> RooflineReport:
    return measure_roofline(RooflineTarget(model, utterance, setting), SilentObserver(), rounds=1)
