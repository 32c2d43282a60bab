"""Inputs of CosyVoice 2's language model for text, prompt and training sentences, against the official code."""

from __future__ import annotations

import re

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from paretone.models.cosyvoice2.language_model import (
    END,
    STOPS,
    CosyNames,
    LanguageModel,
    PromptIds,
    Ratios,
    official_shapes,
)
from paretone.models.families.training_layout import IGNORED
from paretone.models.networks.causal import CausalConfig
from paretone.training.spoken_tokens import collate_rows
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision
from tests.parity.test_parity_keys import released

EMBEDDED, LOSS = 1e-6, 1e-4


def is_language_model(description: dict) -> bool:
    return {"qwen2_config", "qwen2lm", "bistream"} <= set(description)


LANGUAGE_MODELS = fixtures("ar", is_language_model)
prompts = pytest.mark.parametrize("fixture", LANGUAGE_MODELS)


def ratios_of(fixture: Fixture, case: str) -> Ratios:
    """Of speech tokens to text tokens, as far as the words about the case give them."""
    said = fixture.description["cases"][case]["desc"]
    least, most = (re.search(rf"{which} ratio ([\d.]+)", said) for which in ("min", "max"))
    usual = Ratios()
    return Ratios(float(least[1]) if least else usual.minimum, float(most[1]) if most else usual.maximum)


def tensors(fixture: Fixture) -> dict[str, Tensor]:
    return load_file(fixture.folder / f"{fixture.name}.io.safetensors")


def model_of(fixture: Fixture) -> LanguageModel:
    full_precision()
    weights = load_file(fixture.folder / f"{fixture.name}.weights.safetensors")
    config = CausalConfig.read(fixture.description["qwen2_config"])
    # The fixture leaves out the head that is tied to the text's table.
    weights.setdefault("llm.model.lm_head.weight", weights["llm.model.model.embed_tokens.weight"])
    return LanguageModel.from_official(weights, config, fixture.name)


def ids(golden: dict[str, Tensor], name: str) -> tuple[int, ...]:
    return tuple(golden[name].flatten().tolist())


@prompts
def test_parity_cosyvoice2_lm_ids(fixture: Fixture) -> None:
    said, model = fixture.description["qwen2lm"], model_of(fixture)
    assert model.codes == said["speech_token_size"]
    assert model.codes + END == said["eos"]
    assert list(model.tokens.stops) == said["stop_token_ids"] and len(model.tokens.stops) == STOPS


@prompts
def test_parity_cosyvoice2_lm_prompt(fixture: Fixture) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    prompt = PromptIds(ids(golden, "prompt_text"), ids(golden, "prompt_speech_token"))
    request = model.request(prompt, ids(golden, "text"))
    assert_close(request.embedded, golden["lm_input"], EMBEDDED, "lm_input")
    with torch.inference_mode():
        hidden = model.tokens.transformer(request.embedded, positions=request.positions)
    assert_close(hidden, golden["prefill_hidden"], LOSS, "prefill_hidden")


@prompts
@pytest.mark.parametrize("case", ["maxlen", "ratio", "noprompt"])
def test_parity_cosyvoice2_lm_lengths(fixture: Fixture, case: str) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    request = model.request(PromptIds(), ids(golden, "text"), ratios_of(fixture, case))
    assert request.maximum == fixture.description["cases"][case]["n_tokens"]
    assert model.request(PromptIds(), ids(golden, "text")).minimum == len(golden["eos_minlen.tokens"])


def test_parity_cosyvoice2_lm_names_and_shapes() -> None:
    config = CausalConfig(896, 24, 14, 2, 64, 4864, 1e-6, 1e6, biased=True)
    assert official_shapes(config, 151936, 6561 + STOPS) == released("CosyVoice2_llm")


@prompts
def test_parity_cosyvoice2_lm_training_rows(fixture: Fixture) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    names = CosyNames(len(model.text), len(model.marks))
    rows = []
    for number in range(len(golden["train.text_token"])):
        text, speech = (
            golden[f"train.{kind}_token"][number, : golden[f"train.{kind}_token_len"][number]].tolist()
            for kind in ("text", "speech")
        )
        rows.append(names.row(text, speech, model.codes))
    batch = collate_rows(rows)
    assert [len(row.labels) for row in rows] == golden["train.unistream.lm_input_len"].tolist()
    # Upstream marks what is not predicted, and embeddings after the end of a row, by -1.
    assert torch.equal(batch.labels.masked_fill(~batch.predicting, -1), golden["train.unistream.lm_target"])
    embedded = F.embedding(batch.ids, torch.cat([model.text, model.marks, model.tokens.embedding]))
    filled = torch.where(batch.heard[..., None], embedded, -1.0)
    assert_close(filled, golden["train.unistream.lm_input"], EMBEDDED, "lm_input")
    with torch.inference_mode():
        logits = model.tokens.logits(model.tokens.transformer(embedded))
    loss = F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=IGNORED)
    assert_close(loss[None], golden["train.unistream.loss"], LOSS, "loss")
    right = (logits.argmax(-1) == batch.labels)[batch.predicting].float().mean()
    assert_close(right[None], golden["train.unistream.acc"], LOSS, "acc")
