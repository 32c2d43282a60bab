"""DiTReducio's views against computations that know nothing of them, on a real model of a few thousand weights."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.audio.recording import read_recording
from paretone.errors import SettingError
from paretone.measure.fidelity import log_mel_distance
from paretone.models.base import Synthesis, Utterance
from paretone.models.catalogue import voices
from paretone.models.f5.adapter import F5Speech
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.sampling.flow import integrate
from paretone.sampling.skipping import LayerMemory, LayerPlan, ModuleMemory, ModulePlan
from paretone.setting.knobs import Values, defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted, synthesise
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio import redundancy_views, threshold_views
from paretone.techniques.ditreducio.preparation import calibrate_model
from paretone.techniques.ditreducio.probing import ModuleClock, run_through
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.techniques.ditreducio.threshold_views import share
from paretone.views import compute_view, view
from paretone.views.figure import Bars, HeatMap
from paretone.views.quality import judged_utterances, measured, speaker
from paretone.views.view import Stages
from tests.engine.small_speech import LAYERS, setting
from tests.engine.views.viewing import SAID, STEPS, computed, load, task

MODULES = ("attention", "feed_forward")


@pytest.fixture
def model() -> F5Speech:
    return load()


class Direct:
    """One plain sampling run: the state before each step, and every module's output there."""

    @torch.inference_mode()
    def __init__(self, model: F5Speech) -> None:
        self.calibration_target = model.calibration_target(scripted(model, SAID.text, SAID.voice, setting(STEPS)))
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
def test_redundancy_of_steps_and_branches(model: F5Speech) -> None:
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
    assert [knob.default for knob in view("temporal-redundancy").knobs(22)] == [10, 20], "the paper's layers"
    with pytest.raises(SettingError, match="Only one branch"):
        compute_view("branch-redundancy", replace(task(model), setting=setting(STEPS, guidance=0.0)))
    figure = computed(model, "branch-redundancy")
    for panel, name in zip(figure.panels, MODULES, strict=True):
        for layer in range(LAYERS):
            for step in range(STEPS):
                conditional, unconditional = direct.outputs[step, layer, name].chunk(2)
                assert panel.values[layer][step] == pytest.approx(direct.cosine(conditional, unconditional), abs=1e-6)


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
                hidden = entered = backbone.enter(direct.states[step], step, target.run)
                for index in range(LAYERS):
                    more = (reuse, cached) if repeats and index == layer else ()
                    hidden = backbone.layer(index, hidden, step, target.run, *more)
                outputs.append(backbone.leave(hidden, entered, step, target.run))
            redundancy = 1 - (outputs[0] - outputs[1]).abs().mean().item()
            assert redundancies.values[layer][step] == pytest.approx(redundancy, abs=1e-5)
            pairs.append((similarity.item(), redundancy))
    assert isinstance(bars, Bars)
    inside = [redundancy > 0.995 for similarity, redundancy in pairs if 0.02 <= similarity < 0.04]
    assert bars.series[0].notes[bars.groups.index("0.02–0.04")] == f"{sum(inside)} of {len(inside)} pairs"
    counted = sum(redundancy > 0.995 for _, redundancy in pairs)
    assert f"{counted} of {len(pairs)} layer-step pairs" in figure.caption


# --- Tables and what they cost ---------------------------------------------------------------------------------------
def using(artefact: str = "", **knobs: object) -> Setting:
    chosen = defaults(ditreducio.TECHNIQUE.knobs).replace(**knobs)
    return setting(STEPS).with_technique(UsedTechnique("ditreducio", chosen, artefact))


def calibrated(model: F5Speech, **knobs: object) -> CalibrationRecord:
    return calibrate_model(model, [SAID], using(**knobs), Observer())


def as_values(table: object) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(action) for action in row) for row in table.actions)


def test_tables_are_those_of_calibrations(model: F5Speech) -> None:
    figure = computed(model, "tables", largest=0.03, tables="calibrated", rule="chosen")
    for panel, threshold in zip(figure.panels, (0.01, 0.02, 0.03), strict=True):
        assert isinstance(panel, HeatMap) and panel.values == as_values(calibrated(model, threshold=threshold).table)
        assert panel.title.startswith(f"δ = {threshold:g},")
    assert "Every table is calibrated" in figure.caption


