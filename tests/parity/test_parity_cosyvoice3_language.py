"""CosyVoice 3's language model, text and prompt's mel against the official code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.models.cosyvoice2 import text
from paretone.models.cosyvoice2.language_model import COSYVOICE_3, CosyNames, LanguageModel, PromptIds
from paretone.models.cosyvoice2.text import ADDED, TextTokenizer, normalised, pieces
from paretone.models.cosyvoice3.checkpoint import COSYVOICE3
from paretone.models.cosyvoice3.config import ADDED as MORE
from paretone.models.families.language_network import IGNORED
from paretone.models.networks.causal import CausalConfig
from paretone.sampling.autoregressive import Request, decode
from paretone.sampling.tokens import RepetitionAware, Uniforms
from paretone.training.spoken_tokens import collate_rows
from tests.parity.fixtures import Fixture, alternating, assert_close, cases, fixtures, full_precision
from tests.parity.test_parity_cosyvoice2_language import (
    EMBEDDED,
    KINDS,
    LOSS,
    PROBABILITY,
    Recording,
    assert_near,
    count,
    token_model,
)

OFFICIALLY_MASKED = 1
"""Of 200 stop ids, the official code masks one before the least length."""


def is_language_model(description: dict) -> bool:
    return "cosyvoice3lm" in description


LANGUAGE_MODELS = fixtures("cosyvoice3", is_language_model)
prompts = pytest.mark.parametrize("fixture", LANGUAGE_MODELS)


def of_kind(*kinds: str) -> list:
    def listed(fixture: Fixture) -> list[str]:
        return [name for name, said in fixture.description["cases"].items() if said["kind"] in kinds]

    return cases(LANGUAGE_MODELS, listed)


def model_of(fixture: Fixture) -> LanguageModel:
    full_precision()
    weights = {name: value.clone() for name, value in fixture.weights.items()}
    weights.setdefault("llm.model.lm_head.weight", weights["llm.model.model.embed_tokens.weight"])
    said = {name: value for name, value in fixture.description["qwen2_config"].items() if name != "attention_bias"}
    config = CausalConfig.read({"model_type": "qwen2", **said})
    return LanguageModel.from_official(weights, config, fixture.name, layout=COSYVOICE_3)


def ids(fixture: Fixture, name: str) -> tuple[int, ...]:
    return tuple(fixture[name].flatten().tolist()) if name in fixture else ()


def prompt_of(fixture: Fixture, mode: str) -> tuple[PromptIds, tuple[int, ...]]:
    """The prompt of a mode, and the text after it."""
    if mode == "cross_lingual":
        return PromptIds(), ids(fixture, "cross_text")
    if mode == "instruct":
        return PromptIds(ids(fixture, "instruct_text")), ids(fixture, "text")
    return PromptIds(ids(fixture, "prompt_text"), ids(fixture, "prompt_speech_token")), ids(fixture, "text")


def request_of(model: LanguageModel, fixture: Fixture, case: str) -> Request:
    said = fixture.description["cases"][case]
    prompt, words = prompt_of(fixture, said["mode"])
    request = model.request(prompt, words, *said["ratios"])
    return request if said.get("mask_all") else replace(request, masked_stops=OFFICIALLY_MASKED)


def with_stops(model: LanguageModel, fixture: Fixture, case: str) -> LanguageModel:
    """``model`` whose rows of the ends are those of the case; zeros keep it from ending."""
    rows = model.tokens.head.data[model.codes :]
    rows.copy_(fixture[f"{case}.stop_rows"] if f"{case}.stop_rows" in fixture else torch.zeros_like(rows))
    return model


@prompts
def test_parity_cosyvoice3_lm_ids_and_prompt(fixture: Fixture) -> None:
    said, model = fixture.description["cosyvoice3lm"], model_of(fixture)
    assert model.codes == said["speech_token_size"] and len(model.tokens.stops) == said["stop_ids"]
    assert model.codes + COSYVOICE_3.end == said["eos"]
    assert [model.codes + mark for mark in COSYVOICE_3.marks] == [said["sos"], said["task_id"]]
    prompt, words = prompt_of(fixture, "zero_shot")
    request = model.request(prompt, words)
    assert_close(request.embedded, fixture["lm_input"], EMBEDDED, "lm_input")
    with torch.inference_mode():
        hidden = model.tokens.transformer(request.embedded, positions=request.positions)
    assert_close(hidden[0], fixture["prefill_hidden"], LOSS, "prefill_hidden")


@pytest.mark.parametrize(("fixture", "case", "kind"), alternating(of_kind("decode"), KINDS))
def test_parity_cosyvoice3_lm_greedy(fixture: Fixture, kind: str, case: str) -> None:
    model, said = with_stops(model_of(fixture), fixture, case), fixture.description["cases"][case]
    sampler = Recording()
    cycles = list(decode(token_model(model, kind), request_of(model, fixture, case), sampler, Uniforms(0)))
    tokens = [token for cycle in cycles for token in cycle.tokens]
    assert tokens == fixture[f"{case}.tokens"].tolist()
    assert (len(tokens), len(cycles)) == (said["n_tokens"], said["n_sampler_calls"])
    expected = fixture[f"{case}.logp_seen_by_sampler"].log_softmax(-1)
    found = torch.stack(sampler.seen[: len(expected)]).log_softmax(-1)
    assert torch.equal(found.isinf(), expected.isinf())
    assert_near(found.nan_to_num(neginf=0), expected.nan_to_num(neginf=0), "log-probabilities")


@pytest.mark.parametrize(("fixture", "case"), of_kind("ras"))
def test_parity_cosyvoice3_ras(fixture: Fixture, case: str) -> None:
    sampler, tokens = RepetitionAware("2026"), fixture[f"{case}.tokens"].tolist()
    scores, expected = fixture[f"{case}.logp_seen_by_sampler"], fixture[f"{case}.probabilities"]
    for step, (given, one) in enumerate(zip(scores, expected, strict=True)):
        found = sampler.probabilities(given[None], tokens[:step])[0]
        assert_close(found, one, PROBABILITY, f"probabilities of token {step}")


@prompts
def test_parity_cosyvoice3_lm_every_layer(fixture: Fixture) -> None:
    model, outputs = model_of(fixture), []
    with torch.inference_mode():
        embedded = torch.cat([fixture["lm_input"], model.tokens.embed(ids(fixture, "tf_tokens"))[None]], dim=1)
        hidden = model.tokens.transformer(embedded, probe=lambda layer, name, value: outputs.append(value))
        logits = model.tokens.logits(hidden)
    expected = fixture["tf_hidden_states"]
    for number, (one, other) in enumerate(zip([embedded, *outputs[:-1], hidden], expected, strict=True)):
        assert_near(one[0, -len(other) :], other, f"hidden state {number}")
    assert_near(logits[0, -len(fixture["tf_logits"]) :], fixture["tf_logits"], "logits")


@prompts
def test_parity_cosyvoice3_lm_training_rows(fixture: Fixture) -> None:
    model = model_of(fixture)
    names = CosyNames(len(model.text), COSYVOICE_3)

    def part(kind: str, number: int) -> list[int]:
        return fixture[f"train.{kind}_token"][number, : fixture[f"train.{kind}_token_len"][number]].tolist()

    rows = [
        names.row([*part("instruct", number), *part("text", number)], part("speech", number), model.codes)
        for number in range(len(fixture["train.text_token"]))
    ]
    batch = collate_rows(rows)
    assert [len(row.labels) for row in rows] == fixture["train_uni.lm_input_len"].tolist()
    assert torch.equal(batch.labels.masked_fill(~batch.predicting, -1), fixture["train_uni.target"].long())
    embedded = F.embedding(batch.ids, torch.cat([model.text, model.tokens.embedding]))
    filled = torch.where(batch.heard[..., None], embedded, -1.0)
    assert_close(filled, fixture["train_uni.lm_input"], EMBEDDED, "lm_input")
    with torch.inference_mode():
        logits = model.tokens.logits(model.tokens.transformer(embedded))
    loss = F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=IGNORED)
    assert_close(loss[None], fixture["train_uni.loss"], LOSS, "loss")


@pytest.fixture(autouse=True)
def without_wetext(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_official_normaliser", lambda language: None)


texts = pytest.mark.parametrize("fixture", fixtures("cosyvoice3", lambda said: "special_token_ids" in said))


@texts
def test_parity_cosyvoice3_text(fixture: Fixture) -> None:
    rows = fixture.description["rows"]
    for row in rows:  # Numbers are read by our own rules.
        assert normalised(row["text"])[0] == row["joined"] or any(map(str.isdigit, row["text"]))
    assert [list(pieces(row["joined"], count)) for row in rows] == [row["split"] for row in rows]


@texts
def test_parity_cosyvoice3_tokenizer(fixture: Fixture) -> None:
    said = fixture.description
    order = sorted(said["special_token_ids"], key=said["special_token_ids"].__getitem__)
    assert order == [*ADDED, *MORE]
    tokenizer = TextTokenizer.load(Path(fixture.folder) / said["stand_in_vocabulary"]["folder"], MORE)
    for row in said["encoded"]:
        assert tokenizer.encode(row["text"]) == row["ids"], row["text"]


@pytest.mark.parametrize("fixture", fixtures("cosyvoice3", lambda said: "largest_difference_to_fmax_8000" in said))
def test_parity_cosyvoice3_mel(fixture: Fixture) -> None:
    full_precision()
    found: Tensor = COSYVOICE3.mel(fixture["wave"])[0]
    assert_close(found.T, fixture["mel"], 1e-4, "mel")
