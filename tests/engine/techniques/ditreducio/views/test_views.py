"""Every view's numbers against a computation that knows nothing of it, on a real model of a few thousand weights."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.errors import Cancelled, SettingError
from engine.measure.fidelity import log_mel_distance
from engine.measure.proportions import wilson_interval
from engine.models.base import Utterance, run_to_completion
from engine.models.f5.adapter import F5Speech
from engine.models.silent_observer import SilentObserver
from engine.sampling.actions import SkipAction
from engine.sampling.flow import integrate
from engine.sampling.skipping import LayerMemory, LayerPlan, ModuleMemory, ModulePlan
from engine.setting.knobs import Values, checked, defaults
from engine.setting.setting import Engaged
from engine.techniques import ditreducio
from engine.techniques.ditreducio.preparation import calibrate_model
from engine.techniques.ditreducio.views import ablation, attention_similarity
from engine.techniques.ditreducio.views.module_clock import ModuleClock
from engine.techniques.ditreducio.views.module_latencies import share
from engine.techniques.ditreducio.views.outputs import run_through
from engine.techniques.guidance_free.views import guidance_weight
from engine.views import view, views
from engine.views.computing import compute_view
from engine.views.figure import Bars, Figure, HeatMap
from engine.views.quality import judged_utterances
from engine.views.stages import Stages
from engine.views.view import Task
from tests.engine import small_speech
from tests.engine.small_speech import LAYERS, VOICE, save_cfg_free, setting

STEPS = 4
SAID = Utterance("One.", VOICE)
QUICK = {
    "module-latencies": {"count": 2, "rounds": 3},
    "ablation": {"count": 2, "sentences": 2},
    "tables": {"count": 3},
    "guidance-weight": {"sentences": 2},
}
MODULES = ("attention", "feed_forward")
EVERY = [
    pytest.param(one.name, marks=pytest.mark.slow if one.name == "ablation" else ())
    for one in views()
    if "flow" in one.families
]


@pytest.fixture
def model(tmp_path: Path) -> F5Speech:
    """With CFG-free weights for w = 0.5."""
    (tmp_path / "weights").touch()
    save_cfg_free(tmp_path / "half.safetensors", 0.5)
    return small_speech.load("small", str(tmp_path), "", "cpu", lambda text: None, lambda: None)


def task(model: F5Speech, observer: object = None, **changes: object) -> Task:
    return Task(model, SAID, setting(STEPS), Values(), observer or SilentObserver(), **changes)


def computed(model: F5Speech, name: str, **knobs: object) -> Figure:
    return compute_view(name, replace(task(model), knobs=Values(QUICK.get(name, {}), **knobs)))


class Direct:
    """One plain sampling run: the state before each step, and every module's output there."""

    @torch.inference_mode()
    def __init__(self, model: F5Speech) -> None:
        self.calibration_target, _ = model.calibration_target(SAID.text, SAID.voice, setting(STEPS))
        self.states: list[Tensor] = []
        self.outputs: dict[tuple[int, int, str], Tensor] = {}
        target, backbone = self.calibration_target, self.calibration_target.backbone

        def velocity(state: Tensor, step: int) -> Tensor:
            self.states.append(state)

            def probe(layer: int, name: str, value: Tensor) -> None:
                self.outputs[step, layer, name] = value.clone()

            return target.guide(backbone.velocity(state, step, target.run, probe=probe))

        self.end = integrate(velocity, target.noise, target.times)

    def cosine(self, one: Tensor, other: Tensor) -> float:
        return torch.nn.functional.cosine_similarity(one.flatten()[None], other.flatten()[None]).item()


# --- Redundancy ------------------------------------------------------------------------------------------------------
def test_temporal_redundancy(model: F5Speech) -> None:
    figure = computed(model, "temporal-redundancy", first_layer=1, second_layer=3)
    direct = Direct(model)
    titles = {"attention": "Attention", "feed_forward": "Feed-forward"}
    assert len(figure.panels) == 4
    for layer in (1, 3):
        for name in MODULES:
            panel = next(one for one in figure.panels if one.title == f"{titles[name]}, layer {layer}")
            for one in range(STEPS):
                for other in range(STEPS):
                    rows = (direct.outputs[step, layer - 1, name][:1] for step in (one, other))
                    assert panel.values[one][other] == pytest.approx(direct.cosine(*rows), abs=1e-4)


def test_the_usual_layers_are_the_papers() -> None:
    assert [knob.default for knob in view("temporal-redundancy").knobs(22)] == [10, 20]
    assert [knob.default for knob in view("temporal-redundancy").knobs(24)] == [11, 22]


def test_one_layer_twice_is_shown_once(model: F5Speech) -> None:
    assert len(computed(model, "temporal-redundancy", first_layer=2, second_layer=2).panels) == 2


