"""CosyVoice 3's flow against the official model: estimator, steps, streaming, training."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from paretone.models.cosyvoice2.config import FRAMES_PER_TOKEN
from paretone.models.cosyvoice2.flow_networks import conditions
from paretone.models.cosyvoice2.mel_flow import MelStream
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt
from paretone.models.cosyvoice3.config import ESTIMATOR, FlowConfig
from paretone.models.cosyvoice3.flow import CausalDiT, TokenToMel
from paretone.models.files.checkpoints import loaded_strictly
from paretone.models.networks.incremental import Memory
from tests.parity.fixtures import Fixture, assert_close, fixtures, full_precision

TOLERANCE = 1e-4
CASES = {
    "offline": {"chunked": False, "final": True},
    "stream_mid": {"chunked": True, "final": False},
    "stream_final_chunkmask": {"chunked": True, "final": True},
    "nostream_mid": {"chunked": False, "final": False},
}


def flow_config(description: dict) -> FlowConfig:
    estimator, ahead, flow = description["estimator"], description["pre_lookahead_layer"], description["flow"]
    return FlowConfig(
        tokens=flow["vocab_size"],
        speaker_width=flow["spk_embed_dim"],
        bands=flow["output_size"],
        steps=description["cfm"]["n_timesteps"],
        guidance=description["cfm"]["inference_cfg_rate"],
        estimator=replace(ESTIMATOR, **{name: estimator[name] for name in ("dim", "depth", "heads", "dim_head")}),
        look_ahead_channels=ahead["channels"],
        look_ahead=ahead["pre_lookahead_len"],
        chunk=estimator["static_chunk_size"] // FRAMES_PER_TOKEN,
    )


def build_flow(fixture: Fixture) -> TokenToMel:
    config = flow_config(fixture.description)
    return loaded_strictly(lambda: TokenToMel(config), fixture.weights, fixture.name)


def is_flow(description: dict) -> bool:
    return "pre_lookahead_layer" in description


flows = pytest.mark.parametrize("fixture", fixtures("cosyvoice3", is_flow))


def prompt_of(fixture: Fixture) -> AcousticPrompt:
    return AcousticPrompt(fixture["prompt_token"], fixture["prompt_feat"], fixture["embedding"])


def closing() -> Memory:
    memory = Memory()
    memory.closing = True
    return memory


@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "stream"])
@flows
def test_parity_cosyvoice3_estimator_at_several_lengths(fixture: Fixture, chunked: bool) -> None:
    full_precision()
    estimator: CausalDiT = build_flow(fixture).estimator
    for length in map(str, fixture.description["estimator_lengths"]):
        given = {name: fixture[f"dit{length}.{name}"] for name in ("x", "mu", "cond", "spks", "t", "mask")}
        frames = given["x"].shape[-1]
        together = torch.cat([given["mu"], given["spks"][..., None].expand(-1, -1, frames), given["cond"]], dim=1)
        within = given["mask"][:, 0].bool()
        found = estimator.at_once(given["x"], together, given["t"], within, chunked)
        expected = fixture[f"dit{length}.{'stream' if chunked else 'whole'}"]
        valid = within[:, None].expand_as(found)
        assert_close(found[valid], expected[valid], TOLERANCE, f"velocity of {length} frames")


@flows
def test_parity_cosyvoice3_look_ahead(fixture: Fixture) -> None:
    full_precision()
    model = build_flow(fixture)
    tokens = torch.cat([fixture["prompt_token"], fixture["token"]], dim=1)[0].tolist()
    kept = len(tokens) - model.config.look_ahead
    whole = model.encode(tokens, (), 0, True, closing())[..., ::FRAMES_PER_TOKEN].mT
    assert_close(whole, fixture["ahead_final"], TOLERANCE, "ahead_final")
    more = model.encode(tokens[:kept], tokens[kept:], 0, True, closing())[..., ::FRAMES_PER_TOKEN].mT
    assert_close(more, fixture["ahead_more"], TOLERANCE, "ahead_more")


@pytest.mark.parametrize("case", CASES)
@flows
def test_parity_cosyvoice3_flow_every_step(fixture: Fixture, case: str) -> None:
    full_precision()
    model, (chunked, final) = build_flow(fixture), CASES[case].values()
    tokens = torch.cat([fixture["prompt_token"], fixture["token"]], dim=1)[0].tolist()
    kept = len(tokens) if final else len(tokens) - model.config.look_ahead
    encoded = model.encode(tokens[:kept], tokens[kept:], 0, chunked, closing())
    assert_close(encoded, fixture[f"{case}.mu"], TOLERANCE, "mu")
    speaker = model.speaker(fixture["embedding"])
    assert_close(speaker, fixture["spks"], TOLERANCE, "spks")
    stream = MelStream(model, prompt_of(fixture), chunked)
    times = torch.from_numpy(stream.script.times)
    assert_close(times[:-1], fixture["t_per_step"], 1e-7, "t_per_step")
    given = conditions(encoded, speaker, fixture["cond"][..., : 2 * kept])
    states, table = fixture[f"{case}.x_in_per_step"], model.estimator.time_table(fixture["t_per_step"])
    assert_close(model.noise[..., : states.shape[-1]], states[:1], 1e-6, "noise")
    for step, state in enumerate(states):
        velocity = model.estimator(state[None], given, table[step], 0, chunked, closing())
        if (name := f"{case}.velocity_step{step}") in fixture:
            assert_close(velocity, fixture[name], TOLERANCE, name)
        if step + 1 < len(states):
            guided = (1 + model.config.guidance) * velocity[0] - model.config.guidance * velocity[1]
            length = times[step + 1] - times[step]
            assert_close(state + length * guided, states[step + 1], TOLERANCE, f"state of step {step + 1}")


def decoded(model: TokenToMel, fixture: Fixture, chunked: bool, final: bool, count: int | None = None) -> Tensor:
    stream, tokens = MelStream(model, prompt_of(fixture), chunked), fixture["token"][0].tolist()[:count]
    if not final:
        return stream.unfinished(tokens)
    return torch.cat([stream.push(tokens), stream.finish()], dim=-1)


@pytest.mark.parametrize("case", CASES)
@flows
def test_parity_cosyvoice3_mel(fixture: Fixture, case: str) -> None:
    full_precision()
    assert_close(decoded(build_flow(fixture), fixture, **CASES[case]), fixture[f"{case}.feat"], TOLERANCE, case)


@flows
def test_parity_cosyvoice3_mel_of_other_lengths_and_without_prompt(fixture: Fixture) -> None:
    full_precision()
    model = build_flow(fixture)
    for count in fixture.description["other_lengths"]:
        for name, chunked in (("feat", False), ("stream_feat", True)):
            found = decoded(model, fixture, chunked, final=True, count=count)
            assert_close(found, fixture[f"tokens{count}.{name}"], TOLERANCE, f"{count} tokens, {name}")
    prompt = AcousticPrompt(fixture["prompt_token"][:, :0], fixture["prompt_feat"][:, :0], fixture["embedding"])
    found = MelStream(model, prompt, chunked=False).whole(fixture["token"][0].tolist())
    assert_close(found, fixture["noprompt.feat"], TOLERANCE, "noprompt")


@flows
def test_parity_cosyvoice3_chunks_as_they_come(fixture: Fixture) -> None:
    """Chunk by chunk, from memory, the frames are those that upstream computes anew each time; its last call, with the
    masks of the others, too."""
    full_precision()
    stream, tokens = MelStream(build_flow(fixture), prompt_of(fixture)), fixture["token"][0].tolist()
    chunks = [part for token in tokens if (part := stream.push([token])).shape[-1]]
    chunks.append(stream.finish())
    names = ("chunk0", "chunk1", "chunk2", "last_chunkmask")
    expected = torch.cat([fixture[f"loop.{name}"] for name in names], dim=-1)
    assert len(chunks) > 2
    assert_close(torch.cat(chunks, dim=-1), expected, TOLERANCE, "frames in parts")


@flows
def test_parity_cosyvoice3_training(fixture: Fixture) -> None:
    full_precision()
    estimator: CausalDiT = build_flow(fixture).estimator
    frames = fixture["train_whole.y"].shape[-1]
    speakers = fixture["train_whole.spks"][..., None].expand(-1, -1, frames)
    together = torch.cat([fixture["train_whole.mu"], speakers, fixture["train_whole.cond"]], dim=1)
    within = fixture["train_whole.mask"][:, 0].bool()
    for name, chunked in (("train_whole", False), ("train_stream", True)):
        found = estimator.at_once(fixture["train_whole.y"], together, fixture["train.t"], within, chunked)
        valid = within[:, None].expand_as(found)
        assert_close(found[valid], fixture[f"{name}.pred"][valid], TOLERANCE, name)
