"""Run by the official package's own Python, with cache-dit: its cache and ours on the same weights, from the same
noise.

Prints JSON: for each case the steps that either reused, the relative difference of the final states, how far the cache
moved them, and how near a decision came to its threshold.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import cache_dit
import numpy as np
import torch
from cache_dit import BlockAdapter, DBCacheConfig, ForwardPattern, TaylorSeerCalibratorConfig
from torch import Tensor, nn

from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.sampling.flow import sampling_grid
from paretone.sampling.guidance import guided_velocity
from paretone.techniques.dual_block_cache import STATIC, Rule
from paretone.techniques.dual_block_cache.cache import DualBlockCache
from tests.engine.models.megatts3 import plain_dit
from tests.engine.models.megatts3.plain_dit import random_inputs, small_mega_dit
from tests.peers import f5_exports
from tests.peers.f5_exports import FRAMES, VOCABULARY, official_model, small_release

DEPTH = 6
FREE = {"max_warmup_steps": 1, "max_continuous_cached_steps": -1}
CASES: dict[str, tuple[int, float, dict]] = {
    "every field": (
        13,
        1.7,
        {
            "Fn_compute_blocks": 2,
            "Bn_compute_blocks": 1,
            "residual_diff_threshold": 0.43,
            "max_warmup_steps": 5,
            "warmup_interval": 2,
            "max_cached_steps": 5,
            "max_continuous_cached_steps": 2,
            "taylorseer_order": 1,
        },
    ),
    "one first block": (11, 2.4, {**FREE, "residual_diff_threshold": 0.47}),
    "summed changes": (
        12,
        2.4,
        {**FREE, "residual_diff_threshold": 0.5, "max_accumulated_residual_diff_threshold": 2.2},
    ),
    "dynamic mask": (
        10,
        3.0,
        {"residual_diff_threshold": 0.51, "max_warmup_steps": 3, "steps_computation_mask": "1100100001"},
    ),
    "static mask, Taylor": (
        12,
        1.2,
        {
            "Bn_compute_blocks": 2,
            "steps_computation_mask": "111101001000",
            "steps_computation_policy": STATIC,
            "taylorseer_order": 2,
        },
    ),
    "always": (6, 2.0, {**FREE, "residual_diff_threshold": 1.0, "max_warmup_steps": 2}),
}


@dataclass(frozen=True)
class Integrated:
    """Our final state under a cache."""

    backbone: nn.Module
    run: object
    noise: Tensor
    times: np.ndarray
    guided: Callable[[Tensor], Tensor]

    def __call__(self, cache: DualBlockCache) -> Tensor:
        state = self.noise
        for at, length in enumerate(np.diff(self.times).tolist()):
            state = state + length * self.guided(cache.velocities(state, at, self.run))
        return state


def rule_of(fields: dict) -> Rule:
    mask = tuple(one == "1" for one in fields.get("steps_computation_mask", ""))
    return Rule(**{**fields, "steps_computation_mask": mask})


def enable(model: nn.Module, rule: Rule, steps: int, branches: int) -> None:
    """Have cache-dit wrap the blocks of ``model``."""
    fields = asdict(rule)
    order = fields.pop("taylorseer_order")
    fields["steps_computation_mask"] = [int(one) for one in rule.steps_computation_mask] or None
    fields["max_accumulated_residual_diff_threshold"] = rule.max_accumulated_residual_diff_threshold or None
    adapter = BlockAdapter(
        pipe=None,
        transformer=model,
        blocks=model.transformer_blocks,
        blocks_name="transformer_blocks",
        forward_pattern=ForwardPattern.Pattern_3,
        check_forward_pattern=False,
        has_separate_cfg=branches == 2,
    )
    config = DBCacheConfig(enable_separate_cfg=branches == 2, num_inference_steps=steps, **fields)
    calibrator = TaylorSeerCalibratorConfig(taylorseer_order=order) if order else None
    cache_dit.enable_cache(adapter, cache_config=config, calibrator_config=calibrator)


def compared(rule: Rule, found: Tensor, integrated: Integrated, caches: list[nn.Module]) -> dict:
    """One case's results; ``integrated`` gives our final state."""
    cache, nothing = (DualBlockCache(integrated.backbone, one) for one in (rule, Rule(residual_diff_threshold=0.0)))
    ours, whole = integrated(cache), integrated(nothing)
    reused, changes = [], []
    for model in caches:
        stats = cache_dit.summary(model, logging=False)
        stats = stats[0] if isinstance(stats, list) else stats
        reused.append(stats.cached_steps)
        changes += stats.residual_diffs.values()
        if len(caches) == 1:
            reused.append(stats.cfg_cached_steps)
            changes += stats.cfg_residual_diffs.values()
    margins = [abs(float(one) / rule.residual_diff_threshold - 1) for one in changes if float(one) > 0]
    return {
        "theirs": reused,
        "ours": cache.reused,
        "difference": (found - ours).abs().max().item() / found.abs().max().item(),
        "moved": (whole - ours).abs().max().item() / found.abs().max().item(),
        "margin": min(margins, default=1.0),
    }


