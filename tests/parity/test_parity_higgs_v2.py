"""Higgs Audio v2's codec, against the official class with a small random configuration and the official ratios."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paretone.models.omnivoice.checkpoint import OmniVoiceFolder, hubert
from paretone.models.omnivoice.higgs import RELEASED, HiggsConfig, HiggsDecoder, HiggsEncoder, WindowedHiggs, reach
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision
from tests.parity.test_parity_keys import released

codecs = pytest.mark.parametrize("fixture", fixtures("ar", lambda description: "num_quantizers" in description))
TOLERANCE = 1e-5
AUDIO = 5e-5
"""Of speech, which is up to 1.4 loud and has come through all blocks: found were 5e-6 to 1.7e-5, by the processor's
instructions."""


def decoder_of(fixture: Fixture) -> HiggsDecoder:
    full_precision()
    decoder = HiggsDecoder(HiggsConfig.read(fixture.description["config"]))
    weights = {name: fixture.weights[name] for name in decoder.state_dict()}
    decoder.load_state_dict(weights)
    return decoder.eval()


@codecs
@torch.inference_mode()
def test_parity_higgs_v2_decoding(fixture: Fixture) -> None:
    decoder, codes = decoder_of(fixture), fixture["audio_codes"]
    config = decoder.config
    said = [fixture.description[name] for name in ("num_quantizers", "frame_rate", "hop_length")]
    assert [config.codebooks, config.frame_rate, config.hop] == said
    summed = decoder.summed(codes)
    assert_close(summed, fixture["decode.quantized"], TOLERANCE, "the sum of the codes")
    latent = decoder.fc2(summed.transpose(1, 2)).transpose(1, 2)
    assert_close(latent, fixture["decode.acoustic_in"], TOLERANCE, "what the decoder is given")
    hidden = decoder.acoustic_decoder.conv1(latent[:1])
    for number in range(sum(name.startswith("decode.block") for name in fixture.names)):
        hidden = decoder.acoustic_decoder.block[number](hidden)
        assert_close(hidden, fixture[f"decode.block{number}_out_item0"], 10 * TOLERANCE, f"block {number}")
    assert_close(decoder(codes)[:, None], fixture["decode.audio_values"], AUDIO, "the speech")


@codecs
@pytest.mark.parametrize("sizes", [(12, 12, 12, 14), (25, 25), (1,) * 50, (32, 18)])
@torch.inference_mode()
def test_parity_higgs_v2_windows_are_exact(fixture: Fixture, sizes: tuple[int, ...]) -> None:
    decoder = decoder_of(fixture)
    config = decoder.config
    entries = fixture.description["config"]["codebook_size"]
    codes = torch.randint(entries, (config.codebooks, sum(sizes)), generator=torch.Generator().manual_seed(1))
    windowed = WindowedHiggs(decoder)
    _, after = reach(config.ratios)
    pieces = [windowed.push(part) for part in codes.split(list(sizes), dim=1)]
    assert sum(map(len, pieces)) == (sum(sizes) - after) * config.hop
    streamed = np.concatenate([*pieces, windowed.finish()])
    whole = windowed.whole(codes).samples
    assert streamed.shape == whole.shape == (sum(sizes) * config.hop,)
    assert np.abs(streamed - whole).max() <= AUDIO


@codecs
@torch.inference_mode()
def test_parity_higgs_v2_codes_reach_as_far_as_is_said(fixture: Fixture) -> None:
    """A changed frame changes what the official ratios let it, no more and not much less."""
    decoder = decoder_of(fixture).double()
    before, after = reach(decoder.config.ratios)
    context = fixture.description["decode_context"]
    hop = decoder.config.hop
    assert before == -(-context["left_samples"] // hop)
    assert after == -(-context["right_samples"] // hop)
    codes = torch.zeros(1, decoder.config.codebooks, 60, dtype=torch.long)
    changed = codes.clone()
    changed[:, :, 30] = 7
    different = (decoder(codes) - decoder(changed))[0].abs().view(60, hop).amax(1) > 0
    # Sound before frame 30 depends on it within the look-ahead.
    assert different.nonzero().flatten().tolist() == list(range(30 - after, 30 + before + 1))


@codecs
@torch.inference_mode()
def test_parity_higgs_v2_masks_add_nothing(fixture: Fixture) -> None:
    decoder, codes = decoder_of(fixture), fixture["audio_codes"].clone()
    codes[:, 2:] = fixture.description["config"]["codebook_size"]
    parts = [decoder.quantizer.quantizers[number](codes[:, number]) for number in range(2)]
    assert torch.equal(decoder.summed(codes), sum(parts).transpose(1, 2))


@codecs
@torch.inference_mode()
def test_parity_higgs_v2_encoding(fixture: Fixture) -> None:
    pytest.importorskip("transformers")
    full_precision()
    config = HiggsConfig.read(fixture.description["config"])
    encoder = HiggsEncoder(config, hubert(config)).eval()
    encoder.load_state_dict({name: fixture.weights[name] for name in encoder.state_dict()})
    samples = fixture["encode.wav"][0]
    semantic = encoder.semantic(samples)
    assert_close(semantic.transpose(1, 2), fixture["encode.semantic_features"], 1e-4, "what HuBERT hears")
    assert_close(encoder.encoder_semantic(semantic), fixture["encode.encoder_semantic"], 1e-4, "the semantic part")
    assert_close(encoder.acoustic_encoder(samples[:, None]), fixture["encode.acoustic"], 1e-2, "the acoustic part")
    assert_close(encoder.embedded(samples), fixture["encode.embeddings"], 1e-2, "what is quantised")
    assert torch.equal(encoder(samples), fixture["encode.audio_codes"])


def test_parity_higgs_v2_names_and_shapes_of_the_release() -> None:
    pytest.importorskip("transformers")
    names = released("OmniVoice_audio_tokenizer")
    with torch.device("meta"):
        parts = HiggsDecoder(RELEASED), HiggsEncoder(RELEASED, hubert(RELEASED))
    found = {name: tuple(value.shape) for part in parts for name, value in part.state_dict().items()}
    assert found.items() <= names.items()
    assert sum(one.numel() for one in parts[0].parameters()) > 20_000_000
    assert all(OmniVoiceFolder._is_known(name) for name in names.keys() - found.keys())
    assert not OmniVoiceFolder._is_known("acoustic_model.conv1.weight")
