"""XCodec2's decoder against the official package, with the rotary embedding that ours leaves out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from paretone.models.files.checkpoints import load_strictly
from paretone.models.llasa.xcodec2 import Quantiser, XCodec2Config, XCodec2Decoder
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision
from tests.parity.test_parity_keys import released

TOLERANCE = 1e-5


def build(fixture: Fixture) -> XCodec2Decoder:
    shapes = {name: tuple(value.shape) for name, value in fixture.weights.items()}
    decoder = XCodec2Decoder(XCodec2Config.from_shapes(shapes, fixture.name, fixture.description["config"]["heads"]))
    load_strictly(decoder, fixture.weights, fixture.name)
    return decoder.eval().requires_grad_(False)


decoders = pytest.mark.parametrize(
    "fixture", fixtures("ar", lambda description: "CodecDecoderVocos" in description.get("source", ""))
)


@decoders
def test_parity_xcodec2_decode_every_stage(fixture: Fixture) -> None:
    full_precision()
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


@decoders
def test_parity_xcodec2_decode_is_not_causal(fixture: Fixture) -> None:
    decoder, codes = build(fixture), fixture["vq_code"][:, 0]
    hop = decoder.samples_per_code
    prefix = decoder.decode(codes[:, : codes.shape[1] // 2])
    difference = (prefix[:, :hop] - decoder.decode(codes)[:, :hop]).abs().max().item()
    assert difference > 1e-3  # at the very beginning, by what comes only half a clip later


def test_parity_xcodec2_decode_names_and_shapes_of_the_release() -> None:
    expected = released("XCodec2_decoder")
    config = XCodec2Config.from_shapes(expected, "the release")
    assert config == XCodec2Config()
    with torch.device("meta"):
        decoder = XCodec2Decoder(config)
    assert {name: tuple(value.shape) for name, value in decoder.state_dict().items()} == expected
    assert round(sum(one.numel() for one in decoder.parameters()) / 1e6, 1) == 187.0
