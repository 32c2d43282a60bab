"""CosyVoice 3's language model, text and prompt's mel against the official code."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from paretone.models.cosyvoice2.language_model import COSYVOICE_3, LanguageModel, PromptIds
from paretone.models.cosyvoice2.text import ADDED, TextTokenizer
from paretone.models.cosyvoice3.checkpoint import COSYVOICE3
from paretone.models.cosyvoice3.config import ADDED as MORE
from paretone.sampling.autoregressive import Request
from paretone.sampling.tokens import RepetitionAware
from tests.parity.fixtures import Fixture, alternating, assert_close, cases, fixtures
from tests.parity.test_parity_cosyvoice2_language import (
    KINDS,
    OFFICIALLY_MASKED,
    PROBABILITY,
    VERSION_3,
    assert_greedy,
    assert_texts,
    ids,
    model_of,
    token_model,
    without_wetext,  # noqa: F401 (used by all tests here)
)


def of_kind(*kinds: str) -> list:
    def listed(fixture: Fixture) -> list[str]:
        return [name for name, said in fixture.description["cases"].items() if said["kind"] in kinds]

    return cases(VERSION_3, listed)


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


@pytest.mark.parametrize("fixture", VERSION_3)
def test_parity_cosyvoice3_lm_ids(fixture: Fixture) -> None:
    said, model = fixture.description["cosyvoice3lm"], model_of(fixture)
    assert model.codes == said["speech_token_size"] and len(model.tokens.stops) == said["stop_ids"]
    assert model.codes + COSYVOICE_3.end == said["eos"]
    assert [model.codes + mark for mark in COSYVOICE_3.marks] == [said["sos"], said["task_id"]]


@pytest.mark.parametrize(("fixture", "case", "kind"), alternating(of_kind("decode"), KINDS))
def test_parity_cosyvoice3_lm_greedy(fixture: Fixture, kind: str, case: str) -> None:
    model, stops = model_of(fixture), f"{case}.stop_rows"
    rows = model.tokens.head.data[model.codes :]
    rows.copy_(fixture[stops] if stops in fixture else torch.zeros_like(rows))  # Zeros keep it from ending.
    assert_greedy(token_model(model, kind), request_of(model, fixture, case), fixture, case)


@pytest.mark.parametrize(("fixture", "case"), of_kind("ras"))
def test_parity_cosyvoice3_ras(fixture: Fixture, case: str) -> None:
    sampler, tokens = RepetitionAware("2026"), fixture[f"{case}.tokens"].tolist()
    scores, expected = fixture[f"{case}.logp_seen_by_sampler"], fixture[f"{case}.probabilities"]
    for step, (given, one) in enumerate(zip(scores, expected, strict=True)):
        found = sampler.probabilities(given[None], tokens[:step])[0]
        assert_close(found, one, PROBABILITY, f"probabilities of token {step}")


texts = pytest.mark.parametrize("fixture", fixtures("cosyvoice3", lambda said: "special_token_ids" in said))


@texts
def test_parity_cosyvoice3_text(fixture: Fixture) -> None:
    assert_texts(fixture)


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
    found: Tensor = COSYVOICE3.mel(fixture["wave"])[0]
    assert_close(found.T, fixture["mel"], 1e-4, "mel")
