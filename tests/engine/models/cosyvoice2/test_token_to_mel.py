"""The flow of CosyVoice 2 in parts, and what it refuses."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from paretone.errors import AudioError, CheckpointError, TextError
from paretone.models.cosyvoice2 import flow_networks as memories
from paretone.models.cosyvoice2.config import EstimatorConfig, FlowConfig
from paretone.models.cosyvoice2.flow_networks import CausalConv, Growing, Memory, chunk_mask, conditions
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, MelStream, TokenToMel
from tests.engine.models.cosyvoice2.small_acoustics import CHUNK, small_flow, small_prompt, small_speech

TOLERANCE = 1e-4
SPEECH = small_speech(34)


@pytest.fixture(scope="module")
def flow() -> TokenToMel:
    return small_flow()


def streamed(flow: TokenToMel, prompt: AcousticPrompt, sizes: tuple[int, ...]) -> list[Tensor]:
    stream, parts = MelStream(flow, prompt), []
    for part in torch.tensor(SPEECH).split(list(sizes)):
        parts.append(stream.push(part.tolist()))
    return [*parts, stream.finish()]


@pytest.mark.parametrize("prompt", [0, 5, 7, 12])
@pytest.mark.parametrize("sizes", [(1,) * 34, (34,), (8, 20, 6), (33, 1)])
def test_streamed_frames_are_those_of_the_whole(flow: TokenToMel, prompt: int, sizes: tuple[int, ...]) -> None:
    whole = MelStream(flow, small_prompt(prompt)).whole(SPEECH)
    parts = torch.cat(streamed(flow, small_prompt(prompt), sizes), dim=-1)
    assert whole.shape[-1] == 2 * len(SPEECH)
    assert torch.allclose(parts, whole, atol=TOLERANCE)


def remembered(stream: MelStream) -> int:
    """Numbers in the contexts of the estimator's layers."""
    contexts = [one for memory in stream._step_memories for one in memory._contexts.values()]
    return sum(one.everything.numel() for one in contexts)


