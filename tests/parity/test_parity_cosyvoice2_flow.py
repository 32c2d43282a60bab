"""CosyVoice 2's token-to-mel flow against the official classes, whole and chunk by chunk."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from paretone.models.cosyvoice2.config import EncoderConfig, EstimatorConfig, FlowConfig
from paretone.models.cosyvoice2.flow_networks import Memory, conditions
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, MelStream, TokenToMel
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision
from tests.parity.test_parity_keys import released

TOLERANCE = 1e-4
CASES = {
    "offline": {"chunked": False, "final": True},
    "stream_mid": {"chunked": True, "final": False},
    "stream_final_chunkmask": {"chunked": True, "final": True},
    "nostream_mid": {"chunked": False, "final": False},
}


def flow_config(description: dict) -> FlowConfig:
    encoder, estimator, flow = description["encoder"], description["estimator"], description["flow"]
    return FlowConfig(
        tokens=flow["vocab_size"],
        speaker_width=flow["spk_embed_dim"],
        bands=flow["output_size"],
        encoder=EncoderConfig(
            width=encoder["output_size"],
            heads=encoder["attention_heads"],
            feed_forward=encoder["linear_units"],
            layers=encoder["num_blocks"],
            upsampled_layers=encoder["up_blocks"],
            look_ahead=flow["pre_lookahead_len"],
            chunk=encoder["static_chunk_size"],
        ),
        estimator=EstimatorConfig(
            channels=estimator["channels"][0],
            heads=estimator["num_heads"],
            head_width=estimator["attention_head_dim"],
            blocks=estimator["n_blocks"],
            middle_stages=estimator["num_mid_blocks"],
        ),
        steps=description["cfm"]["n_timesteps"],
        guidance=description["cfm"]["inference_cfg_rate"],
    )


def build(fixture: Fixture) -> TokenToMel:
    model = TokenToMel(flow_config(fixture.description))
    model.load_official(fixture.weights, fixture.name)
    return model.eval().requires_grad_(False)


def is_flow(description: dict) -> bool:
    return "cfm" in description


def prompt_of(fixture: Fixture) -> AcousticPrompt:
    return AcousticPrompt(fixture["prompt_token"], fixture["prompt_feat"], fixture["embedding"])


def decoded(model: TokenToMel, fixture: Fixture, chunked: bool, final: bool) -> Tensor:
    stream, tokens = MelStream(model, prompt_of(fixture), chunked), fixture["token"][0].tolist()
    if not final:
        return stream.unfinished(tokens)
    return torch.cat([stream.push(tokens), stream.finish()], dim=-1)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fixture", fixtures("ar", is_flow))
def test_parity_cosyvoice2_flow_mel(fixture: Fixture, case: str) -> None:
    full_precision()
    assert_close(decoded(build(fixture), fixture, **CASES[case]), fixture[f"{case}.feat"], TOLERANCE, case)


@pytest.mark.parametrize("fixture", fixtures("ar", is_flow))
def test_parity_cosyvoice2_flow_without_prompt(fixture: Fixture) -> None:
    full_precision()
    prompt = AcousticPrompt(fixture["prompt_token"][:, :0], fixture["prompt_feat"][:, :0], fixture["embedding"])
    stream = MelStream(build(fixture), prompt, chunked=False)
    assert stream.push(fixture["token"][0].tolist()).shape[-1] == 0
    assert_close(stream.finish(), fixture["noprompt.feat"], TOLERANCE, "noprompt")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fixture", fixtures("ar", is_flow))
def test_parity_cosyvoice2_flow_encoder_and_every_step(fixture: Fixture, case: str) -> None:
    full_precision()
    model, (chunked, final) = build(fixture), CASES[case].values()
    tokens = torch.cat([fixture["prompt_token"], fixture["token"]], dim=1)[0].tolist()
    kept = len(tokens) if final else len(tokens) - model.config.encoder.look_ahead
    memory, ahead = Memory(), None if final else model.embed(tokens[kept:])
    hidden = model.encoder(model.embed(tokens[:kept]), ahead, 0, chunked, memory)
    assert_close(hidden, fixture[f"{case}.encoder_out"], TOLERANCE, "encoder_out")
    encoded = model.encoder_proj(hidden).mT
    assert_close(encoded, fixture[f"{case}.mu"], TOLERANCE, "mu")

    speaker = model.speaker(fixture["embedding"])
    assert_close(speaker, fixture["spks"], TOLERANCE, "spks")
    stream = MelStream(model, prompt_of(fixture), chunked)
    assert_close(stream.times, fixture["t_per_step"], 1e-7, "t_per_step")
    states = fixture[f"{case}.x_in_per_step"]
    given = conditions(encoded, speaker, fixture["cond"][..., : 2 * kept])
    table = model.estimator.time_table(fixture["t_per_step"])
    for step, state in enumerate(states):
        velocity = model.estimator(state[None], given, table[step], 0, chunked, Memory())
        if (name := f"{case}.velocity_step{step}") in fixture:
            assert_close(velocity, fixture[name], TOLERANCE, name)
        if step + 1 < len(states):
            guided = (1 + model.config.guidance) * velocity[0] - model.config.guidance * velocity[1]
            length = stream.times[step + 1] - stream.times[step]
            assert_close(state + length * guided, states[step + 1], TOLERANCE, f"state of step {step + 1}")


@pytest.mark.parametrize("fixture", fixtures("ar", is_flow))
def test_parity_cosyvoice2_flow_noise(fixture: Fixture) -> None:
    model, recorded = build(fixture), fixture["rand_noise_slice"]
    assert_close(model.noise[..., : recorded.shape[-1]], recorded, 1e-6, "noise")


def test_parity_cosyvoice2_flow_names_and_shapes() -> None:
    with torch.device("meta"):
        model = TokenToMel()
    assert {name: tuple(value.shape) for name, value in model.state_dict().items()} == released("CosyVoice2_flow")
    assert sum(one.numel() for one in model.parameters()) == 112_549_360
