"""Passes of few tokens as one call: the same bits as operator by operator, whatever weights and sizes."""

from __future__ import annotations

import pytest
import torch

from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.kernels.scripted_causal import MOST_TOKENS, scripted_pass
from paretone.models.networks.causal import CausalConfig
from tests.engine.models.small_causal import LLAMA, QWEN, SCALED, small_transformer


@pytest.mark.parametrize("half", [False, True], ids=["plain", "float16 weights"])
@pytest.mark.parametrize("config", [LLAMA, QWEN, SCALED], ids=["llama", "qwen", "scaled"])
def test_one_call_gives_the_same_bits(config: CausalConfig, half: bool) -> None:
    plain = small_transformer(config)
    if half:
        for weight in plain.parameters():
            weight.copy_(weight.half().float())
    scripted, operators = FusedTransformer.of(plain), FusedTransformer.of(plain)
    assert scripted._scripted is not None and isinstance(scripted_pass(), torch.jit.ScriptFunction)
    operators._scripted = None
    torch.manual_seed(0)
    for batch in (1, 2):
        caches = [one.cache(60, batch) for one in (scripted, operators)]
        for tokens in (30, 1, 4, 1, MOST_TOKENS):
            embedded = torch.randn(batch, tokens, config.hidden)
            kept: list[list[torch.Tensor]] = [[], []]
            found, expected = (
                one(embedded, cache, None, lambda layer, what, value, there=there: there.append(value))
                for one, cache, there in zip((scripted, operators), caches, kept, strict=True)
            )
            assert torch.equal(found, expected)
            assert len(kept[0]) == config.layers and all(map(torch.equal, *kept))
        assert torch.equal(caches[0].kept(), caches[1].kept())
        with pytest.raises(ValueError, match="do not fit"):
            scripted(torch.randn(batch, 12, config.hidden), caches[0])


def test_other_kinds_of_numbers_go_operator_by_operator() -> None:
    assert FusedTransformer.of(small_transformer(LLAMA, dtype=torch.float64))._scripted is None
    assert FusedTransformer.of(small_transformer(LLAMA, dtype=torch.bfloat16))._scripted is None
