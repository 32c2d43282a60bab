"""The official loop as the bench of peers has it, against recorded output of the official code."""

from __future__ import annotations

import pytest
import torch

from paretone.models.networks.causal import CausalConfig
from tests.parity.fixtures import Fixture, cases
from tests.parity.test_parity_cosyvoice2_lm import assert_near, official_request
from tests.parity.test_parity_cosyvoice2_prompt import LANGUAGE_MODELS, model_of, tensors
from tests.peers.cosyvoice2 import OfficialLoop

pytest.importorskip("transformers")


@pytest.mark.parametrize(("fixture", "case"), cases(LANGUAGE_MODELS, lambda fixture: fixture.description["cases"]))
def test_parity_cosyvoice2_official_loop(fixture: Fixture, case: str) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    tokens, config = model.tokens, CausalConfig.read(fixture.description["qwen2_config"])
    assert tokens.bias is not None
    bias = tokens.bias + golden[f"{case}.llm_decoder_bias_delta"]
    weights = tokens.plain_transformer.state_dict()
    loop = OfficialLoop(config, weights, model.text, tokens.embedding.detach(), tokens.head, bias, tokens.codes)
    request = official_request(model, fixture, case)
    found, scores = loop.speak(request.embedded, request.minimum, request.maximum, keep=True, greedy=True)
    assert found == golden[f"{case}.tokens"].tolist()
    expected = golden[f"{case}.logp_seen_by_sampler"]
    assert torch.equal(scores.isinf()[: len(expected)], expected.isinf())
    assert_near(scores[: len(expected)].nan_to_num(neginf=0), expected.nan_to_num(neginf=0), "log-probabilities")
