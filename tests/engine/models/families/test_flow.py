"""Techniques used together on a real model of a few thousand weights: what really runs is what was asked for."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from paretone.errors import SettingError
from paretone.models.base import Synthesis, Utterance
from paretone.models.f5.adapter import F5Speech
from paretone.models.f5.dit import DiT
from paretone.models.families.language import plain_operations, spent_operations
from paretone.models.families.language_network import TokenModel
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.sampling.flow import euler_steps, sampling_grid
from paretone.sampling.speculative import speculation
from paretone.sampling.tokens import Uniforms
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, scripted, synthesise
from paretone.techniques import compatibility_of
from paretone.techniques.base import JobTask
from paretone.techniques.ditreducio.preparation import calibrate_model, carry_out_calibration
from paretone.techniques.ditreducio.record import CalibrationRequest, Similarities
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.error_curve import measuring
from tests.engine import small_speech
from tests.engine.small_speech import LAYERS, VOICE, make_backbone, save_cfg_free, setting
from tests.engine.speaking import drafted, load, script_of, write_all
from tests.engine.speaking import setting as language_setting

FREE = UsedTechnique("guidance_free", Values(weight=0.5))
PRUNED = UsedTechnique("steps", Values(steps=7))
NARROW = UsedTechnique("precision", Values(precision="bfloat16"))
TEXT = "One. Two."


@pytest.fixture
def model(tmp_path: Path) -> F5Speech:
    """With CFG-free weights for w = 0.5."""
    (tmp_path / "weights").touch()
    save_cfg_free(tmp_path / "half.safetensors", 0.5)
    return small_speech.load(folder=str(tmp_path))


@dataclass
class Seen:
    times: list[np.ndarray] = field(default_factory=list)
    evaluations: list[tuple[int, int, bool, torch.dtype]] = field(default_factory=list)
    """Evaluation, branches, whether under a skip plan, and the dtype that attention computes in."""
    backbones: list[DiT] = field(default_factory=list)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, model: F5Speech) -> Seen:
    found = Seen()
    begin, velocity = DiT.begin, DiT.velocity

    def looking_begin(self: DiT, prompt, ids, times, guided, **named):
        found.times.append(times)
        return begin(self, prompt, ids, times, guided, **named)

    def looking_velocity(self: DiT, x, evaluation, run, plans=None, memory=None, probe=None):
        dtype = self.block(0).attention.inputs[0].weight.dtype
        found.evaluations.append((evaluation, run.branches, plans is not None, dtype))
        found.backbones.append(self)
        return velocity(self, x, evaluation, run, plans, memory, probe)

    monkeypatch.setattr(DiT, "begin", looking_begin)
    monkeypatch.setattr(DiT, "velocity", looking_velocity)
    return found


def plain(**options: object) -> Setting:
    return setting(**{"steps": 32, "spacing": "epss", "sway": -1.0, "guidance": 2.0, **options})


def using(of: Setting, *entries: UsedTechnique) -> Setting:
    for one in entries:
        of = of.with_technique(one)
    return of


def with_table(model: F5Speech, of: Setting) -> tuple[Setting, StrategyTable]:
    """``of`` with a table that repeats every other step in the upper layers."""
    compatibility = compatibility_of(model.info, of)
    row = tuple(SkipAction.TS if step % 2 else SkipAction.NONE for step in range(compatibility.steps))
    table = StrategyTable(compatibility, ((SkipAction.NONE,) * compatibility.steps, *(row,) * (LAYERS - 1)))
    return of.with_technique(UsedTechnique("ditreducio", NO_VALUES, table.fingerprint)), table


def speak(model: F5Speech, of: Setting, *tables: StrategyTable, text: str = TEXT) -> Synthesis:
    make_ready(model, of, VOICE)
    return synthesise(model, text, VOICE, of, tables)


def test_everything_uses_together(model: F5Speech, seen: Seen) -> None:
    of, table = with_table(model, using(plain(), FREE, PRUNED, NARROW))
    make_ready(model, of)
    seen.times.clear()
    seen.evaluations.clear()
    synthesis = synthesise(model, TEXT, VOICE, of, (table,))
    assert seen.evaluations == [(step, 1, True, torch.bfloat16) for step in range(7)] * 2
    assert all(np.array_equal(times, sampling_grid(7, "epss", -1.0)[:-1]) for times in seen.times)
    measured = synthesis.measurements
    assert measured.evaluations == 14
    assert [len(one) for one in synthesis.trace.step_seconds] == [7, 7]
    one, two = (model.operations(scripted(model, TEXT, VOICE, each, prepared=False)) for each in (of, plain()))
    assert measured.ops_ratio == pytest.approx(7 * one.evaluation / (32 * two.evaluation) * table.ops_ratio(one))
    assert np.isfinite(synthesis.samples).all()


def test_the_weights_that_run_are_those_that_were_trained(model: F5Speech, seen: Seen) -> None:
    for of, seed in ((using(plain(steps=2), FREE), 2), (plain(steps=2), 1)):
        speak(model, of)
        assert torch.equal(seen.backbones[-1].proj_out.weight, make_backbone(seed).proj_out.weight)


def test_the_baseline_is_not_touched_by_what_was_used_before(model: F5Speech) -> None:
    used = ((), (NARROW,), (FREE,), ())
    before, narrow, free, after = (speak(model, using(plain(steps=4), *one)).samples for one in used)
    assert np.array_equal(after, before)
    assert not np.array_equal(narrow, before) and not np.array_equal(free, before)
    assert np.corrcoef(narrow, before)[0, 1] > 0.99, "fewer bits are close to all of them"


def test_calibration_is_for_what_runs(model: F5Speech) -> None:
    trials: list[int] = []

    class Trials(Observer):
        def report(self, name: str, value: object) -> None:
            trials.extend([value.values.shape[1]] if isinstance(value, Similarities) else ())

    of = using(plain(), FREE, PRUNED, NARROW, UsedTechnique("ditreducio", Values(threshold=0.5)))
    record = calibrate_model(model, [Utterance("One.", VOICE)], of, Trials())
    assert trials[-1] == record.table.steps == 7
    assert record.table.compatibility == compatibility_of(model.info, of)
    assert record.table.compatibility.fingerprint == model.info.weight_sets[0].fingerprint
    assert record.table.count(SkipAction.BS) == 0, "one branch has none to skip"
    used = of.with_technique(UsedTechnique("ditreducio", Values(threshold=0.5), record.table.fingerprint))
    assert speak(model, used, record.table).measurements.ops_ratio < 7 / 64


def test_a_calibration_reads_its_sentences_once(model: F5Speech, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    script = model.script

    def counted(text: str, *rest: Any) -> Any:
        read.append(text)
        return script(text, *rest)

    monkeypatch.setattr(model, "script", counted)
    of = using(plain(steps=2), UsedTechnique("ditreducio", Values(threshold=0.5)))
    request = CalibrationRequest((Utterance("One.", VOICE), Utterance("Two.", VOICE)), of)
    found = carry_out_calibration(JobTask(request, Observer(), model))
    assert read == ["One.", "Two."] and len(found.record.sentences) == 2


def test_a_technique_without_what_it_prepares_is_refused(model: F5Speech) -> None:
    used, _ = with_table(model, plain(steps=4))
    with pytest.raises(SettingError, match="calibrate first"):
        speak(model, used)
    with pytest.raises(SettingError, match="Euler"):
        calibrate_model(model, [Utterance("One.", VOICE)], plain(solver="midpoint"), Observer())


def test_weights_that_have_come_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    model = small_speech.load()
    with pytest.raises(SettingError, match="none yet"):
        speak(model, using(plain(steps=1), FREE))
    place = tmp_path / "models" / "small" / "cfg_free"
    place.mkdir(parents=True)
    save_cfg_free(place / "trained.safetensors", 0.5)
    info = model.look_for_weights()
    assert [one.weight for one in info.weight_sets] == [0.5]
    assert model.info is info
    assert speak(model, using(plain(steps=1, guidance=1.0), FREE)).notes == ("Read by the test.",)


# --- DiTReducio's rivals ----------------------------------------------------------------------------------------------
SENTENCE, STEPS = "One.", 6


@pytest.fixture
def small_model() -> F5Speech:
    return small_speech.load()


def small_using(name: str, **knobs: object) -> Setting:
    return setting(STEPS).with_technique(UsedTechnique(name, Values(knobs)))


def test_guidance_ends_after_its_steps(small_model: F5Speech) -> None:
    """Against a loop that guides by hand."""
    of = small_using("guidance_interval", steps=2)
    script = scripted(small_model, SENTENCE, VOICE, of)
    follow, runs = euler_steps(sampling_grid(STEPS, "uniform")), {}
    begin = DiT.begin

    def noting(self, prompt, ids, at, is_guided, **named):
        runs[is_guided] = begin(self, prompt, ids, at, is_guided, **named)
        return runs[is_guided]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiT, "begin", noting)
        found = small_model.sampling(script)()
    with torch.inference_mode():
        state = torch.randn(found.shape, generator=torch.Generator().manual_seed(of.seed))
        for step in range(STEPS):
            velocities = small_model.backbone.velocity(state, step, runs[step < 2])
            if step < 2:
                conditional, unconditional = velocities.chunk(2)
                velocities = conditional + 2.0 * (conditional - unconditional)
            state = follow(state, velocities, step)
    assert torch.allclose(found, state, atol=1e-5)
    spoken = speak(small_model, of, text=SENTENCE)
    passage, options = script.passages[0], script.options
    two, one = (small_model.evaluation_cost(passage, options.replace(guidance=at)).evaluation for at in (2.0, 0.0))
    assert spoken.measurements.ops_ratio == pytest.approx((2 * two + 4 * one) / (6 * two))
    assert spoken.trace.computed[0] == pytest.approx([1, 1, *[one / two] * 4])


@pytest.mark.parametrize("name", ["error_curve", "first_block"])
def test_caches_skip_and_say_where(small_model: F5Speech, name: str) -> None:
    plain = speak(small_model, setting(STEPS), text=SENTENCE)
    nothing, much = (speak(small_model, small_using(name, threshold=one), text=SENTENCE) for one in (0.0, 20.0))
    assert plain.trace.computed == nothing.trace.computed == ((1.0,) * STEPS,)
    assert nothing.measurements.ops_ratio == 1
    assert torch.allclose(torch.from_numpy(plain.samples), torch.from_numpy(nothing.samples), atol=1e-5)
    (shares,) = much.trace.computed
    assert shares[0] == 1 and all(one < 1 for one in shares[1:])
    assert much.measurements.ops_ratio == pytest.approx(sum(shares) / STEPS)


def test_the_curve_is_measured_before_the_clock_and_once_for_each_voice(small_model: F5Speech) -> None:
    of = small_using("error_curve", threshold=0.5)
    speak(small_model, of, text=SENTENCE)
    curves = small_model.memory[measuring.__name__]
    (curve,) = curves
    assert len(curve.attention) == len(curve.feed_forward) == STEPS
    speak(small_model, of.with_technique(UsedTechnique("error_curve", Values(threshold=0.1))), text=SENTENCE)
    assert list(curves) == [curve], "thresholds share it"
    attention, feed_forward = curve.schedule(0.5)
    counts = small_model.operations(scripted(small_model, SENTENCE, VOICE, of))
    costs = (attention, counts.attention), (feed_forward, counts.feed_forward)
    skipped = sum(cost * sum(one is SkipAction.TS for one in row) for row, cost in costs)
    expected = 1 - LAYERS * counts.branches * skipped / (STEPS * counts.evaluation)
    assert speak(small_model, of, text=SENTENCE).measurements.ops_ratio == pytest.approx(expected)


# --- Operations of decoding -------------------------------------------------------------------------------------------
def counting(tokens: TokenModel, counted: list[float]) -> SimpleNamespace:
    """``tokens``, of which every pass is counted when it runs."""

    def forward(embedded: torch.Tensor, cache: object, places: torch.Tensor) -> torch.Tensor:
        counted.append(tokens.transformer.config.operations(embedded.shape[1], cache.length))
        return tokens.transformer(embedded, cache, places)

    def logits(hidden: torch.Tensor) -> torch.Tensor:
        counted.append(2 * len(hidden) * tokens.head.numel())
        return tokens.logits(hidden)

    def read(embedded: torch.Tensor, cache: object, places: torch.Tensor, scored: int, keeps: None) -> tuple:
        return logits(forward(embedded, cache, places)[0, -scored:]), keeps

    same = {name: getattr(tokens, name) for name in ("codes", "rows", "embed", "cache")}
    forward.fill = forward
    return SimpleNamespace(transformer=forward, read=read, prefixes=None, **same)


def test_operations_are_those_of_the_passes(tmp_path: Path) -> None:
    model = load(write_all(tmp_path / "model"))
    script = script_of(model, language_setting(drafted(), seed=5))
    target, draft = script.network.target.tokens, script.network.draft.tokens
    works = model.internals(script)
    request, shorter, sampler = works.request, works.draft_request, works.sampler
    assert shorter.embedded.shape[1] < request.embedded.shape[1]
    counted: list[float] = []
    running = (counting(one, counted) for one in (target, draft))
    cycles = list(speculation(*running, request, sampler, Uniforms(5), draft_request=shorter))
    prompt, tokens = request.embedded.shape[1], sum(len(cycle.tokens) for cycle in cycles)
    assert {cycle.outcome for cycle in cycles} >= {"resampled", "bonus"}
    spent = spent_operations(target, draft, prompt, cycles, shorter.embedded.shape[1])
    assert spent == pytest.approx(sum(counted), rel=1e-9)
    # The stop is given as well.
    whole = target.transformer.config.operations(prompt + tokens) + 2 * (tokens + 1) * target.head.numel()
    assert plain_operations(target, prompt, cycles) == pytest.approx(whole, rel=1e-9)
