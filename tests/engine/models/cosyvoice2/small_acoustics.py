"""A flow and a vocoder of CosyVoice 2's kind with random weights, small enough for tests."""

from __future__ import annotations

import torch

from paretone.models.cosyvoice2.config import EncoderConfig, EstimatorConfig, FlowConfig, HiftConfig
from paretone.models.cosyvoice2.hift import Hift
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, TokenToMel

CHUNK = 5
TOKENS = 40


def small_flow() -> TokenToMel:
    torch.manual_seed(1)
    encoder = EncoderConfig(width=16, heads=2, feed_forward=32, layers=2, upsampled_layers=1, chunk=CHUNK)
    estimator = EstimatorConfig(channels=16, heads=2, head_width=8, blocks=1, middle_stages=1)
    config = FlowConfig(tokens=TOKENS, speaker_width=6, bands=8, encoder=encoder, estimator=estimator, steps=3)
    model = TokenToMel(config)
    for layer in (*model.encoder.encoders, *model.encoder.up_encoders):
        torch.nn.init.normal_(layer.self_attn.pos_bias_u)
        torch.nn.init.normal_(layer.self_attn.pos_bias_v)
    return model.eval().requires_grad_(False)


def small_vocoder() -> Hift:
    torch.manual_seed(2)
    vocoder = Hift(HiftConfig(bands=8, channels=16, pitch_channels=8))
    torch.nn.init.constant_(vocoder.f0_predictor.classifier.bias, 120.0)
    torch.nn.init.normal_(vocoder.f0_predictor.classifier.weight, std=60.0)
    return vocoder.eval().requires_grad_(False)


def small_prompt(tokens: int = 7) -> AcousticPrompt:
    generator = torch.Generator().manual_seed(3)
    return AcousticPrompt(
        torch.randint(0, TOKENS, (1, tokens), generator=generator),
        torch.randn(1, 2 * tokens, 8, generator=generator),
        torch.randn(1, 6, generator=generator),
    )


def small_speech(tokens: int) -> list[int]:
    return torch.randint(0, TOKENS, (tokens,), generator=torch.Generator().manual_seed(4)).tolist()