def test_tables_are_calibrated_as_published_unless_asked_otherwise(model: F5Speech) -> None:
    """The published thresholds belong to the relative error."""
    figure = computed(model, "tables", count=1, largest=0.06, tables="calibrated")
    own = replace(task(model), setting=setting(STEPS).with_technique(UsedTechnique("ditreducio", Values(metric="mae"))))
    chosen = compute_view("tables", replace(own, knobs=Values(count=1, largest=0.06, tables="calibrated")))
    expected = as_values(calibrated(model, threshold=0.06, metric="relative").table)
    assert figure.panels[0].values == chosen.panels[0].values == expected
    assert expected != as_values(calibrated(model, threshold=0.06).table)
    assert figure.caption.endswith("Calibrated as published.")


def test_a_calibration_at_hand_is_used_where_tables_are_predicted(model: F5Speech, monkeypatch: pytest.MonkeyPatch):
    record = calibrated(model, threshold=0.01)
    at_hand = replace(task(model), knobs=Values(count=2, largest=0.04, rule="chosen"), records=(record,))
    monkeypatch.setattr("paretone.techniques.ditreducio.preparation.calibrate", lambda *_: pytest.fail("calibrated"))
    figure = compute_view("tables", at_hand)
    for panel, threshold in zip(figure.panels, (0.02, 0.04), strict=True):
        assert panel.values == as_values(record.derive(threshold).table)


@torch.inference_mode()
def test_what_is_timed_is_the_run_under_the_table(model: F5Speech) -> None:
    table = calibrated(model, threshold=0.02).table
    assert table.skipped_share > 0
    direct = Direct(model)
    torch.testing.assert_close(run_through(direct.calibration_target, Stages(Observer(), 1)), direct.end)
    skipped = run_through(direct.calibration_target, Stages(Observer(), 1), table=table)
    spoken = synthesise(model, SAID.text, SAID.voice, using(table.fingerprint), (table,))
    expected = torch.from_numpy(spoken.trace.mel)
    torch.testing.assert_close(skipped[0, direct.calibration_target.prompt_frames :][: len(expected)], expected)


@torch.inference_mode()
def test_the_clock_hears_every_module_once_and_lets_go(model: F5Speech) -> None:
    target = Direct(model).calibration_target
    with ModuleClock(target.backbone, target.noise.device) as clock:
        run_through(target, Stages(Observer(), 1))
        first = clock.read()
        assert set(first) == set(MODULES) and all(seconds > 0 for seconds in first.values())
        clock.reset()
    run_through(target, Stages(Observer(), 1))
    assert set(clock.read().values()) == {0.0}


def test_latencies_are_compared_within_rounds(model: F5Speech) -> None:
    (bars,) = computed(model, "module-latencies").panels
    assert bars.groups == ("baseline", "δ = 0.15", "δ = 0.3")
    for one in bars.series:
        assert all(low <= value <= high for low, value, high in zip(one.low, one.values, one.high, strict=True))
        assert one.notes[0] == "100 % of the baseline, paired"
    assert share({"baseline": {"m": [1.0, 2.0, 4.0]}, "t": {"m": [0.5, 1.5, 1.0]}}, "t", "m") == 0.5


def test_similarity_is_to_the_voices_recording() -> None:
    (anna, bella), kind = voices("f5-mini")[:2], speaker()
    recordings = [read_recording(one.audio) for one in (anna, bella)]
    spoken = [Synthesis(one.samples, one.sample_rate) for one in recordings]
    ear = kind.ready(())
    own = measured(ear, [Utterance("", anna), Utterance("", bella)], spoken)
    other = measured(ear, [Utterance("", bella), Utterance("", anna)], spoken)
    assert own[0] == pytest.approx(1.0, abs=1e-3) and other[0] < 0.97 and own[1] <= own[0] <= own[2]


