"""Passes of few tokens as one call: the same bits as operator by operator, whatever weights and sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from paretone.models.families.language_network import FeatureDrafter
from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.kernels.scripted_causal import MOST_TOKENS, _draft, _drafts, _pass, _scores, scripted
from paretone.models.networks.causal import CausalConfig
from paretone.models.networks.feature_draft import FeatureDraft
from paretone.sampling.speculative import speculation
from paretone.sampling.tokens import Nucleus, Uniforms
from paretone.sampling.verification import by_token
from tests.engine.models.small_causal import LLAMA, QWEN, QWEN3, SCALED, small_model, small_transformer
from tests.engine.sampling.test_autoregressive import request_of


@pytest.mark.parametrize("half", [False, True], ids=["plain", "float16 weights"])
@pytest.mark.parametrize("config", [LLAMA, QWEN, SCALED, QWEN3], ids=["llama", "qwen", "scaled", "qwen3"])
def test_one_call_gives_the_same_bits(config: CausalConfig, half: bool) -> None:
    plain = small_transformer(config)
    if half:
        for weight in plain.parameters():
            weight.copy_(weight.half().float())
    fast, operators = FusedTransformer.of(plain), FusedTransformer.of(plain)
    assert fast._scripted is not None and isinstance(scripted(_pass), torch.jit.ScriptFunction)
    operators._scripted = None
    torch.manual_seed(0)
    for batch in (1, 2):
        caches = [one.cache(60, batch) for one in (fast, operators)]
        for tokens in (30, 1, 4, 1, MOST_TOKENS):
            embedded = torch.randn(batch, tokens, config.hidden)
            kept: list[list[torch.Tensor]] = [[], []]
            found, expected = (
                one(embedded, cache, None, lambda layer, what, value, there=there: there.append(value))
                for one, cache, there in zip((fast, operators), caches, kept, strict=True)
            )
            assert torch.equal(found, expected)
            assert len(kept[0]) == config.layers and all(map(torch.equal, *kept))
        assert torch.equal(caches[0].kept(), caches[1].kept())
        with pytest.raises(ValueError, match="do not fit"):
            fast(torch.randn(batch, 12, config.hidden), caches[0])


@pytest.mark.parametrize("half", [False, True], ids=["plain", "float16 weights"])
def test_a_draft_on_features_gives_the_same_bits(half: bool) -> None:
    target = small_model().float()
    draft = FeatureDraft(target.plain_transformer.config, (1,), target.rows, 20, biased=True)
    if half:
        for weight in draft.parameters():
            weight.data.copy_(weight.half().float())
    fast, operators = (FeatureDrafter(draft, target.optimised()) for _ in range(2))
    assert fast._tensors is not None and isinstance(scripted(_draft), torch.jit.ScriptFunction)
    operators._tensors = None
    caches = [one.cache(40) for one in (fast, operators)]
    places = torch.arange(40)
    for tokens, scored in ((20, 1), (1, 1), (3, 2), (MOST_TOKENS, MOST_TOKENS)):
        states, embedded = torch.randn(2, tokens, target.head.shape[1])
        start = caches[0].length
        found, expected = (
            one.draft(states, embedded, cache, places[start : start + tokens], scored)
            for one, cache in zip((fast, operators), caches, strict=True)
        )
        assert len(found[1]) == scored and all(map(torch.equal, found, expected))
    assert torch.equal(caches[0].kept(), caches[1].kept())


def test_reading_in_one_call_gives_the_same_bits() -> None:
    fast, operators = (small_model().float().optimised() for _ in range(2))
    operators.fused_transformer._scripted = None
    caches = [one.cache(50) for one in (fast, operators)]
    for tokens, scored, keeps in ((20, 1, (0, 2)), (1, 1, None), (4, 3, ()), (MOST_TOKENS, 2, (1,))):
        embedded, places = torch.randn(1, tokens, fast.head.shape[1]), torch.arange(tokens) + caches[0].length
        (found, features), (expected, wanted) = (
            one.read(embedded, cache, places, scored, keeps)
            for one, cache in zip((fast, operators), caches, strict=True)
        )
        assert len(found) == scored and torch.equal(found, expected)
        assert keeps is None or (
            wanted.shape[1] == (len(keeps) + 1) * fast.head.shape[1] and torch.equal(features, wanted)
        )
    assert isinstance(scripted(_scores), torch.jit.ScriptFunction) and torch.equal(*(one.kept() for one in caches))


@pytest.mark.parametrize("length", [None, 40])
def test_drafting_in_one_call_drafts_the_same(length: int | None) -> None:
    target = small_model(stop_score=1.0).float().optimised()
    draft = FeatureDraft(target.transformer.config, (1,), target.rows, 20, biased=True)
    fast, operators = (FeatureDrafter(draft, target) for _ in range(2))
    operators._tensors = None
    request = replace(request_of(target, maximum=60), minimum=12, length=length)
    for seed, sampler in enumerate((Nucleus(), Nucleus(0.8, 8, 0.9), Nucleus(repetition_penalty=1.2))):
        one, other = (
            list(
                speculation(
                    target, drafter, request, sampler, Uniforms(seed), by_token(0.5, target.codes, guarded=False), 4
                )
            )
            for drafter in (fast, operators)
        )
        parts = [[(cycle.drafted, cycle.tokens, cycle.acceptance) for cycle in each] for each in (one, other)]
        assert parts[0] == parts[1] and any(cycle.accepted for cycle in one)
    assert isinstance(scripted(_drafts), torch.jit.ScriptFunction)


def test_other_kinds_of_numbers_go_operator_by_operator() -> None:
    assert FusedTransformer.of(small_transformer(LLAMA, dtype=torch.float64))._scripted is None
    assert FusedTransformer.of(small_transformer(LLAMA, dtype=torch.bfloat16))._scripted is None
