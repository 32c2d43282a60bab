"""How CosyVoice 2's language model is given text, prompt and training sentences, against the official code."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from engine.models.causal import CausalConfig
from engine.models.cosyvoice2.bistream import SPEECH_PART, TEXT_PART, bistream
from engine.models.cosyvoice2.language_model import END, FILL, STOPS, LanguageModel, PromptIds, Ratios, official_shapes
from engine.models.cosyvoice2.training_rows import IGNORED, batch, can_take_turns, row_in_turns, whole_row
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision
from tests.parity.test_parity_keys import released

EMBEDDED, LOSS = 1e-6, 1e-4


def is_language_model(description: dict) -> bool:
    return {"qwen2_config", "qwen2lm", "bistream"} <= set(description)


prompts = pytest.mark.parametrize("fixture", fixtures("ar", is_language_model))


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
    assert (model.codes + END, model.codes + FILL) == (said["eos"], said["fill"])
    assert list(model.tokens.stops) == said["stop_token_ids"] and len(model.tokens.stops) == STOPS
    assert said["mix_ratio"] == [TEXT_PART, SPEECH_PART]


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
@pytest.mark.parametrize(
    ("case", "ratios"), [("maxlen", Ratios()), ("ratio", Ratios(1, 3.5)), ("noprompt", Ratios(2, 5))]
)
def test_parity_cosyvoice2_lm_lengths(fixture: Fixture, case: str, ratios: Ratios) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    request = model.request(PromptIds(), ids(golden, "text"), ratios)
    assert request.maximum == fixture.description["cases"][case]["n_tokens"]
    assert model.request(PromptIds(), ids(golden, "text")).minimum == len(golden["eos_minlen.tokens"])


def test_parity_cosyvoice2_lm_names_and_shapes() -> None:
    config = CausalConfig(896, 24, 14, 2, 64, 4864, 1e-6, 1e6, biased=True)
    assert official_shapes(config, 151936, 6561 + STOPS) == released("CosyVoice2_llm")


class GreedyUntil:
    """The likeliest id, but the end once ``length`` tokens are there: the fixture's sampler."""

    def __init__(self, end: int, length: int) -> None:
        self._end, self._length = end, length

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        chosen = logits[-1].argmax() if len(history) < self._length else torch.tensor(self._end)
        return F.one_hot(chosen, logits.shape[-1]).float()[None]


@prompts
def test_parity_cosyvoice2_lm_bistream(fixture: Fixture) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    model.tokens.bias += golden["bistream.llm_decoder_bias_delta"]
    text, parts = list(ids(golden, "bistream.text")), []
    for length in fixture.description["bistream"]["text_chunk_lengths"]:
        parts.append(text[:length])
        del text[:length]
    prompt = PromptIds(ids(golden, "bistream.prompt_text"), ids(golden, "bistream.prompt_speech_token"))
    sampler = GreedyUntil(model.codes + END, 66)
    assert list(bistream(model, prompt, parts, sampler, lambda: 0.5)) == golden["bistream.tokens"].tolist()


@prompts
@pytest.mark.parametrize("layout", ["unistream", "bistream"])
def test_parity_cosyvoice2_lm_training_rows(fixture: Fixture, layout: str) -> None:
    golden, model = tensors(fixture), model_of(fixture)
    rows = []
    for number in range(len(golden["train.text_token"])):
        text, speech = (
            golden[f"train.{kind}_token"][number, : golden[f"train.{kind}_token_len"][number]].tolist()
            for kind in ("text", "speech")
        )
        in_turns = layout == "bistream" and can_take_turns(text, speech)
        rows.append((row_in_turns if in_turns else whole_row)(model, text, speech))
    embedded, targets = batch(rows)
    assert [len(row.targets) for row in rows] == golden[f"train.{layout}.lm_input_len"].tolist()
    assert torch.equal(targets, golden[f"train.{layout}.lm_target"])
    assert_close(embedded, golden[f"train.{layout}.lm_input"], EMBEDDED, "lm_input")
    with torch.inference_mode():
        logits = model.tokens.logits(model.tokens.transformer(embedded))
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
    assert_close(loss[None], golden[f"train.{layout}.loss"], LOSS, "loss")
    right = (logits.argmax(-1) == targets)[targets != IGNORED].float().mean()
    assert_close(right[None], golden[f"train.{layout}.acc"], LOSS, "acc")
