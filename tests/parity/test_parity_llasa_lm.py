"""LLaSA's prompt and what is read of its checkpoint, against the official chat template, tokenizer and model."""

from __future__ import annotations

import re

import pytest
import torch

from paretone.models.llasa.checkpoint import EMBEDDING
from paretone.models.llasa.tokenizer import DATE, LlasaTokenizer, code_token, rendered
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from tests.parity.fixtures import Fixture, cases, fixtures
from tests.parity.test_parity_keys import released

pytest.importorskip("tokenizers")
CONFIG_1B = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
}
VOCABULARY_1B = 193_800
LANGUAGE_MODELS = fixtures("ar", lambda description: "speech_0" in description.get("ids", {}))
language_models = pytest.mark.parametrize("fixture", LANGUAGE_MODELS)


def date_of(said: dict) -> str:
    """The date that a prompt was rendered with."""
    return re.search(r"Today Date: (.*)", said["rendered"])[1]


@language_models
def test_parity_llasa_lm_usual_date(fixture: Fixture) -> None:
    assert DATE in map(date_of, fixture.description["prompts"].values())


@pytest.mark.parametrize(("fixture", "name"), cases(LANGUAGE_MODELS, lambda fixture: fixture.description["prompts"]))
def test_parity_llasa_lm_prompt_and_ids(fixture: Fixture, name: str) -> None:
    tokenizer = LlasaTokenizer.read(fixture.folder / "llasa_tokenizer")
    said = fixture.description["prompts"][name]
    codes = fixture["ref_codes"].tolist() if said["ref_codes"] else []
    found = rendered(said["text"], date=date_of(said))
    assert found + "".join(map(code_token, codes)) == said["rendered"]
    ids = [*tokenizer.ids(found), *(tokenizer.first_code + code for code in codes)]
    assert ids == fixture[f"{name}.input_ids"].tolist()
    assert len(ids) == said["n"]


@language_models
def test_parity_llasa_lm_special_ids(fixture: Fixture) -> None:
    tokenizer = LlasaTokenizer.read(fixture.folder / "llasa_tokenizer")
    ids = fixture.description["ids"]
    assert (tokenizer.first_code, tokenizer.end) == (ids["speech_0"], ids["SPEECH_GENERATION_END"])
    assert tokenizer.vocabulary == fixture.description["config"]["vocab_size"]


def test_parity_llasa_lm_names_and_shapes_of_the_release() -> None:
    with torch.device("meta"):
        transformer = CausalTransformer(CausalConfig.read(CONFIG_1B))
    found = {f"model.{name}": tuple(value.shape) for name, value in transformer.state_dict().items()}
    found[EMBEDDING] = (VOCABULARY_1B, 2048)
    assert found == released("Llasa_1B")
    assert sum(torch.Size(shape).numel() for shape in found.values()) == 1_370_048_512
