"""Layers that are skipped, and caches of evaluations."""

import itertools

import pytest
import torch
from torch import Tensor

from paretone.sampling.actions import SkipAction
from paretone.sampling.cache import KeyValueCache
from paretone.sampling.flow import Planned, Whole
from paretone.sampling.skipping import LayerMemory, ModuleMemory, SkipPlan, apply_module
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.evaluating import skip_plan
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.sampling.evaluated import DIT, FRAMES, LAYERS, begun, states
from tests.peers.ditreducio_algorithm import layer_plan
from tests.workload import crossed

STEPS = 7


class Defined:
    """One module by the paper's definition: equation 1 for temporal, equation 2 for branch skipping. The cache holds
    the outputs of all branches; it is replaced whenever anything was computed."""

    def __init__(self, weight: Tensor, branches: int) -> None:
        self.weight, self.branches, self.cache = weight, branches, None

    def __call__(self, hidden: Tensor, action: SkipAction) -> Tensor:
        rows = list(hidden.chunk(self.branches))
        if action is SkipAction.NONE:
            self.cache = [torch.tanh(row @ self.weight) for row in rows]
        elif action is SkipAction.BS:
            first = torch.tanh(rows[0] @ self.weight)
            self.cache = [first + (other - self.cache[0]) for other in self.cache]
        return torch.cat(self.cache)


@pytest.mark.parametrize(
    ("branches", "branch_skip", "kept", "in_place", "seed"),
    crossed([1, 2, 3], ["both", "attention"], ["planned", "everything"], [False, True, True], range(6)),
)
def test_actions_do_what_the_paper_defines(branches: int, branch_skip: str, kept: str, in_place: bool, seed: int):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, 3, (2, STEPS), generator=torch.Generator().manual_seed(seed)).tolist()
    rows = tuple((SkipAction.NONE, *map(SkipAction, row[1:])) for row in drawn)
    if branches == 1:
        rows = tuple(tuple(SkipAction.NONE if one is SkipAction.BS else one for one in row) for row in rows)
    table = StrategyTable(Compatibility("m", "f", "v", Values(steps=STEPS)), rows, branch_skip)
    weights = torch.randn(2, 2, 6, 6, generator=generator)
    gates = torch.randn(STEPS, 2, 2, 6, generator=generator)
    plan, memories = skip_plan(table), [LayerMemory() for _ in range(2)]
    defined = [[Defined(weights[layer, module], branches) for module in range(2)] for layer in range(2)]
    for step in range(STEPS):
        start = torch.randn(2 * branches, 5, 6, generator=generator)
        expected, hidden = start.clone(), start.clone()
        for layer in range(2):
            action = table.actions[layer][step]
            forward_action = SkipAction.NONE if action is SkipAction.BS and branch_skip == "attention" else action
            for module, what in enumerate((action, forward_action)):
                expected = expected + gates[step, layer, module] * defined[layer][module](expected, what)
            planned = plan.at(step)[layer] if kept == "planned" else layer_plan(action, branch_skip, keep=True)
            plans = planned.attention, planned.feed_forward
            parts = memories[layer].attention, memories[layer].feed_forward
            for module, (one, memory) in enumerate(zip(plans, parts, strict=True)):
                gate, own = gates[step, layer, module], lambda rows, of=weights[layer, module]: torch.tanh(rows @ of)
                hidden = apply_module(hidden, gate, own, one, memory, branches, in_place)
        assert torch.allclose(hidden, expected, atol=1e-5), f"step {step}"


def test_a_skipped_module_is_not_called() -> None:
    calls = []

    def module(rows: Tensor) -> Tensor:
        calls.append(len(rows))
        return rows * 2

    memory, hidden, gate = ModuleMemory(), torch.ones(4, 3, 2), torch.ones(2)
    for action in (SkipAction.NONE, SkipAction.TS, SkipAction.BS, SkipAction.TS):
        apply_module(hidden, gate, module, layer_plan(action, "both", keep=True).attention, memory, branches=2)
    assert calls == [4, 2], "all rows once, then the conditional rows only"


