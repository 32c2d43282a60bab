"""CosyVoice 2's language model, its transformer and how it decodes, against the official code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from paretone.models.cosyvoice2.language_model import LanguageModel, PromptIds
from paretone.models.families.language_network import TokenModel
from paretone.models.networks.causal import NOTHING
from paretone.sampling.autoregressive import Request, decode
from paretone.sampling.tokens import Greedy, Uniforms
from tests.parity.fixtures import Fixture, assert_close, cases
from tests.parity.test_parity_cosyvoice2_prompt import LANGUAGE_MODELS, ids, model_of, prompts, ratios_of, tensors

RELATIVE = 1e-4
"""Of the range of what is compared."""
OFFICIALLY_MASKED = 1
"""Of three stop ids, the official code masks one before the least length."""
models = pytest.mark.parametrize("kind", ["plain", "optimised"])


def assert_near(found: Tensor, expected: Tensor, what: str) -> None:
    span = (expected.max() - expected.min()).item()
    assert_close(found, expected, RELATIVE * span, what)


def token_model(model: LanguageModel, kind: str) -> TokenModel:
    return model.tokens.optimised() if kind == "optimised" else model.tokens


def official_request(model: LanguageModel, fixture: Fixture, case: str) -> Request:
    golden = tensors(fixture)
    prompt = PromptIds(ids(golden, "prompt_text"), ids(golden, "prompt_speech_token"))
    request = model.request(
        PromptIds() if case == "noprompt" else prompt, ids(golden, "text"), ratios_of(fixture, case)
    )
    return replace(request, masked_stops=OFFICIALLY_MASKED)


def forced(model: LanguageModel, golden: dict[str, Tensor]) -> Tensor:
    """Embeddings of the fixture's prompt and of the tokens after it."""
    return torch.cat([golden["lm_input"], model.embed_speech(ids(golden, "tf_tokens"))[None]], dim=1)


class Recording(Greedy):
    """Remembers the scores that it is given."""

    def __init__(self) -> None:
        object.__setattr__(self, "seen", [])

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        self.seen.extend(logits.clone())
        return super().probabilities(logits, history)


@models
@pytest.mark.parametrize(("fixture", "case"), cases(LANGUAGE_MODELS, lambda fixture: fixture.description["cases"]))
def test_parity_cosyvoice2_lm_greedy(fixture: Fixture, kind: str, case: str) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    model.tokens.bias += golden[f"{case}.llm_decoder_bias_delta"]
    sampler, said = Recording(), fixture.description["cases"][case]
    request = official_request(model, fixture, case)
    cycles = list(decode(token_model(model, kind), request, sampler, Uniforms(0)))
    tokens = [token for cycle in cycles for token in cycle.tokens]
    assert tokens == golden[f"{case}.tokens"].tolist()
    assert (len(tokens), len(cycles)) == (said["n_tokens"], said["n_sampler_calls"])
    assert cycles[-1].stopped is (len(cycles) > len(tokens))
    expected = golden[f"{case}.logp_seen_by_sampler"]
    # The official code masks after the softmax, which leaves a constant between the two.
    found = torch.stack(sampler.seen[: len(expected)]).log_softmax(-1)
    expected = expected.log_softmax(-1)
    assert torch.equal(found.isinf(), expected.isinf())
    assert_near(found.nan_to_num(neginf=0), expected.nan_to_num(neginf=0), "log-probabilities")


@prompts
def test_parity_cosyvoice2_lm_every_layer(fixture: Fixture) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    outputs = []
    with torch.inference_mode():
        embedded = forced(model, golden)
        hidden = model.tokens.transformer(embedded, probe=lambda layer, name, value: outputs.append(value))
        logits = model.tokens.logits(hidden)
    expected = golden["tf_hidden_states"]
    length = expected.shape[1]
    found = [embedded, *outputs[:-1], hidden]
    assert len(found) == len(expected)
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert_near(one[0, -length:], other, f"hidden state {number}")
    assert_near(logits[0, -length:], golden["tf_logits"], "logits")


@prompts
@models
@pytest.mark.parametrize("case", ["subset_keep", "subset_draft"])
@pytest.mark.parametrize("way", ["kept", "skipped"])
def test_parity_cosyvoice2_lm_some_layers(fixture: Fixture, kind: str, case: str, way: str) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    retained, tokens = golden[f"{case}.layers"].tolist(), token_model(model, kind)
    skip = frozenset(range(tokens.transformer.config.layers)) - set(retained) if way == "skipped" else NOTHING
    transformer = tokens.transformer if skip else tokens.kept(retained).transformer
    with torch.inference_mode():
        logits = tokens.logits(transformer(forced(model, golden), skip=skip))
    expected = golden[f"{case}.logits"]
    assert_near(logits[0, -len(expected) :], expected, "logits")


@prompts
@models
@pytest.mark.parametrize("block", [1, 4, 7])
def test_parity_cosyvoice2_lm_in_blocks(fixture: Fixture, kind: str, block: int) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    tokens = token_model(model, kind)
    embedded = forced(model, golden)
    cache = tokens.cache(embedded.shape[1] + 3)
    with torch.inference_mode():
        parts = []
        for part in embedded.split(block, dim=1):
            # What was rejected leaves nothing behind.
            start = cache.length
            tokens.transformer(torch.randn(1, 3, part.shape[-1]), cache)
            cache.crop(start)
            parts.append(tokens.transformer(part, cache))
        logits = tokens.logits(torch.cat(parts, dim=1))
    expected = golden["tf_logits"]
    assert_near(logits[0, -len(expected) :], expected, "logits")
