"""Fewer bits step by step against float32, with the bundled weights: committed codes and their confidence."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch

from paretone.models import load_model
from paretone.models.catalogue import entry, harvard_sentences, voice
from paretone.models.kernels.fused_masked import FusedMasked
from paretone.models.kernels.precision import Int8Linear
from paretone.sampling.demasking import Canvas, Guide, SeededCanvasNoise, candidates, demask
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from tests.prompts import short_prompts  # noqa: F401
from tests.workload import workload

STEPS = workload(16, 8)
LIMITS = [
    ("bfloat16", 0.95, 0.08, 0.97),
    ("float16", 0.97, 0.02, 0.98),
    ("bfloat16_all", 0.95, 0.10, 0.96),
    ("float16_all", 0.97, 0.03, 0.98),
    ("int8", 0.60, 0.90, 0.75),
]
"""Of each precision: share of equal codes in the worst step, largest difference of a probability, and share of the
committed codes that are equal. Found were 0.981, 0.026, 0.992; 0.992, 0.003, 0.997; 0.972, 0.039, 0.986; 0.994, 0.004,
0.997; and of int8, which is another matter, 0.677, 0.822 and more than 0.75."""
PRECISIONS = tuple(name for name, *_ in LIMITS if name != "int8" or Int8Linear.available())


@dataclass
class Step:
    """One step of a canvas that float32 fills in, also scored with fewer bits."""

    codes: float
    """Share of the cells still masked for which both would take the same code."""
    probability: float
    """Largest difference of what both give to float32's code, over these cells."""
    committed: float
    """Share of the codes that float32 commits there that the other would take, too."""


@dataclass
class Trajectory:
    """All steps, by precision."""

    steps: dict[str, list[Step]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def trajectory(short_prompts: None) -> Trajectory:  # noqa: F811
    model = load_model("omni-mini", device="cpu")
    setting = Setting("omni-mini", entry("omni-mini").options_with(steps=STEPS))
    works = model.internals(scripted(model, harvard_sentences()[0], voice("", "omni-mini"), setting))
    request, rules, plain = works.request, works.rules, model.networks.plain
    runs = {name: FusedMasked.of(plain, name).begin(request, rules.guidance) for name in PRECISIONS}
    run, config = works.network.begin(request, rules.guidance), works.network.config
    canvas = Canvas(config.codebooks, request.frames, config.mask, torch.device("cpu"))
    before, found = canvas.codes.clone(), Trajectory({name: [] for name in PRECISIONS})
    for _ in demask(run, canvas, works.blocks[0], rules, SeededCanvasNoise(0, torch.device("cpu"))):
        left, new = before == config.mask, (before == config.mask) & (canvas.codes != config.mask)
        expected = run.scores(before, 0, request.frames, Guide.BOTH)
        code, likeliest, _ = candidates(expected, rules, lambda: None)
        for name, narrow in runs.items():
            scores = narrow.scores(before, 0, request.frames, Guide.BOTH).float().log_softmax(-1)
            same = scores[..., :-1].argmax(-1) == code
            given = scores.gather(-1, code[..., None])[..., 0]
            difference = (given.exp() - likeliest.exp()).abs()[left].max()
            step = Step(same[left].float().mean().item(), difference.item(), same[new].float().mean().item())
            found.steps[name].append(step)
        before = canvas.codes.clone()
    return found


@pytest.mark.parametrize(("name", "worst", "difference", "committed"), [one for one in LIMITS if one[0] in PRECISIONS])
def test_every_step_against_float32(
    trajectory: Trajectory, name: str, worst: float, difference: float, committed: float
) -> None:
    steps = trajectory.steps[name]
    assert len(steps) == STEPS
    assert min(step.codes for step in steps) >= worst
    assert 0 < max(step.probability for step in steps) <= difference
    # Of single steps that commit a dozen codes, one is much: hence all of them together.
    assert sum(step.committed for step in steps) / STEPS >= committed


def test_more_bits_are_closer(trajectory: Trajectory) -> None:
    furthest = {name: max(step.probability for step in steps) for name, steps in trajectory.steps.items()}
    assert furthest["float16"] < furthest["bfloat16"] < furthest.get("int8", 1.0)
