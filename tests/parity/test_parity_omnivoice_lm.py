"""OmniVoice's network and its iterative demasking, against the official class with a small random configuration."""

from __future__ import annotations

import pytest
import torch

from engine.models.masked_network import MaskedConfig, MaskedNetwork
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision
from tests.parity.test_parity_keys import released

masked_models = pytest.mark.parametrize(
    "fixture", fixtures("ar", lambda description: description.get("config", {}).get("model_type") == "omnivoice")
)
TOLERANCE = 1e-4
RELEASED = {
    "model_type": "omnivoice",
    "audio_vocab_size": 1025,
    "audio_mask_id": 1024,
    "num_audio_codebook": 8,
    "llm_config": {
        "model_type": "qwen3",
        "vocab_size": 151676,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
    },
}


def network_of(fixture: Fixture) -> MaskedNetwork:
    full_precision()
    network = MaskedNetwork(MaskedConfig.read(fixture.description["config"])).eval()
    network.load_state_dict(fixture.weights, strict=True)
    return network


def test_parity_omnivoice_lm_names_and_shapes_of_the_release() -> None:
    with torch.device("meta"):
        network = MaskedNetwork(MaskedConfig.read(RELEASED))
    found = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    assert found == released("OmniVoice")
    assert sum(one.numel() for one in network.parameters()) == 612_577_280


@masked_models
@torch.inference_mode()
def test_parity_omnivoice_lm_network(fixture: Fixture) -> None:
    network = network_of(fixture)
    audio = fixture["train.audio_mask"][..., None]
    codes = torch.where(fixture["train.audio_mask"][:, None], fixture["train.input_ids"], 0)
    embedded = torch.where(audio, network.audio(codes), network.text(fixture["train.input_ids"][:, 0]))
    assert_close(embedded, fixture["train.inputs_embeds"], TOLERANCE, "the embedding")
    hidden = network.llm(embedded, mask=fixture["train.attention_mask"].bool())
    assert_close(hidden, fixture["train.last_hidden_state"], TOLERANCE, "the last hidden state")
    shortest = int(fixture["train.attention_mask"][:, 0, 0].sum(-1).min())
    scores = network.scores(hidden[:, shortest - 3 : shortest])
    assert_close(scores, fixture["train.logits_last3"], TOLERANCE, "the scores")


@masked_models
@torch.inference_mode()
def test_parity_omnivoice_lm_first_scores_of_both_branches(fixture: Fixture) -> None:
    network = network_of(fixture)
    ids, audio = fixture["clone.batch_input_ids_step0"], fixture["clone.audio_mask"]
    frames = fixture["clone.item0.final"].shape[1]
    text = ids[:1, 0][:, ~audio[0]]
    scores = network(text, ids[:1][:, :, audio[0]], targets=frames)
    assert_close(scores[:, :, :3], fixture["clone.item0.step0.cond_logits_pos0_3"][None], TOLERANCE, "the scores")
    alone = network(text[:, :0], ids[1:, :, :frames], targets=frames)
    assert_close(alone[:, :, :3], fixture["clone.item0.step0.uncond_logits_pos0_3"][None], TOLERANCE, "without text")
