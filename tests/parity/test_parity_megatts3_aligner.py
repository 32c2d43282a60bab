"""MegaTTS 3's aligner against the official code: features, scores and the tokens of greedy decoding."""

from __future__ import annotations

import pytest
import torch

from paretone.models.files.checkpoints import load_strictly
from paretone.models.megatts3.aligner import END, LONGEST, START, Aligner, AlignerConfig
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision
from tests.parity.test_parity_keys import released

TOLERANCE = 1e-5


def is_aligner(description: dict) -> bool:
    return "n_mels" in description.get("config", {})


def config_of(sizes: dict) -> AlignerConfig:
    return AlignerConfig(
        bands=sizes["n_mels"],
        width=sizes["n_state"],
        heads=sizes["n_head"],
        layers=sizes["n_layer"],
        places=sizes["n_ctx"],
        tokens=sizes["n_text_ctx"],
        vocabulary=sizes["n_vocab"],
    )


def build(fixture: Fixture) -> Aligner:
    model = Aligner(config_of(fixture.description["config"]))
    load_strictly(model, fixture.weights, fixture.name)
    return model.eval().requires_grad_(False)


def greedy_without_cache(model: Aligner, features: torch.Tensor, longest: int) -> list[int]:
    """As upstream: the whole sequence is evaluated again for every token."""
    found = [START]
    while len(found) <= longest and found[-1] != END:
        scores = model.decoder(torch.tensor([found]), model.decoder.begin(features, len(found)))
        found.append(int(scores[0, -1].argmax()))
    return found


@pytest.mark.parametrize("fixture", fixtures("dit", is_aligner))
def test_parity_aligner(fixture: Fixture) -> None:
    full_precision()
    model, tokens = build(fixture), fixture["tokens"]
    with torch.inference_mode():
        features = model.encoder(fixture["mel"])
        assert_close(features, fixture["audio_features"], TOLERANCE, "audio features")
        longest = tokens.shape[1] - 1
        scores = model.decoder(tokens[:, :longest], model.decoder.begin(features, longest))
        assert_close(scores, fixture["logits_last"], TOLERANCE, "scores")
        assert model.tokens(fixture["mel"], longest) == tokens[0].tolist()
        # Further than the fixture goes, against the loop that evaluates everything again.
        further = model.config.tokens
        assert model.tokens(fixture["mel"], further) == greedy_without_cache(model, features, further)


@pytest.mark.parametrize("fixture", fixtures("dit", is_aligner))
def test_parity_aligner_sizes_of_the_release(fixture: Fixture) -> None:
    assert config_of(fixture.description["released"]) == AlignerConfig()
    assert LONGEST == 768


def test_parity_aligner_names_and_shapes() -> None:
    with torch.device("meta"):
        model = Aligner(AlignerConfig())
    weights = model.state_dict()
    assert {name: tuple(value.shape) for name, value in weights.items()} == released("MegaTTS3_aligner")
    assert AlignerConfig.of_weights(weights, "the release") == AlignerConfig()