@pytest.mark.slow
def test_ablation(model: F5Speech) -> None:
    figure = computed(model, "ablation", largest=0.02, rule="chosen")
    trade_off = figure.panels[0]
    titles = [one.title for one in threshold_views.VARIANTS]
    assert [curve.name for curve in trade_off.curves] == titles
    sentences = judged_utterances(SAID, 2)
    plain = [synthesise(model, one.text, one.voice, setting(STEPS)) for one in sentences]
    words, likeness = figure.panels[2:]
    assert [words.y.label, likeness.y.label] == ["Word error rate (%)", "Speaker similarity"]
    # Its takes are too short to have a voice.
    assert likeness.curves[-1].reference and likeness.curves[-1].y == (0.0, 0.0)
    for panel in (words, likeness):
        assert [curve.name for curve in panel.curves] == [*titles, "baseline"]
        assert panel.curves[0].x == trade_off.curves[0].x
    # The full method is what everybody calibrates.
    for index, threshold in enumerate((0.01, 0.02)):
        table = calibrated(model, threshold=threshold).table
        used = using(table.fingerprint, threshold=threshold)
        spoken = [synthesise(model, one.text, one.voice, used, (table,)) for one in sentences]
        pairs = [(one.trace.mel, other.trace.mel) for one, other in zip(plain, spoken, strict=True)]
        distance = sum(log_mel_distance(*pair) for pair in pairs) / 2
        ratio = sum(one.measurements.ops_ratio for one in spoken) / 2
        assert trade_off.curves[0].y[index] == pytest.approx(distance)
        assert trade_off.curves[0].x[index] == pytest.approx(100 * ratio)
        assert trade_off.curves[0].notes[index] == f"δ = {threshold:g}"


def test_both_objectives(model: F5Speech) -> None:
    figure = computed(model, "objectives", largest=0.02, smallest=60.0, rule="chosen")
    published, ours = figure.panels[0].curves
    assert published.notes == ("δ = 0.01", "δ = 0.02") and ours.notes == ("80 %", "60 %")
    (sentence,) = judged_utterances(SAID, 1)
    plain = synthesise(model, sentence.text, sentence.voice, setting(STEPS))
    for index, budget in enumerate((80.0, 60.0)):
        table = calibrated(model, objective="end", operations=budget).table
        asked = using(table.fingerprint, objective="end", operations=budget)
        spoken = synthesise(model, sentence.text, sentence.voice, asked, (table,))
        assert ours.x[index] == pytest.approx(100 * spoken.measurements.ops_ratio) and ours.x[index] <= budget + 1
        assert ours.y[index] == pytest.approx(log_mel_distance(plain.trace.mel, spoken.trace.mel))
    assert "calibrated for the end" in figure.caption


@pytest.mark.parametrize("variant", threshold_views.VARIANTS[1:3], ids=lambda one: one.title)
def test_variants_leave_out_what_they_say(model: F5Speech, variant: threshold_views.Variant) -> None:
    record = threshold_views.calibrate_variant(task(model), variant)(0.02, Observer())
    assert {trial.action for trial in record.trials} <= set(variant.candidates)
    phases = {trial.phase for trial in record.trials}
    assert phases == ({"pre-calibration", "calibration"} if variant.pre_calibrates else {"calibration"})
    assert record.table.count(SkipAction.NONE) < LAYERS * STEPS


# --- Attention maps ---------------------------------------------------------------------------------------------------
@torch.inference_mode()
def test_attention_maps_are_those_of_the_layer_at_the_step(model: F5Speech) -> None:
    direct = Direct(model)
    target, backbone = direct.calibration_target, direct.calibration_target.backbone
    figure = computed(model, "attention-maps", layer=2, step=3, cells=256)
    maps = backbone.attention_maps(1, direct.outputs[2, 1, "attention_input"], target.run, 10_000).numpy()
    titles = [f"{branch}: layer 2, step 3" for branch in ("Conditional", "Unconditional")]
    assert [panel.title for panel in figure.panels] == titles
    for panel, plain in zip(figure.panels, maps, strict=True):
        assert isinstance(panel, HeatMap)
        assert np.allclose(panel.values, redundancy_views.pooled(plain[None], 256)[0], atol=1e-6)
    small = computed(model, "attention-maps", layer=2, step=3, cells=5, scale="logarithmic")
    rows = 10 ** np.array(small.panels[0].values)
    frames = maps.shape[-1]
    assert len(rows) <= 5 and rows.sum(axis=1) == pytest.approx(1, abs=1e-4)
    width = -(-frames // 5)
    assert rows[0, 0] == pytest.approx(maps[0, :width, :width].sum(axis=1).mean(), rel=1e-4)
    assert f"The voice's are the first {target.prompt_frames}." in figure.caption