def f5(path: Path, steps: int, guidance: float, rule: Rule) -> dict:
    """The official class, whose two branches are two forward passes."""
    cond, ids = torch.randn(1, FRAMES, 100), torch.randint(0, VOCABULARY, (1, 30))
    times, noise = sampling_grid(steps, "uniform"), torch.randn(1, FRAMES, 100)
    official = official_model(path).transformer
    enable(official, rule, steps, 2)
    state = noise
    for at, length in enumerate(np.diff(times).tolist()):
        time = torch.tensor(times[at])
        conditional = official(state, cond, ids, time, cache=False)
        alone = official(state, cond, ids, time, drop_audio_cond=True, drop_text=True, cache=False)
        state = state + length * (conditional + guidance * (conditional - alone))
    backbone = read_f5_checkpoint(path).build()
    run = backbone.begin(cond, ids, times[:-1], True)
    ours = Integrated(backbone, run, noise, times, lambda both: guided_velocity(both, guidance))
    return compared(rule, state, ours, [official])


class Layer(nn.Module):
    """One layer of one branch of MegaTTS 3."""

    def __init__(self, model: nn.Module, index: int) -> None:
        super().__init__()
        self.of = (model, index)  # In a tuple, so that the model does not become a part of its own layer.

    def forward(self, hidden: Tensor, step: int, run: object) -> Tensor:
        model, index = self.of
        return model.layer(index, hidden, step, run)


class Branch(nn.Module):
    """One branch of MegaTTS 3, whose official class no registry has: its layers between its ends."""

    def __init__(self, model: nn.Module, run: object) -> None:
        super().__init__()
        self.of = (model, run)
        self.transformer_blocks = nn.ModuleList(Layer(model, index) for index in range(model.layers))

    def forward(self, state: Tensor, step: int) -> Tensor:
        model, run = self.of
        entered = hidden = model.enter(state, step, run)
        for block in self.transformer_blocks:
            hidden = block(hidden, step, run)
        return model.project(model.leave(hidden, entered, step, run))


def megatts3(steps: int, guidance: float, rule: Rule) -> dict:
    """Three branches, each with a cache of its own."""
    inputs, model = random_inputs(), small_mega_dit()
    times = sampling_grid(steps)
    branches = [Branch(model, model.begin(*inputs.conditions, times[:-1], (at,))) for at in range(3)]
    for one in branches:
        enable(one, rule, steps, 1)

    def guided(velocities: Tensor) -> Tensor:
        full, text, none = velocities.chunk(3)
        return none + guidance * (text - none) + 2 * (full - text)

    state = inputs.state
    for at, length in enumerate(np.diff(times).tolist()):
        state = state + length * guided(torch.cat([one(state, at) for one in branches]))
    run = model.begin(*inputs.conditions, times[:-1], (0, 1, 2))
    return compared(rule, state, Integrated(model, run, inputs.state, times, guided), branches)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(3)
    f5_exports.SMALL["depth"] = DEPTH
    plain_dit.SMALL = replace(plain_dit.SMALL, layers=DEPTH)
    output, sys.stdout = sys.stdout, sys.stderr
    results = {}
    with tempfile.TemporaryDirectory() as place, torch.no_grad():
        path = small_release(Path(place) / "v1", "v1")
        for name, (steps, guidance, fields) in CASES.items():
            results[f"F5, {name}"] = f5(path, steps, guidance, rule_of(fields))
        for name in CASES:
            steps, guidance, fields = CASES[name]
            results[f"MegaTTS 3, {name}"] = megatts3(steps, guidance, rule_of(fields))
    print(json.dumps(results), file=output)


if __name__ == "__main__":
    main()