@pytest.mark.parametrize("limit", [0, 10, 24, 500])
def test_late_frames_are_remembered_by_what_keys_are_made_of(
    flow: TokenToMel, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    prompt, estimator = small_prompt(7), flow.config.estimator
    whole = MelStream(flow, prompt).whole(SPEECH)
    monkeypatch.setattr(memories, "PROJECTED", limit)
    stream = MelStream(flow, prompt)
    parts = [stream.push([token]) for token in SPEECH]
    frames = 2 * stream._done
    projected = limit // (2 * CHUNK) * 2 * CHUNK if limit < frames else frames
    # Keys and values are twice as wide as heads times their width; what they are made of as wide as the channels.
    widths = 2 * estimator.heads * estimator.head_width * projected + estimator.channels * (frames - projected)
    blocks = (estimator.middle_stages + 2) * estimator.blocks
    assert remembered(stream) == flow.config.steps * blocks * 2 * widths
    assert torch.allclose(torch.cat([*parts, stream.finish()], dim=-1), whole, atol=TOLERANCE)


def test_the_release_remembers_as_much_as_is_said() -> None:
    estimator, steps = EstimatorConfig(), FlowConfig().steps
    blocks = (estimator.middle_stages + 2) * estimator.blocks
    # Both branches, 4 bytes each.
    early = steps * blocks * 2 * 4 * 2 * estimator.heads * estimator.head_width
    late = steps * blocks * 2 * 4 * estimator.channels
    assert (round(early / 1e6, 1), round(late / 1e6, 1)) == (4.6, 1.1)


def test_frames_come_with_every_chunk_as_soon_as_the_look_ahead_is_there(flow: TokenToMel) -> None:
    counts = [part.shape[-1] for part in streamed(flow, small_prompt(7), (1,) * 34)]
    coming = [index for index, count in enumerate(counts, 1) if count]
    # The prompt's second chunk lacks three tokens; the flow looks three further.
    assert coming == [6, 11, 16, 21, 26, 31, 35]
    assert [count for count in counts if count] == [6, 10, 10, 10, 10, 10, 12]


def test_earlier_frames_do_not_change_when_more_follow(flow: TokenToMel) -> None:
    prompt = small_prompt(5)
    early = MelStream(flow, prompt).unfinished(SPEECH[: 2 * CHUNK + 3])
    later = MelStream(flow, prompt).unfinished(SPEECH[: 5 * CHUNK + 3])
    assert torch.allclose(early, later[..., : early.shape[-1]], atol=TOLERANCE)
    everything = MelStream(flow, prompt, chunked=False).whole(SPEECH)
    assert not torch.allclose(early, everything[..., : early.shape[-1]], atol=1e-2)


def test_layers_are_shown_every_frame_once(flow: TokenToMel, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    preceded = Memory.preceded

    def counting(self: Memory, layer: CausalConv, x: Tensor, width: int) -> Tensor:
        if layer is flow.estimator.down_blocks[0][2]:
            shown.append(x.shape[-1])
        return preceded(self, layer, x, width)

    monkeypatch.setattr(memories.Memory, "preceded", counting)
    streamed(flow, small_prompt(7), (1,) * 34)
    assert shown == [count for count in (*[10] * 7, 12) for _ in range(flow.config.steps)]


def test_two_requests_do_not_see_each_other(flow: TokenToMel) -> None:
    first, second = MelStream(flow, small_prompt(7)), MelStream(flow, small_prompt(7))
    frames = []
    for token in SPEECH:
        frames.append(first.push([token]))
        second.push([SPEECH[0]])
    frames.append(first.finish())
    assert torch.equal(torch.cat(frames, dim=-1), torch.cat(streamed(flow, small_prompt(7), (1,) * 34), dim=-1))


def test_guidance_is_the_difference_of_both_branches(flow: TokenToMel) -> None:
    state, table = flow.noise[..., :10], flow.estimator.time_table(torch.tensor([0.3]))
    given = conditions(torch.randn(1, 8, 10), torch.randn(1, 8), torch.randn(1, 8, 10))
    both = flow.estimator(state, given, table[0], 0, True, Memory())
    for branch in range(2):
        alone = torch.cat([given[branch : branch + 1]] * 2)
        assert torch.allclose(flow.estimator(state, alone, table[0], 0, True, Memory())[:1], both[branch], atol=1e-5)


def test_time_table_is_the_embedding_of_every_step(flow: TokenToMel) -> None:
    times = torch.tensor([0.0, 0.3, 0.9])
    vectors = flow.estimator.time_mlp(times)
    expected = torch.stack([one.mlp(vectors) for one in flow.estimator.residuals], dim=1)
    assert torch.allclose(flow.estimator.time_table(times), expected, atol=1e-6)


def test_no_speech_gives_no_frames(flow: TokenToMel) -> None:
    for prompt in (0, 7):
        assert MelStream(flow, small_prompt(prompt)).finish().shape == (1, 8, 0)


def test_refuses_more_than_five_minutes(flow: TokenToMel) -> None:
    stream = MelStream(flow, small_prompt(7), chunked=False)
    stream.push([0] * (7500 - 7))
    with pytest.raises(TextError, match="300 seconds"):
        stream.push([0])


def test_refuses_a_prompt_whose_parts_do_not_fit(flow: TokenToMel) -> None:
    prompt = small_prompt(7)
    with pytest.raises(AudioError, match="7 speech tokens"):
        MelStream(flow, AcousticPrompt(prompt.tokens, prompt.mel[:, 1:], prompt.speaker))


def test_refuses_weights_that_do_not_fit(flow: TokenToMel) -> None:
    weights = dict(flow.state_dict())
    weights["surplus"] = weights.pop("encoder_proj.bias")
    with pytest.raises(CheckpointError, match=r"encoder_proj\.bias.*surplus"):
        small_flow().load_official(weights, "flow.pt")


def test_chunk_mask_shows_own_and_earlier_chunks() -> None:
    mask = chunk_mask(4, 3, 5, torch.device("cpu"))
    assert mask.int().tolist() == [[1, 1, 1, 1, 1, 0, 0], [1] * 7, [1] * 7]
    assert chunk_mask(5, 5, 5, torch.device("cpu")) is None
    assert chunk_mask(0, 50, None, torch.device("cpu")) is None


def test_growing_keeps_everything() -> None:
    growing, x = Growing(), torch.randn(1, 2, 100, 3)
    for part in x.split([1, 2, 0, 60, 37], dim=2):
        found = growing.extend(part)
    assert torch.equal(found, x)
    assert growing.length == 100
