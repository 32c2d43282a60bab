"""Entropy-bound unmasking and guidance rescale: plug-ins that decide how many codes a step commits, and how the
velocities of the branches become one."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from paretone.models import load_model
from paretone.models.base import SpeechModel, Synthesis
from paretone.models.catalogue import entry, voice
from paretone.sampling.demasking import Open
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan, MaskedPlan, Part
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques import conflict, problem, technique
from paretone.techniques import resolve as resolve_setting
from tests.engine import small_speech
from tests.engine.small_speech import VOICE
from tests.plugins.writing import DECLARED, written

pytestmark = pytest.mark.usefixtures("short_prompts")
EB, RESCALE = "entropy_bound", "guidance_rescale"
MINIS = ("f5-mini", "megatts3-mini")


@pytest.fixture(scope="module")
def models() -> dict[str, SpeechModel]:
    return {name: load_model(name, device="cpu") for name in (*MINIS, "omni-mini")}


def using(model: str, *used: UsedTechnique, **options: object) -> Setting:
    of = Setting(model, Values(options), seed=3)
    for one in used:
        of = of.with_technique(one)
    return of


def spoken(models: dict[str, SpeechModel], of: Setting) -> Synthesis:
    return synthesise(models[of.model], "Rice.", voice("", of.model), of)


def rescaled(share: float = 0.7) -> UsedTechnique:
    return UsedTechnique(RESCALE, Values(share=share))


def bounded(bound: float = 50.0) -> UsedTechnique:
    return UsedTechnique(EB, Values(bound=bound))


# --- How many codes a step commits ------------------------------------------------------------------------------------
def test_a_step_commits_up_to_the_bound(plugins: object) -> None:
    """Ben-Hamu et al.: the entropies, all but the greatest, add up to at most the bound."""
    probabilities = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    there = Open(5, 1, 4, lambda: probabilities.log())
    half, tenth = np.log(2), -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    counts = {0.0: 2, tenth - 0.01: 2, tenth + 0.01: 3, tenth + half + 0.01: 4, 10.0: 5}
    for bound, count in counts.items():  # Of the bound 0: nothing but the greatest counts.
        assert Part.of("paretone_entropy_bound:schedule", bound=float(bound)).make(5, 4)(there) == count


def test_omni_mini_takes_fewer_steps_with_it(plugins: object, models: dict[str, SpeechModel]) -> None:
    steps = 6
    assert spoken(models, using("omni-mini", steps=steps)).measurements.evaluations == steps
    taken = [spoken(models, using("omni-mini", bounded(one), steps=steps)) for one in (0.0, 100.0, 10000.0)]
    counts = [one.measurements.evaluations for one in taken]
    assert counts[0] == steps and sorted(counts, reverse=True) == counts and counts[-1] == 1 and counts[1] < steps
    for one in taken:
        (passage,) = one.trace.demasking.passages
        assert passage.order.min() >= 0 and passage.steps == one.measurements.evaluations, "everything is committed"
        assert one.measurements.ops_ratio == pytest.approx(passage.steps / steps)
    (first,) = taken[0].trace.demasking.passages
    assert [int((first.order == step).sum()) for step in range(steps - 1)] == [1] * (steps - 1)


@pytest.mark.parametrize(
    "others",
    [
        (UsedTechnique("blockwise", Values(adaptive=False)),),
        (UsedTechnique("guidance_stride"), UsedTechnique("frozen_prefix")),
    ],
    ids=["blocks", "stride, frozen prefix"],
)
def test_it_works_with_what_else_masked_models_have(
    others: tuple[UsedTechnique, ...], plugins: object, models: dict[str, SpeechModel]
) -> None:
    without = spoken(models, using("omni-mini", *others, steps=8))
    found = spoken(models, using("omni-mini", bounded(100.0), *others, steps=8))
    assert found.measurements.evaluations < without.measurements.evaluations
    for passage in found.trace.demasking.passages:
        assert passage.order.min() >= 0


# --- How branches become one ------------------------------------------------------------------------------------------
def test_guidance_is_rescaled_as_published(plugins: object) -> None:
    """Lin et al., equations 15 and 16."""
    conditional, unconditional = torch.randn(2, 1, 7, 5, generator=torch.Generator().manual_seed(0))
    own = conditional + 2 * (conditional - unconditional)
    combine = Part.of("paretone_guidance_rescale:combining", share=0.7).make(lambda velocities, evaluation: own)
    found = combine(torch.cat([conditional, unconditional]), 0)
    assert torch.allclose(found, 0.7 * (own * (conditional.std() / own.std())) + 0.3 * own, atol=1e-6)
    assert found.std() < own.std()


@pytest.mark.parametrize("model", MINIS)
def test_flow_models_speak_with_it(model: str, plugins: object, models: dict[str, SpeechModel]) -> None:
    plain = spoken(models, using(model, steps=2))
    assert np.array_equal(spoken(models, using(model, rescaled(0.0), steps=2)).samples, plain.samples)
    found = spoken(models, using(model, rescaled(), steps=2))
    assert not np.array_equal(found.samples, plain.samples)
    assert found.measurements.ops_ratio == pytest.approx(plain.measurements.ops_ratio)


@pytest.mark.parametrize(
    "other",
    [
        UsedTechnique("guidance_interval", Values(steps=2)),
        UsedTechnique("separate_guidance", Values(text=1.0)),
        UsedTechnique("first_block"),
        UsedTechnique("adams_bashforth"),
    ],
    ids=lambda one: one.technique,
)
def test_it_works_with_what_else_flow_models_have(other: UsedTechnique, plugins: object) -> None:
    speech = small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)

    def samples(*used: UsedTechnique) -> np.ndarray:
        of = small_speech.setting(6)
        for one in (other, *used):
            of = of.with_technique(one)
        return synthesise(speech, "One.", VOICE, of).samples

    assert np.array_equal(samples(rescaled(0.0)), samples())
    found = samples(rescaled())
    assert np.isfinite(found).all() and not np.array_equal(found, samples())


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("average_velocity", "weights run one branch from the start: there is nothing to rescale"),
        ("guidance_free", "weights run one branch from the start: there is nothing to rescale"),
        ("ditreducio", "calibrated with the model's own combination of branches; do without Guidance rescale"),
    ],
)
def test_what_excludes_it_says_so(other: str, said: str, plugins: object, models: dict[str, SpeechModel]) -> None:
    of = using("f5-mini", rescaled(), UsedTechnique(other))
    reason = conflict(of) or problem(models["f5-mini"].info, of)
    assert reason is not None and said in reason and technique(other) is not None


# --- All models -------------------------------------------------------------------------------------------------------
SAME = {
    "masked": "def part(cells, steps):\n    return lambda there: there.planned",
    "flow": "def part(combine):\n    return combine",
}


@pytest.mark.parametrize("model", ["f5-mini", "omni-mini"])
def test_a_part_that_does_as_the_model_does_changes_no_bit(
    model: str, tmp_path, visible: Callable[..., None], models: dict[str, SpeechModel]
) -> None:
    family = entry(model).family
    field = {"masked": "schedule", "flow": "combining"}[family]
    declared = f"TECHNIQUE = declared(families=({family!r},), resolve=putting({field!r}))"
    written(tmp_path, "same", f"{DECLARED}{SAME[family]}\n\n{declared}\n")
    visible(tmp_path)
    blocks = UsedTechnique("blockwise", Values(adaptive=False, step_time=20.0))
    for used in {"flow": [()], "masked": [(), (blocks,)]}[family]:
        plain, same = (spoken(models, using(model, *used, *more, steps=2)) for more in ((), (UsedTechnique("same"),)))
        assert np.array_equal(plain.samples, same.samples)
    plan = resolve_setting(models[model].info, using(model, UsedTechnique("same")))
    assert isinstance(plan, FlowPlan | MaskedPlan) and plan == replace(plan) and list(plan.parts) == [field]