def test_branch_redundancy(model: F5Speech) -> None:
    figure = computed(model, "branch-redundancy")
    direct = Direct(model)
    for panel, name in zip(figure.panels, MODULES, strict=True):
        for layer in range(LAYERS):
            for step in range(STEPS):
                conditional, unconditional = direct.outputs[step, layer, name].chunk(2)
                assert panel.values[layer][step] == pytest.approx(direct.cosine(conditional, unconditional), abs=1e-6)


def test_one_branch_has_none_to_compare_with(model: F5Speech) -> None:
    alone = replace(task(model), setting=setting(STEPS, guidance=0.0))
    with pytest.raises(SettingError, match="Only one branch"):
        compute_view("branch-redundancy", alone)


@torch.inference_mode()
def test_redundancy_by_attention(model: F5Speech) -> None:
    figure = computed(model, "attention-similarity", redundant_from=0.995)
    direct = Direct(model)
    target, backbone = direct.calibration_target, direct.calibration_target.backbone
    bars, similarities, redundancies = figure.panels
    pairs = []
    reuse = LayerPlan(ModulePlan(SkipAction.TS), ModulePlan(SkipAction.TS))
    for step in range(STEPS):
        for layer in range(LAYERS):
            query, key = backbone.attention_map_inputs(layer, direct.outputs[step, layer, "attention_input"][:1])
            attention = (query @ key.transpose(1, 2) / query.shape[-1] ** 0.5).softmax(-1)[0]
            similarity = attention.trace() / (attention.norm() * len(attention) ** 0.5)
            assert similarities.values[layer][step] == pytest.approx(similarity.item(), abs=1e-5)
            if step == 0:
                assert math.isnan(redundancies.values[layer][step]), "nothing is cached yet"
                continue
            cached = LayerMemory(*(ModuleMemory(direct.outputs[step - 1, layer, name]) for name in MODULES))
            outputs = []
            for repeats in (False, True):
                hidden = entered = backbone.enter(direct.states[step], target.run)
                for index in range(LAYERS):
                    more = (reuse, cached) if repeats and index == layer else ()
                    hidden = backbone.layer(index, hidden, step, target.run, *more)
                outputs.append(backbone.leave(hidden, entered, step, target.run))
            redundancy = 1 - (outputs[0] - outputs[1]).abs().mean().item()
            assert redundancies.values[layer][step] == pytest.approx(redundancy, abs=1e-5)
            pairs.append((similarity.item(), redundancy))
    assert isinstance(bars, Bars)
    inside = [redundancy > 0.995 for similarity, redundancy in pairs if 0.02 <= similarity < 0.04]
    column = bars.groups.index("0.02–0.04")
    assert bars.series[0].notes[column] == f"{sum(inside)} of {len(inside)} pairs"
    counted = sum(redundancy > 0.995 for _, redundancy in pairs)
    assert f"{counted} of {len(pairs)} layer-step pairs" in figure.caption


def test_shares_by_interval() -> None:
    pairs = [(0.01, 0.5), (0.09, 0.95), (0.10, 0.95), (0.31, 0.99), (0.31, 0.80)]
    bars, _ = attention_similarity.shares(pairs, 0.9, 0.1)
    assert bars.groups == ("0.00–0.10", "0.10–0.20", "0.20–0.30", "0.30–0.40")
    series = bars.series[0]
    assert series.values[:2] == (50.0, 100.0)
    assert math.isnan(series.values[2]), "no pair lies there"
    assert series.values[3] == 50.0
    assert (series.low[0], series.high[0]) == tuple(100 * one for one in wilson_interval(1, 2))


def test_wilson() -> None:
    # Newcombe (1998), table I, method 3.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson_interval(0, 0) == (0.0, 1.0)


# --- Tables and what they cost ---------------------------------------------------------------------------------------
def calibrated(model: F5Speech, threshold: float) -> object:
    engaged = Engaged("ditreducio", Values(threshold=threshold))
    return calibrate_model(model, [SAID], setting(STEPS).with_technique(engaged), SilentObserver())


def as_values(table: object) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(action) for action in row) for row in table.actions)


def test_tables_are_those_of_calibrations(model: F5Speech) -> None:
    figure = computed(model, "tables", largest=0.03, tables="calibrated")
    for panel, threshold in zip(figure.panels, (0.01, 0.02, 0.03), strict=True):
        assert isinstance(panel, HeatMap)
        assert panel.values == as_values(calibrated(model, threshold).table)
        assert panel.title.startswith(f"δ = {threshold:g},")
    assert "Every table is calibrated" in figure.caption


