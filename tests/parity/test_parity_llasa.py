"""LLaSA's prompt and what is read of its checkpoint, against the official chat template, tokenizer and model."""

import re

import pytest
import torch
from torch import Tensor

from paretone.models.families.language_network import TokenModel
from paretone.models.files.checkpoints import loaded_strictly
from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.llasa.tokenizer import DATE, LlasaTokenizer, code_token, rendered
from paretone.models.llasa.xcodec2 import Quantiser, XCodec2Config, XCodec2Decoder
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.sampling.autoregressive import Request, decode
from paretone.sampling.tokens import Greedy, Nucleus, Uniforms
from tests.parity.fixtures import Fixture, alternating, assert_close, assert_near, cases, fixtures
from tests.parity.test_parity_cosyvoice2_language import KINDS, models

pytest.importorskip("tokenizers")
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
    found = rendered(said["text"]).replace(DATE, date_of(said))
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


PROBABILITY = 1e-6
CARD = {"card": Nucleus(0.8, 50), "card_2025_05": Nucleus(0.9, 50, 0.95)}


def transformer_of(fixture: Fixture) -> tuple[CausalTransformer, Tensor]:
    """The transformer, and the table that is its embedding and its head."""
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


@pytest.mark.parametrize(
    ("fixture", "case", "kind"),
    alternating(cases(LANGUAGE_MODELS, lambda fixture: fixture.description["greedy_cases"]), KINDS),
)
def test_parity_llasa_greedy(fixture: Fixture, kind: str, case: str) -> None:
    said = fixture.description["greedy_cases"][case]
    transformer, table = transformer_of(fixture)
    ids = spoken(fixture)
    model = TokenModel(transformer, table[ids], table[ids], codes=len(ids) - 1)
    model = model.optimised() if kind == "optimised" else model
    sequence = fixture[f"{case}.sequence"].tolist()
    prompt = sequence[: len(sequence) - said["new_tokens"]]
    length = len(prompt)
    request = Request(table[prompt][None], torch.arange(length), length, 0, said["max_length"] - length)
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


TOLERANCE = 1e-5


def build(fixture: Fixture) -> XCodec2Decoder:
    shapes = {name: tuple(value.shape) for name, value in fixture.weights.items()}
    config = XCodec2Config.from_shapes(shapes, fixture.name, fixture.description["config"]["heads"])
    return loaded_strictly(lambda: XCodec2Decoder(config), fixture.weights, fixture.name)


decoders = pytest.mark.parametrize(
    "fixture", fixtures("ar", lambda description: "CodecDecoderVocos" in description.get("source", ""))
)


@decoders
def test_parity_xcodec2_decode_every_stage(fixture: Fixture) -> None:
    decoder = build(fixture)
    backbone, codes = decoder.generator.backbone, fixture["vq_code"][:, 0]
    with torch.inference_mode():
        latent = decoder.generator.quantizer(codes)
        entered = decoder.fc_post_a(latent)
        embedded = backbone.embed(entered.transpose(1, 2))
        convolved = backbone.prior_net(embedded)
        found: dict[str, Tensor] = {
            "fsq_codes": Quantiser.values(codes)[None],
            "fsq_out": latent,
            "fc_post": entered,
            "embed": embedded,
            "prior_net": convolved,
            "block0": backbone.transformers[0](convolved.transpose(1, 2)),
            "backbone_out": backbone(entered),
            "wav": decoder.decode(codes)[:, None],
        }
        found["quant_out"] = decoder.generator.quantizer(fixture["quant_idx"][..., 0].long())
    for name, value in found.items():
        assert_close(value, fixture[name], TOLERANCE, name)
