"""CosyVoice 3's flow against the official model: estimator, steps, streaming, training."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from paretone.models.cosyvoice2.config import FRAMES_PER_TOKEN
from paretone.models.cosyvoice2.mel_flow import MelStream
from paretone.models.cosyvoice3.config import ESTIMATOR, FlowConfig
from paretone.models.cosyvoice3.flow import TokenToMel
from paretone.models.files.checkpoints import loaded_strictly
from paretone.models.networks.incremental import Memory
from tests.engine.models.cosyvoice2.small_release import seeing_everything
from tests.parity.fixtures import Fixture, assert_close, fixtures
from tests.parity.test_parity_cosyvoice2_sound import (
    CASES,
    TOLERANCE,
    assert_every_step,
    assert_without_prompt,
    decoded,
    flow_of,
    prompt_of,
)


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


def build_flow(fixture: Fixture, chunk: int = 0) -> TokenToMel:
    config = flow_config(fixture.description)
    config = replace(config, chunk=chunk or config.chunk)
    return loaded_strictly(lambda: TokenToMel(config), fixture.weights, fixture.name)


flows = pytest.mark.parametrize("fixture", fixtures("cosyvoice3", lambda said: "pre_lookahead_layer" in said))


def assert_at_once(
    model: TokenToMel, fixture: Fixture, run: str, states: Tensor, times: Tensor, chunked: bool, expected: Tensor
) -> None:
    """Velocities of ``states`` under the conditions of ``run``, within its mask."""
    encoded, speakers, prompt, mask = (fixture[f"{run}.{name}"] for name in ("mu", "spks", "cond", "mask"))
    together = torch.cat([encoded, speakers[..., None].expand_as(encoded), prompt], dim=1)
    within = mask[:, 0].bool()
    estimator = (model if chunked else seeing_everything(model)).estimator
    found = estimator.at_once(states, together, times, within)
    valid = within[:, None].expand_as(found)
    assert_close(found[valid], expected[valid], TOLERANCE, f"velocities of {run}, {chunked=}")


@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "stream"])
@flows
def test_parity_cosyvoice3_estimator_at_several_lengths(fixture: Fixture, chunked: bool) -> None:
    model = build_flow(fixture)
    for length in map(str, fixture.description["estimator_lengths"]):
        run = f"dit{length}"
        expected = fixture[f"{run}.{'stream' if chunked else 'whole'}"]
        assert_at_once(model, fixture, run, fixture[f"{run}.x"], fixture[f"{run}.t"], chunked, expected)


@flows
def test_parity_cosyvoice3_look_ahead(fixture: Fixture) -> None:
    model = build_flow(fixture)
    tokens = torch.cat([fixture["prompt_token"], fixture["token"]], dim=1)[0].tolist()
    kept = len(tokens) - model.config.look_ahead
    whole = model.encode(tokens, (), 0, Memory(closing=True))[..., ::FRAMES_PER_TOKEN].mT
    assert_close(whole, fixture["ahead_final"], TOLERANCE, "ahead_final")
    more = model.encode(tokens[:kept], tokens[kept:], 0, Memory(closing=True))[..., ::FRAMES_PER_TOKEN].mT
    assert_close(more, fixture["ahead_more"], TOLERANCE, "ahead_more")


@pytest.mark.parametrize("case", CASES)
@flows
def test_parity_cosyvoice3_flow_every_step(fixture: Fixture, case: str) -> None:
    model, final = flow_of(case, build_flow(fixture)), CASES[case]["final"]
    tokens = torch.cat([fixture["prompt_token"], fixture["token"]], dim=1)[0].tolist()
    kept = len(tokens) if final else len(tokens) - model.config.look_ahead
    encoded = model.encode(tokens[:kept], tokens[kept:], 0, Memory(closing=True))
    assert_every_step(model, fixture, case, encoded)


@pytest.mark.parametrize("case", CASES)
@flows
def test_parity_cosyvoice3_mel(fixture: Fixture, case: str) -> None:
    assert_close(decoded(build_flow(fixture), fixture, **CASES[case]), fixture[f"{case}.feat"], TOLERANCE, case)


@flows
def test_parity_cosyvoice3_mel_of_other_lengths_and_without_prompt(fixture: Fixture) -> None:
    model = build_flow(fixture)
    for count in fixture.description["other_lengths"]:
        for name, chunked in (("feat", False), ("stream_feat", True)):
            found = decoded(model, fixture, chunked, final=True, count=count)
            assert_close(found, fixture[f"tokens{count}.{name}"], TOLERANCE, f"{count} tokens, {name}")
    assert_without_prompt(model, fixture)


@flows
def test_parity_cosyvoice3_chunks_as_they_come(fixture: Fixture) -> None:
    """Chunk by chunk, from memory, the frames are those that upstream computes anew; its last call, too."""
    stream, tokens = MelStream(build_flow(fixture), prompt_of(fixture)), fixture["token"][0].tolist()
    chunks = [part for token in tokens if (part := stream.push([token])).shape[-1]]
    chunks.append(stream.finish())
    names = ("chunk0", "chunk1", "chunk2", "last_chunkmask")
    expected = torch.cat([fixture[f"loop.{name}"] for name in names], dim=-1)
    assert len(chunks) > 2
    assert_close(torch.cat(chunks, dim=-1), expected, TOLERANCE, "frames in parts")


@flows
def test_parity_cosyvoice3_training(fixture: Fixture) -> None:
    model = build_flow(fixture)
    states, times = fixture["train_whole.y"], fixture["train.t"]
    for name, chunked in (("train_whole", False), ("train_stream", True)):
        assert_at_once(model, fixture, "train_whole", states, times, chunked, fixture[f"{name}.pred"])