def test_a_calibration_at_hand_is_used_where_tables_are_predicted(
    model: F5Speech, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = calibrated(model, 0.01)
    at_hand = replace(task(model), knobs=Values(count=2, largest=0.04), records=(record,))
    monkeypatch.setattr("engine.techniques.ditreducio.preparation.calibrate", lambda *_: pytest.fail("calibrated"))
    figure = compute_view("tables", at_hand)
    for panel, threshold in zip(figure.panels, (0.02, 0.04), strict=True):
        assert panel.values == as_values(record.derive(threshold).table)


def test_a_calibration_of_another_grid_is_not_used(model: F5Speech) -> None:
    other = calibrate_model(
        model, [SAID], setting(3).with_technique(Engaged("ditreducio", Values(threshold=0.01))), SilentObserver()
    )
    figure = compute_view("tables", replace(task(model), knobs=Values(count=1, largest=0.01), records=(other,)))
    assert figure.panels[0].values == as_values(calibrated(model, 0.01).table)


@torch.inference_mode()
def test_what_is_timed_is_the_run_under_the_table(model: F5Speech) -> None:
    table = calibrated(model, 0.02).table
    assert table.skipped_share > 0
    direct = Direct(model)
    plain = run_through(direct.calibration_target, Stages(SilentObserver(), 1))
    torch.testing.assert_close(plain, direct.end)
    skipped = run_through(direct.calibration_target, Stages(SilentObserver(), 1), table=table)
    engaged = setting(STEPS).with_technique(Engaged("ditreducio", NO_KNOBS, table.fingerprint))
    spoken = run_to_completion(model.synthesise(SAID.text, SAID.voice, engaged, (table,), SilentObserver()))
    expected = torch.from_numpy(spoken.trace.mel)
    torch.testing.assert_close(skipped[0, direct.calibration_target.prompt_frames :][: len(expected)], expected)


NO_KNOBS = defaults(ditreducio.TECHNIQUE.knobs)


@torch.inference_mode()
def test_the_clock_hears_every_module_once_and_lets_go(model: F5Speech) -> None:
    target = Direct(model).calibration_target
    block = target.backbone.block(0)
    with ModuleClock(target.backbone, target.noise.device) as clock:
        run_through(target, Stages(SilentObserver(), 1))
        first = clock.read()
        assert set(first) == set(MODULES)
        assert all(seconds > 0 for seconds in first.values())
        clock.reset()
        assert set(clock.read().values()) == {0.0}
    for module in (block.attention, block.feed_forward):
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def test_latencies_are_compared_within_rounds(model: F5Speech) -> None:
    figure = computed(model, "module-latencies")
    (bars,) = figure.panels
    assert bars.groups == ("baseline", "δ = 0.15", "δ = 0.3")
    for one in bars.series:
        assert all(low <= value <= high for low, value, high in zip(one.low, one.values, one.high, strict=True))
        assert one.notes[0] == "100% of the baseline, paired"
    latencies = {"baseline": {"m": [1.0, 2.0, 4.0]}, "t": {"m": [0.5, 1.5, 1.0]}}
    assert share(latencies, "t", "m") == 0.5


@pytest.mark.slow
def test_ablation(model: F5Speech) -> None:
    figure = computed(model, "ablation", largest=0.02)
    trade_off = figure.panels[0]
    titles = [one.title for one in ablation.VARIANTS]
    assert [curve.name for curve in trade_off.curves] == titles
    sentences = judged_utterances(SAID, 2)
    plain = [
        run_to_completion(model.synthesise(one.text, one.voice, setting(STEPS), (), SilentObserver()))
        for one in sentences
    ]
    # The full method is what everybody calibrates.
    for index, threshold in enumerate((0.01, 0.02)):
        table = calibrated(model, threshold).table
        engaged = setting(STEPS).with_technique(
            Engaged("ditreducio", NO_KNOBS.replace(threshold=threshold), table.fingerprint)
        )
        spoken = [
            run_to_completion(model.synthesise(one.text, one.voice, engaged, (table,), SilentObserver()))
            for one in sentences
        ]
        pairs = [(one.trace.mel, other.trace.mel) for one, other in zip(plain, spoken, strict=True)]
        distance = sum(log_mel_distance(*pair) for pair in pairs) / 2
        ratio = sum(one.measurements.ops_ratio for one in spoken) / 2
        assert trade_off.curves[0].y[index] == pytest.approx(distance)
        assert trade_off.curves[0].x[index] == pytest.approx(100 * ratio)
        assert trade_off.curves[0].notes[index] == f"δ = {threshold:g}"


@pytest.mark.parametrize("variant", ablation.VARIANTS, ids=lambda one: one.title)
def test_variants_leave_out_what_they_say(model: F5Speech, variant: ablation.Variant) -> None:
    record = ablation._calibrate(task(model), variant)(0.02, SilentObserver())
    assert {trial.action for trial in record.trials} <= set(variant.candidates)
    phases = {trial.phase for trial in record.trials}
    assert phases == ({"pre-calibration", "calibration"} if variant.pre_calibrates else {"calibration"})
    assert record.table.count(SkipAction.NONE) < LAYERS * STEPS


# --- The effect of w -------------------------------------------------------------------------------------------------
def test_the_effect_of_w(model: F5Speech) -> None:
    figure = computed(model, "guidance-weight")
    distances = {curve.name: curve for curve in figure.panels[0].curves}
    sentences = judged_utterances(SAID, 2)

    def spoken(**options: object) -> list:
        of = setting(STEPS, **options)
        return [
            run_to_completion(model.synthesise(one.text, one.voice, of, (), SilentObserver())).trace.mel
            for one in sentences
        ]

    engaged = setting(STEPS).with_technique(Engaged("guidance_free", Values(weight=0.5)))
    free = [
        run_to_completion(model.synthesise(one.text, one.voice, engaged, (), SilentObserver())).trace.mel
        for one in sentences
    ]
    guided, alone = spoken(guidance=1.0), spoken(guidance=0.0)
    for name, mels in ((guidance_weight.CFG_FREE, free), (guidance_weight.ALONE, alone)):
        expected = sum(log_mel_distance(one, two) for one, two in zip(guided, mels, strict=True)) / 2
        assert distances[name].x == (0.5,)
        assert distances[name].y == pytest.approx((expected,))
    # As the sampler option is labelled; s is sway's.
    assert figure.panels[0].title.startswith("Distance to guidance g =")
    assert "from guidance g = 1.00" in figure.caption
    assert "no checkpoint for w = 0.1, 0.2, 0.3, 0.4, 0.6" in figure.caption


def test_a_model_without_such_weights_says_how_to_come_by_some() -> None:
    bare = small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)
    with pytest.raises(SettingError, match="has no CFG-free weights to compare; train some"):
        compute_view("guidance-weight", task(bare))