def test_a_plan_keeps_only_what_a_later_step_needs() -> None:
    none, ts, bs = SkipAction.NONE, SkipAction.TS, SkipAction.BS
    for row in itertools.product((none, ts, bs), repeat=4):
        actions = (none, *row)
        plan = skip_plan(StrategyTable(Compatibility("m", "f", "v", Values(steps=5)), (actions,)))
        for step, action in enumerate(actions):
            kept = plan.at(step)[0].attention
            assert kept.action is action
            followed_by_reuse = step < 4 and actions[step + 1] is ts
            assert kept.keep_output == (followed_by_reuse and action is not ts)
            until = next((later for later in range(step + 1, 5) if actions[later] is none), 5)
            assert kept.keep_residual == (action is none and bs in actions[step + 1 : until])


# --- Caches -----------------------------------------------------------------------------------------------------------
def rows(tokens: int, seed: int) -> torch.Tensor:
    return torch.randn(2, 3, tokens, 4, generator=torch.Generator().manual_seed(seed))


def test_a_cache_gives_back_what_was_written_and_never_grows() -> None:
    cache = KeyValueCache(1, 3, 10, 4, batch=2)
    keys, _ = cache.extend(0, rows(6, 0), rows(6, 1))
    cache.advance(6)
    cache.crop(2)
    again, values = cache.extend(0, rows(1, 2), rows(1, 3))
    assert again.data_ptr() == keys.data_ptr()
    assert torch.equal(again, torch.cat([rows(6, 0)[:, :, :2], rows(1, 2)], dim=2))
    assert torch.equal(values, torch.cat([rows(6, 1)[:, :, :2], rows(1, 3)], dim=2))
    cache = KeyValueCache(2, 3, 10, 4, batch=2)
    for layer in range(2):
        keys, values = cache.extend(layer, rows(4, layer), -rows(4, layer))
        assert torch.equal(keys, rows(4, layer)) and torch.equal(values, -rows(4, layer))
    cache.advance(4)
    for layer, (place, keys, values) in enumerate(cache.windows(2)):
        place.copy_(torch.cat([rows(2, 7), rows(2, 8)], dim=1).transpose(1, 2))
        assert torch.equal(keys, torch.cat([rows(4, layer), rows(2, 7)], dim=2))
        assert torch.equal(values, torch.cat([-rows(4, layer), rows(2, 8)], dim=2))
    assert cache.length == 4
    with pytest.raises(ValueError, match="11 tokens do not fit into a cache of 10"):
        cache.windows(7)
    cache = KeyValueCache(1, 3, 5, 4, batch=2)
    cache.extend(0, rows(4, 0), rows(4, 0))
    cache.advance(4)
    with pytest.raises(ValueError, match="6 tokens do not fit into a cache of 5"):
        cache.extend(0, rows(2, 0), rows(2, 0))
    with pytest.raises(ValueError, match="2 tokens cannot follow 4"):
        cache.advance(2)
    with pytest.raises(ValueError, match="4 tokens cannot be cropped to 5"):
        cache.crop(5)


def test_a_schedule_by_module_skips_that_module_everywhere() -> None:
    run, counts = begun(), DIT.operations(FRAMES, True)
    none, reuse = SkipAction.NONE, SkipAction.TS
    planned = Planned(DIT, SkipPlan.by_module((none, reuse), (none, none), LAYERS), LAYERS)
    whole = Whole(DIT)
    for step in range(2):
        planned.velocities(states()[0], step, run)
        whole.velocities(states()[0], step, run)
    saved = counts.branches * LAYERS * counts.attention
    assert planned.operations(0, counts) == whole.operations(0, counts) == counts.evaluation
    assert planned.operations(1, counts) == pytest.approx(counts.evaluation - saved)
