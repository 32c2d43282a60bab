"""Separate strengths, and guidance that saturates, on a real model of a few thousand weights."""

from typing import Any

import pytest
import torch

from paretone.errors import SettingError
from paretone.models.base import Synthesis
from paretone.models.f5.adapter import F5Speech
from paretone.sampling.flow import euler_steps, sampling_grid
from paretone.sampling.guidance import ALL, NOTHING, TEXT_ALONE, three_branch_velocity
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, scripted, synthesise
from paretone.techniques import problem, resolve
from paretone.techniques.resolving import foreseen
from tests.engine import small_speech
from tests.engine.small_speech import VOICE, setting

TEXT, STEPS = "One.", 6


@pytest.fixture
def model() -> F5Speech:
    return small_speech.load()


def using(name: str, **knobs: object) -> Setting:
    return setting(STEPS).with_technique(UsedTechnique(name, Values(knobs)))


def state(model: F5Speech, of: Setting) -> torch.Tensor:
    return model.sampling(scripted(model, TEXT, VOICE, of))()


def speak(model: F5Speech, of: Setting) -> Synthesis:
    make_ready(model, of, VOICE)
    return synthesise(model, TEXT, VOICE, of)


def test_equal_strengths_are_the_existing_result_bit_for_bit(model: F5Speech) -> None:
    plain = state(model, setting(STEPS))
    equal = using("separate_guidance", text=2.0, voice=2.0)
    assert torch.equal(state(model, equal), plain)
    (said,) = resolve(model.info, equal).notes
    assert said == "Equal strengths for text and voice are plain guidance of that strength."
    assert speak(model, equal).measurements.ops_ratio == 1
    stronger = state(model, setting(STEPS, guidance=3.0))
    assert torch.equal(state(model, using("separate_guidance", text=3.0, voice=3.0)), stronger)


def test_separate_strengths_against_a_loop_by_hand(model: F5Speech) -> None:
    of = using("separate_guidance", text=1.0, voice=3.0)
    script = scripted(model, TEXT, VOICE, of)
    times = sampling_grid(STEPS, "uniform")
    follow = euler_steps(times)
    begun = script.passages[0], script.prompt, times[:-1], script.options, (ALL, TEXT_ALONE, NOTHING)
    run: Any = model.begin(model.backbone, *begun)
    found = state(model, of)
    with torch.inference_mode():
        expected = torch.randn(found.shape, generator=torch.Generator().manual_seed(of.seed))
        for step in range(STEPS):
            velocities = model.backbone.velocity(expected, step, run)
            expected = follow(expected, three_branch_velocity(velocities, 2.0, 4.0), step)
    assert torch.allclose(found, expected, atol=1e-4)
    assert not torch.allclose(found, state(model, setting(STEPS)), atol=1e-2)


def test_operations_count_the_branches_that_ran(model: F5Speech) -> None:
    """Three branches for the first half of the times, then two, then one."""
    of = using("separate_guidance", text=2.0, voice=1.0, text_until=0.2, voice_until=0.6)
    spoken = speak(model, of)
    plan, (passage,) = resolve(model.info, of), scripted(model, TEXT, VOICE, of).passages
    cost = {count: model.evaluation_cost(passage, plan.options, count).evaluation for count in (1, 2, 3)}
    times = sampling_grid(STEPS, "uniform")[:-1]
    ran = [3 if time < 0.2 else 2 if time < 0.6 else 1 for time in times]
    assert ran == [3, 3, 3, 2, 2, 1]
    assert spoken.measurements.ops_ratio == pytest.approx(sum(cost[one] for one in ran) / (STEPS * cost[2]))
    assert spoken.trace.computed[0] == pytest.approx([cost[one] / cost[3] for one in ran])
    assert (plan.branches, plan.reference_branches) == (3, 2)
    assert plan.ops_ratio(model.evaluation_cost(passage, plan.options)) is None, "only a run can tell"


def test_no_threshold_skips_nothing_and_a_high_one_all_it_may(model: F5Speech) -> None:
    plain = state(model, setting(STEPS))
    never = using("saturating_guidance", threshold=0.0)
    assert torch.equal(state(model, never), plain) and speak(model, never).measurements.ops_ratio == 1
    shares = speak(model, using("saturating_guidance", threshold=2.0, again=0)).trace.computed[0]
    assert shares[:2] == (1, 1) and all(one < 0.6 for one in shares[2:])
    checked = speak(model, using("saturating_guidance", threshold=2.0, again=2)).trace.computed[0]
    assert [share == 1 for share in checked] == [True, True, False, True, False, True]
    ends = speak(model, using("saturating_guidance", threshold=2.0, then="end", again=0)).trace.computed[0]
    assert ends[0] == 1 and all(one < 0.6 for one in ends[1:])


def test_what_cannot_be_guided_so_is_said(model: F5Speech) -> None:
    name = "saturating_guidance"
    off = using(name)
    off = Setting(off.model, off.options.replace(guidance=0.0), off.techniques)
    assert problem(model.info, off) == "Guidance is off; set a strength, or do without this technique."
    cached = using(name).with_technique(UsedTechnique("first_block", Values(threshold=0.1)))
    assert "do without one of the two" in (problem(model.info, cached) or "")
    of = using("separate_guidance", text_from=0.6, text_until=0.3)
    assert "begins at 0.6 and ends at 0.3" in (problem(model.info, of) or "")
    of = using("saturating_guidance").with_technique(UsedTechnique("guidance_interval", Values(steps=2)))
    assert "ends guidance at a given step already" in (problem(model.info, of) or "")
    with pytest.raises(SettingError, match="has a weight for the text and one for the voice among its own options"):
        foreseen(Setting("megatts3-mini", Values(), (UsedTechnique("separate_guidance", Values()),)))
    without_voice = Setting("megatts3-mini", Values(similarity=0.0), (UsedTechnique(name, Values()),))
    with pytest.raises(SettingError, match="With a similarity of 0"):
        foreseen(without_voice)