# --- All of them -----------------------------------------------------------------------------------------------------
class Interrupted(SilentObserver):
    """Cancelled after so many reports of progress; counts the layers that are computed afterwards."""

    def __init__(self, model: F5Speech, after: int) -> None:
        self.left, self.layers_since = after, 0
        self.reported: list[tuple[int, int]] = []
        for index in range(LAYERS):
            model._backbone.block(index).attention.register_forward_hook(self.count)

    def count(self, *call: object) -> None:
        self.layers_since += self.left <= 0

    def check(self) -> None:
        if self.left <= 0:
            raise Cancelled

    def progress(self, done: int, total: int) -> None:
        self.check()
        self.reported.append((done, total))
        self.left -= 1


@pytest.mark.parametrize("after", [1, 7])
@pytest.mark.parametrize("name", EVERY)
def test_a_view_is_cancelled_within_a_step(model: F5Speech, name: str, after: int) -> None:
    if name == "attention-similarity" or after == 1 or name in QUICK:
        observer = Interrupted(model, after)
        with pytest.raises(Cancelled):
            compute_view(name, replace(task(model, observer), knobs=Values(QUICK.get(name, {}))))
        assert observer.layers_since <= LAYERS


@pytest.mark.parametrize("name", EVERY)
def test_progress_rises_to_the_whole(model: F5Speech, name: str) -> None:
    observer = Interrupted(model, 10**9)
    compute_view(name, replace(task(model, observer), knobs=Values(QUICK.get(name, {}))))
    done = [one for one, _ in observer.reported]
    assert done == sorted(done)
    assert len({total for _, total in observer.reported}) == 1
    assert 0.9 * observer.reported[-1][1] <= done[-1] <= observer.reported[-1][1]


def test_views_declare_knobs_that_pass_their_own_check() -> None:
    names = [one.name for one in views()]
    assert len(set(names)) == len(names)
    for one in views():
        knobs = one.knobs(22)
        assert checked(knobs, {}, one.title) == defaults(knobs)


def test_unknown_views_and_knobs_and_other_families_are_refused(model: F5Speech) -> None:
    with pytest.raises(SettingError, match="known views: temporal-redundancy"):
        compute_view("beauty", task(model))
    with pytest.raises(SettingError, match="First layer must lie between 1 and 3"):
        computed(model, "temporal-redundancy", first_layer=4)
    with pytest.raises(SettingError, match="one column per Euler step"):
        compute_view("temporal-redundancy", replace(task(model), setting=setting(STEPS, solver="midpoint")))
    model.info = replace(model.info, family="speech-lm")
    with pytest.raises(SettingError, match="load another model"):
        computed(model, "tables")
