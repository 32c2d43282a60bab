"""Operations of decoding, counted from its cycles."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from paretone.models.families.language import plain_operations, spent_operations
from paretone.models.families.token_model import TokenModel
from paretone.sampling.speculative import speculation
from paretone.sampling.tokens import Uniforms
from tests.engine.speaking import drafted, load, script_of, setting, write_all


def counting(tokens: TokenModel, counted: list[float]) -> SimpleNamespace:
    """``tokens``, of which every pass is counted when it runs."""

    def forward(embedded: torch.Tensor, cache: object, places: torch.Tensor) -> torch.Tensor:
        counted.append(tokens.transformer.operations(embedded.shape[1], cache.length))
        return tokens.transformer(embedded, cache, places)

    def logits(hidden: torch.Tensor) -> torch.Tensor:
        counted.append(2 * len(hidden) * tokens.head.numel())
        return tokens.logits(hidden)

    names = ("codes", "rows", "head", "embed", "cache")
    forward.fill = forward
    return SimpleNamespace(
        transformer=forward, logits=logits, prefixes=None, **{name: getattr(tokens, name) for name in names}
    )


@pytest.mark.parametrize("seed", [1, 5])
def test_operations_are_those_of_the_passes(tmp_path: Path, seed: int) -> None:
    model = load(write_all(tmp_path / "model"))
    script = script_of(model, setting(drafted(), seed=seed))
    target, draft = script.network.target.tokens, script.network.draft.tokens
    request, shorter = model._requests(script, script.passages[0])
    assert shorter.embedded.shape[1] < request.embedded.shape[1]
    sampler = model._token_sampler(script.passages[0], script.prompt, script.options)
    counted: list[float] = []
    running = (counting(one, counted) for one in (target, draft))
    cycles = list(speculation(*running, request, sampler, Uniforms(seed), draft_request=shorter))
    prompt, tokens = request.embedded.shape[1], sum(len(cycle.tokens) for cycle in cycles)
    assert {cycle.outcome for cycle in cycles} >= {"resampled", "bonus"}
    spent = spent_operations(target, draft, prompt, cycles, shorter.embedded.shape[1])
    assert spent == pytest.approx(sum(counted), rel=1e-9)
    # The stop is given as well.
    whole = target.transformer.operations(prompt + tokens) + 2 * (tokens + 1) * target.head.numel()
    assert plain_operations(target, prompt, cycles) == pytest.approx(whole, rel=1e-9)
