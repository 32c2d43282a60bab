"""LLaSA's transformer, its greedy decoding and what it samples from, against transformers' Llama."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from paretone.models.families.language_network import TokenModel
from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.sampling.autoregressive import Request, decode
from paretone.sampling.tokens import Greedy, Nucleus, Uniforms
from tests.parity.fixtures import Fixture, assert_close, cases, full_precision
from tests.parity.test_parity_cosyvoice2_lm import assert_near, models
from tests.parity.test_parity_llasa_lm import LANGUAGE_MODELS, language_models

PROBABILITY = 1e-6
CARD = {"card": Nucleus(0.8, 50), "card_2025_05": Nucleus(0.9, 50, 0.95)}


def transformer_of(fixture: Fixture) -> tuple[CausalTransformer, Tensor]:
    """The transformer, and the table that is its embedding and its head."""
    full_precision()
    transformer = CausalTransformer(CausalConfig.read(fixture.description["config"]))
    weights = {name.removeprefix("model."): value for name, value in fixture.weights.items()}
    table = weights.pop("embed_tokens.weight")
    transformer.load_state_dict(weights, strict=True)
    return transformer.requires_grad_(False), table


def spoken(fixture: Fixture) -> list[int]:
    """Official ids of the codes and, last, of the end."""
    said = fixture.description["ids"]
    return [*range(said["speech_0"], fixture.description["config"]["vocab_size"]), said["SPEECH_GENERATION_END"]]


@language_models
def test_parity_llasa_every_layer(fixture: Fixture) -> None:
    transformer, table = transformer_of(fixture)
    outputs = []
    embedded = table[fixture["en.input_ids"]][None]
    hidden = transformer(embedded, probe=lambda layer, name, value: outputs.append(value))
    expected = fixture["en.hidden_states_last20"]
    for number, one in enumerate([embedded, *outputs[:-1], hidden]):
        assert_near(one[0, -expected.shape[1] :], expected[number], f"hidden state {number}")
    logits = (hidden @ table.T)[0]
    assert_near(logits[-len(fixture["en.logits_last20"]) :], fixture["en.logits_last20"], "logits")


@language_models
@models
@pytest.mark.parametrize("case", ["subset_keep", "subset_draft"])
def test_parity_llasa_some_layers(fixture: Fixture, kind: str, case: str) -> None:
    transformer, table = transformer_of(fixture)
    fewer = transformer.kept(fixture[f"{case}.layers"].tolist())
    fewer = FusedTransformer.of(fewer) if kind == "optimised" else fewer
    logits = (fewer(table[fixture["en.input_ids"]][None]) @ table.T)[0]
    expected = fixture[f"{case}.logits_last20"]
    assert_near(logits[-len(expected) :], expected, "logits")


@models
@pytest.mark.parametrize(
    ("fixture", "case"), cases(LANGUAGE_MODELS, lambda fixture: fixture.description["greedy_cases"])
)
def test_parity_llasa_greedy(fixture: Fixture, kind: str, case: str) -> None:
    said = fixture.description["greedy_cases"][case]
    transformer, table = transformer_of(fixture)
    ids = spoken(fixture)
    model = TokenModel(transformer, table[ids], table[ids], codes=len(ids) - 1)
    model = model.optimised() if kind == "optimised" else model
    sequence = fixture[f"{case}.sequence"].tolist()
    prompt = sequence[: len(sequence) - said["new_tokens"]]
    request = Request(
        table[torch.tensor(prompt)][None], torch.arange(len(prompt)), len(prompt), 0, said["max_length"] - len(prompt)
    )
    cycles = list(decode(model, request, Greedy(), Uniforms(0)))
    codes = [token for cycle in cycles for token in cycle.tokens]
    new = [ids[code] for code in codes] + [ids[-1]] * cycles[-1].stopped
    assert cycles[-1].stopped is said["ended_by_eos"]
    assert prompt + new == sequence


@language_models
@pytest.mark.parametrize("name", ["card", "card_2025_05"])
def test_parity_llasa_distribution(fixture: Fixture, name: str) -> None:
    found = CARD[name].probabilities(fixture["dist.logits"][None], [])
    assert_close(found[0], fixture[f"dist.{name}"], PROBABILITY, name)


@language_models
def test_parity_llasa_repetition_penalty(fixture: Fixture) -> None:
    ids = tuple(fixture["clone.input_ids"].tolist())
    # Half of them as prompt, half as what has been generated: both count.
    half = len(ids) // 2
    sampler = Nucleus(0.8, 50, repetition_penalty=1.2, prompt=ids[:half])
    found = sampler.probabilities(fixture["dist.logits"][None], ids[half:])
    assert_close(found[0], fixture["dist.reppen12"], PROBABILITY, "reppen12")
