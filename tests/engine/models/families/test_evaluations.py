"""DiTReducio's rivals on real models of a few thousand weights: what runs is what was asked for, and is counted."""

from __future__ import annotations

import pytest
import torch

from paretone.errors import Cancelled
from paretone.models.base import Synthesis
from paretone.models.f5.adapter import F5Speech
from paretone.models.f5.dit import DiT
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.sampling.flow import euler_steps, sampling_grid
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, scripted, synthesise
from paretone.techniques import resolve
from paretone.techniques.error_curve import ErrorCurve, measuring
from tests.engine import small_speech
from tests.engine.small_speech import LAYERS, PROMPT_FRAMES, VOICE, setting

TEXT, STEPS = "One.", 6


@pytest.fixture
def model() -> F5Speech:
    return small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)


def using(name: str, **knobs: object) -> Setting:
    return setting(STEPS).with_technique(UsedTechnique(name, Values(knobs)))


def speak(model: F5Speech, of: Setting) -> Synthesis:
    make_ready(model, of, VOICE)
    return synthesise(model, TEXT, VOICE, of)


def curves(model: F5Speech) -> list[ErrorCurve]:
    """Those that the model remembers."""
    return list(model._memory.get(measuring.__name__, {}).values())


def test_guidance_ends_after_its_steps(model: F5Speech) -> None:
    """Against a loop that guides by hand."""
    of = using("guidance_interval", steps=2)
    times = sampling_grid(STEPS, "uniform")
    follow = euler_steps(times)
    runs = {}
    begin = DiT.begin

    def noting(self, prompt, ids, at, is_guided, durations=None):
        runs[is_guided] = begin(self, prompt, ids, at, is_guided, durations)
        return runs[is_guided]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiT, "begin", noting)
        found = model.sampling(scripted(model, TEXT, VOICE, of))()
    with torch.inference_mode():
        state = torch.randn(found.shape, generator=torch.Generator().manual_seed(of.seed))
        for step in range(STEPS):
            velocities = model._backbone.velocity(state, step, runs[step < 2])
            if step < 2:
                conditional, unconditional = velocities.chunk(2)
                velocities = conditional + 2.0 * (conditional - unconditional)
            state = follow(state, velocities, step)
    assert torch.allclose(found, state, atol=1e-5)
    spoken = speak(model, of)
    two, one = (
        model._operations(found.shape[1], resolve(model.info, of).options.replace(guidance=at)) for at in (2.0, 0.0)
    )
    assert spoken.measurements.ops_ratio == pytest.approx(
        (2 * two.evaluation + 4 * one.evaluation) / (6 * two.evaluation)
    )
    assert spoken.trace.computed[0] == pytest.approx([1, 1, *[one.evaluation / two.evaluation] * 4])


@pytest.mark.parametrize("name", ["error_curve", "first_block"])
def test_caches_skip_and_say_where(model: F5Speech, name: str) -> None:
    plain = speak(model, setting(STEPS))
    nothing, much = speak(model, using(name, threshold=0.0)), speak(model, using(name, threshold=20.0))
    assert plain.trace.computed == nothing.trace.computed == ((1.0,) * STEPS,)
    assert nothing.measurements.ops_ratio == 1
    assert torch.allclose(torch.from_numpy(plain.samples), torch.from_numpy(nothing.samples), atol=1e-5)
    (shares,) = much.trace.computed
    assert shares[0] == 1 and all(one < 1 for one in shares[1:])
    assert much.measurements.ops_ratio == pytest.approx(sum(shares) / STEPS)


def test_the_curve_is_measured_before_the_clock_and_once_for_each_voice(model: F5Speech) -> None:
    of = using("error_curve", threshold=0.5)
    speak(model, of)
    (curve,) = curves(model)
    assert len(curve.attention) == len(curve.feed_forward) == STEPS
    speak(model, of.with_technique(UsedTechnique("error_curve", Values(threshold=0.1))))
    assert curves(model) == [curve], "thresholds share it"
    attention, feed_forward = curve.schedule(0.5)
    counts = model._operations(PROMPT_FRAMES + 12, resolve(model.info, of).options)
    skipped = (
        LAYERS
        * counts.branches
        * sum(
            (one is SkipAction.TS) * cost
            for row, cost in ((attention, counts.attention), (feed_forward, counts.feed_forward))
            for one in row
        )
    )
    expected = 1 - skipped / (STEPS * counts.evaluation)
    assert speak(model, of).measurements.ops_ratio == pytest.approx(expected)


def test_measuring_a_curve_can_be_cancelled(model: F5Speech) -> None:
    class Stop(Observer):
        def check(self) -> None:
            raise Cancelled

    with pytest.raises(Cancelled):
        make_ready(model, using("error_curve", threshold=0.5), VOICE, observer=Stop())
    assert not curves(model)


def test_rivals_combine_where_they_may(model: F5Speech) -> None:
    of = using("guidance_interval", steps=2).with_technique(UsedTechnique("error_curve", Values(threshold=20.0)))
    (shares,) = speak(model, of).trace.computed
    assert shares[0] == 1 and shares[1] < 1 and 0.4 < shares[2] < 1, "other branches have nothing to reuse"
    assert all(one < shares[2] for one in shares[3:])


def test_attention_is_looked_at_in_the_branches_that_run(model: F5Speech) -> None:
    of = using("guidance_interval", steps=2)
    for step, branches in ((1, 2), (2, 1)):
        capture = model.capture_attention(scripted(model, TEXT, VOICE, of), 1, step)
        assert capture.maps.shape[0] == branches
