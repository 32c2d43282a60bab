"""CosyVoice 3's vocoder, its way of streaming and its prompt's mel against the official model."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from paretone.models.cosyvoice2.adapter import CosyDecoder, sped_up
from paretone.models.cosyvoice2.hift import AudioStream, Hift, Progress
from paretone.models.cosyvoice2.mel_flow import MelStream
from paretone.models.cosyvoice3.flow import TokenToMel
from tests.engine.models.cosyvoice2.small_release import NoNoise, seeing_everything
from tests.parity.fixtures import Fixture, assert_close, fixtures
from tests.parity.test_parity_cosyvoice2_sound import STREAMED, TOLERANCE, hift_config, prompt_of
from tests.parity.test_parity_cosyvoice3_flow import build_flow

PITCH = 1e-3
"""Hertz."""


def build_vocoder(fixture: Fixture, weights: dict[str, Tensor] | None = None, **changes: object) -> Hift:
    said = fixture.description["config"]
    config = hift_config(said | {"resblock_dilations": said["resblock_dilation_sizes"][0]})
    config = replace(config, causal=True, **changes)
    return Hift.official(config, fixture.weights | (weights or {}), fixture.name)


class Recorded:
    """The noise that upstream drew, from the start of the signal."""

    def __init__(self, noise: Tensor, samples_per_frame: int) -> None:
        self._noise, self._samples, self._given = noise, samples_per_frame, 0

    def draw(self, frames: int) -> Tensor:
        first, self._given = self._given, self._given + frames * self._samples
        return self._noise[:, first : self._given]


vocoders = pytest.mark.parametrize(
    "fixture", fixtures("cosyvoice3", lambda said: "conv_pre_look_right" in said.get("config", {}))
)


def noise_of(fixture: Fixture, name: str, vocoder: Hift) -> NoNoise | Recorded:
    config = vocoder.config
    return NoNoise(config) if name == "zero" else Recorded(fixture["sine_noise"], config.samples_per_frame)


@vocoders
def test_parity_cosyvoice3_hift_layers(fixture: Fixture) -> None:
    vocoder, mel, whole = build_vocoder(fixture), fixture["mel"], Progress(last=True)
    assert_close(vocoder.f0_predictor(mel, whole), fixture["f0"].double(), PITCH, "f0")
    for name in ("zero", "noise"):
        source = vocoder.source(mel, noise_of(fixture, name, vocoder), Progress(last=True))
        assert_close(source, fixture[f"{name}.source"], TOLERANCE, f"{name}.source")
    hidden = vocoder.conv_pre(mel, whole)
    assert_close(hidden, fixture["zero.conv_pre"], TOLERANCE, "conv_pre")
    raised = vocoder.ups[0](torch.nn.functional.leaky_relu(hidden, 0.1), whole)
    assert_close(raised, fixture["zero.up0"], TOLERANCE, "up0")
    spectrum = vocoder.source_spectrum(fixture["zero.source"], whole)
    assert_close(spectrum, fixture["zero.source_stft"], TOLERANCE, "source_stft")
    for stage in (0, 2):
        found = vocoder.source_downs[stage](spectrum, Progress(last=True))
        assert_close(found, fixture[f"zero.source_down{stage}"], TOLERANCE, f"source_down{stage}")


@vocoders
def test_parity_cosyvoice3_hift_speech(fixture: Fixture) -> None:
    vocoder, mel = build_vocoder(fixture), fixture["mel"]
    for name in ("zero", "noise"):
        speech = AudioStream(vocoder, noise_of(fixture, name, vocoder)).push(mel, last=True)
        assert_close(speech, fixture[f"{name}.speech"], TOLERANCE, name)
    source = fixture["decode_only.source"]
    for name, mels, sources in (("decode_only", mel, source), ("loud", 1.5 * mel, 8 * source)):
        found = vocoder.decode(mels, sources, Progress(last=True))
        assert_close(found, fixture[f"{name}.speech"], TOLERANCE, name)


@vocoders
def test_parity_cosyvoice3_hift_in_parts(fixture: Fixture) -> None:
    """Upstream vocodes everything so far for each part; here each part continues, and gives at least as much."""
    vocoder, mel, ends = build_vocoder(fixture), fixture["mel"], fixture.description["config"]["given"]
    for name in ("zero", "noise"):
        stream, parts, begin = AudioStream(vocoder, noise_of(fixture, name, vocoder)), [], 0
        for end in ends:
            parts.append(stream.push(mel[..., begin:end], last=end == ends[-1]))
            begin = end
        expected = torch.cat([fixture[f"{name}.loop{part}"] for part in range(len(ends))], dim=-1)
        assert_close(torch.cat(parts, dim=-1), expected, TOLERANCE, f"{name} in parts")
        assert parts[0].shape[-1] >= fixture[f"{name}.loop0"].shape[-1]


streams = pytest.mark.parametrize("fixture", fixtures("cosyvoice3", lambda said: "silent_tokens" in said))


def build_both(fixture: Fixture, **changes: object) -> tuple[TokenToMel, Hift]:
    """The models that the two other fixtures hold the weights of, with this one's chunks and voicing."""
    flow = build_flow(fixture.beside("cosyvoice3_flow"), fixture.description["flow_static_chunk_size"] // 2)
    voicing = {f"f0_predictor.classifier.{name}": fixture[f"classifier_{name}"] for name in ("weight", "bias")}
    return flow, build_vocoder(fixture.beside("cosyvoice3_hift"), voicing, **changes)


@streams
def test_parity_cosyvoice3_stream_is_the_chunk_masked_whole(fixture: Fixture) -> None:
    """Ours keeps the masks in the last call, too, so that the stream equals one pass."""
    flow, vocoder = build_both(fixture)
    tokens = fixture["token_kept"].tolist()
    mel = MelStream(flow, prompt_of(fixture)).whole(tokens)
    assert_close(mel, fixture["chunkmask_mel"], TOLERANCE, "chunkmask_mel")
    stream, audio = MelStream(flow, prompt_of(fixture)), AudioStream(vocoder, NoNoise(vocoder.config))
    parts = [audio.push(stream.push([token])) for token in tokens]
    parts.append(audio.push(stream.finish(), last=True))
    assert len([part for part in parts if part.shape[-1]]) > len(fixture["chunk_lengths"])
    assert_close(torch.cat(parts, dim=-1), fixture["chunkmask_speech"], STREAMED, "chunkmask_speech")


@streams
def test_parity_cosyvoice3_stream_as_upstream_until_its_last_call(fixture: Fixture) -> None:
    flow, vocoder = build_both(fixture)
    whole, tokens, offset, parts = seeing_everything(flow), fixture["token_kept"].tolist(), 0, []
    heard = torch.zeros(1, flow.config.bands, 0)
    """Frames of earlier calls stay as they were."""
    for call in fixture.description["first_request"]:
        stream, end = MelStream(flow if call["stream"] else whole, prompt_of(fixture)), call["tokens_given"]
        mel = stream.whole(tokens[:end]) if call["finalize"] else stream.unfinished(tokens[:end])
        heard = torch.cat([heard, mel[..., heard.shape[-1] :]], dim=-1)
        assert heard.shape[-1] == call["mel_frames_so_far"]
        so_far = AudioStream(vocoder, NoNoise(vocoder.config)).push(heard, last=call["finalize"])
        parts.append(so_far[..., offset : offset + call["samples"]])
        offset += call["samples"]
    assert_close(heard, fixture["stream_mel"], TOLERANCE, "stream_mel")
    assert_close(torch.cat(parts, dim=-1), fixture["stream_speech"], STREAMED, "stream_speech")


@pytest.mark.parametrize("name", ["offline", "speed"])
@streams
def test_parity_cosyvoice3_not_streamed(fixture: Fixture, name: str) -> None:
    flow, vocoder = build_both(fixture)
    mel = MelStream(seeing_everything(flow), prompt_of(fixture)).whole(fixture["token_kept"].tolist())
    speed = fixture.description["speed"] if name == "speed" else 1.0
    audio = AudioStream(vocoder, NoNoise(vocoder.config)).push(sped_up(mel, speed), last=True)
    assert_close(audio, fixture[f"{name}_speech"], STREAMED, name)


@streams
def test_cosyvoice3_parts_of_our_own_are_the_whole(fixture: Fixture) -> None:
    flow, vocoder = build_both(fixture, float32_phases=False)
    decoder, tokens = CosyDecoder(flow, vocoder, prompt_of(fixture)), fixture["token_kept"].tolist()
    parts = [torch.from_numpy(decoder.push([token])) for token in tokens]
    audio = torch.cat([*parts, torch.from_numpy(decoder.finish())])
    assert_close(audio, torch.from_numpy(decoder.whole(tokens).samples), STREAMED, "streamed audio")
