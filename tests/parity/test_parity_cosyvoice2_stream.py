"""CosyVoice 2's official way of streaming, and what is not streamed, against the official model."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch

from paretone.models.cosyvoice2.adapter import CosyDecoder, sped_up
from paretone.models.cosyvoice2.hift import AudioStream, Hift
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, MelStream, TokenToMel
from tests.engine.models.cosyvoice2.small_release import NoNoise
from tests.parity.fixtures import Fixture, assert_close, cases, fixtures, full_precision
from tests.parity.test_parity_cosyvoice2_flow import flow_config
from tests.parity.test_parity_cosyvoice2_hift import build as build_vocoder
from tests.parity.upstream_streaming import UpstreamStream

TOLERANCE = 1e-3
"""The vocoder sums up pitch to phases of ten thousand turns in float32, so that one more rounding anywhere before is
heard: where the fixture was made, operations in upstream's order differ by 1e-7, on a CPU with other instructions, or
with the same from another maker, by up to 6e-4 after seven seconds."""
OWN = 3e-4
"""Between two of our own ways, whose phases are in float64: found were 4e-5 to 1.4e-4, by the instructions."""

SPEED = re.compile(r"offline_speech|speed(?P<percent>\d+)_speech")
"""Names of what was made in one piece, some of it at another speed."""


def build(fixture: Fixture) -> tuple[TokenToMel, Hift]:
    """The models that the two other fixtures hold the weights of, with the chunks of this one."""
    flow, vocoder = (replace(fixture, name=f"cosyvoice2_{part}") for part in ("flow", "hift"))
    config = flow_config(flow.description)
    chunk = fixture.description["flow_static_chunk_size"]
    model = TokenToMel(replace(config, encoder=replace(config.encoder, chunk=chunk)))
    model.load_official(flow.weights, flow.name)
    return model.eval().requires_grad_(False), build_vocoder(vocoder)


def is_stream(description: dict) -> bool:
    return "first_request" in description


def prompt_of(fixture: Fixture) -> AcousticPrompt:
    return AcousticPrompt(fixture["prompt_token"], fixture["prompt_feat"], fixture["embedding"])


streams = pytest.mark.parametrize("fixture", fixtures("ar", is_stream))


@streams
def test_parity_cosyvoice2_stream_of_every_request(fixture: Fixture) -> None:
    full_precision()
    flow, vocoder = build(fixture)
    for _ in range(2):  # upstream, the second one would come in a single chunk
        stream = UpstreamStream(flow, vocoder, prompt_of(fixture), lambda: NoNoise(vocoder.config))
        chunks, needed = [], []
        for given, token in enumerate(fixture["token"].tolist(), 1):
            found = stream.push([token])
            chunks += found
            needed += [given] * len(found)
        chunks.append(stream.finish())
        needed.append(given)
        assert [chunk.shape[-1] for chunk in chunks] == fixture["chunk_lengths"].tolist()
        assert needed == [call["tokens_given"] for call in fixture.description["first_request"]]
        assert_close(torch.cat(chunks, dim=-1), fixture["stream_speech"], TOLERANCE, "stream_speech")


@streams
def test_parity_cosyvoice2_stream_of_our_own_is_the_whole(fixture: Fixture) -> None:
    full_precision()
    flow, rounded = build(fixture)
    vocoder = Hift(replace(rounded.config, float32_phases=False)).eval().requires_grad_(False)
    vocoder.load_state_dict(rounded.state_dict())
    decoder, tokens = CosyDecoder(flow, vocoder, prompt_of(fixture)), fixture["token"].tolist()
    chunk, ahead = flow.config.encoder.chunk, flow.config.encoder.look_ahead
    # The flow's chunks begin with the prompt, so that the first one of the speech is shorter.
    ends = range(chunk - fixture["prompt_token"].shape[1] % chunk, len(tokens) - ahead + 1, chunk)
    parts = [torch.from_numpy(decoder.push([token])) for token in tokens]
    audio = torch.cat([*parts, torch.from_numpy(decoder.finish())])
    assert [given for given, part in enumerate(parts, 1) if len(part)] == [end + ahead for end in ends]
    assert_close(audio, torch.from_numpy(decoder.whole(tokens).samples), OWN, "streamed audio")


def not_streamed(fixture: Fixture) -> list[str]:
    return [name for name in fixture.names if SPEED.fullmatch(name)]


@pytest.mark.parametrize(("fixture", "name"), cases(fixtures("ar", is_stream), not_streamed))
def test_parity_cosyvoice2_stream_not_streamed(fixture: Fixture, name: str) -> None:
    full_precision()
    percent = SPEED.fullmatch(name)["percent"]
    speed = int(percent) / 100 if percent else 1.0
    flow, vocoder = build(fixture)
    mel = MelStream(flow, prompt_of(fixture), chunked=False).whole(fixture["token"].tolist())
    audio = AudioStream(vocoder, NoNoise(vocoder.config)).push(sped_up(mel, speed), last=True)
    assert_close(audio, fixture[name], TOLERANCE, name)
