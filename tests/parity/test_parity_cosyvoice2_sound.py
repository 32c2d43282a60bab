"""CosyVoice 2's official way of streaming, and what is not streamed, against the official model."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.audio.mel import resample_prompt, whisper_mel
from paretone.models.cosyvoice2.adapter import CosyDecoder, sped_up
from paretone.models.cosyvoice2.config import FRAMES_PER_TOKEN, EncoderConfig, EstimatorConfig, FlowConfig, HiftConfig
from paretone.models.cosyvoice2.flow_networks import conditions
from paretone.models.cosyvoice2.hift import AudioStream, Hift, Noise, Progress
from paretone.models.cosyvoice2.mel_flow import MelStream
from paretone.models.cosyvoice2.speech_tokenizer import (
    ENCODER_RATE,
    MEL,
    SPEECH_RATE,
    kaldi_filter_bank,
    speaker_features,
)
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, TokenFlow, TokenToMel
from paretone.models.files.checkpoints import loaded_strictly
from paretone.models.networks.incremental import Memory
from tests.engine.models.cosyvoice2.small_release import NoNoise, seeing_everything
from tests.parity.fixtures import Fixture, assert_close, cases, fixtures

front_ends = pytest.mark.parametrize("fixture", fixtures("ar", lambda said: {"whisper", "kaldi"} <= said.keys()))


@front_ends
def test_parity_cosyvoice2_frontend_resampling(fixture: Fixture) -> None:
    mono, rate = fixture["wav"].mean(dim=0), fixture.description["input_sample_rate"]
    assert_close(resample_prompt(mono, rate, ENCODER_RATE), fixture["wav_16k"][0], 1e-6, "wav_16k")
    assert_close(resample_prompt(mono, rate, SPEECH_RATE), fixture["wav_24k"][0], 1e-6, "wav_24k")


@front_ends
def test_parity_cosyvoice2_frontend_features(fixture: Fixture) -> None:
    assert_close(MEL(fixture["wav_24k"][0])[0], fixture["prompt_speech_feat"][0], TOLERANCE, "prompt_speech_feat")
    heard = fixture["wav_16k"][0]
    assert_close(whisper_mel(heard, 128), fixture["whisper_log_mel128"][0], TOLERANCE, "whisper_log_mel128")
    assert_close(kaldi_filter_bank(heard), fixture["kaldi_fbank80"], TOLERANCE, "kaldi_fbank80")
    assert_close(speaker_features(heard), fixture["kaldi_fbank80_cmn"][0], TOLERANCE, "kaldi_fbank80_cmn")


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
        ),
        look_ahead=flow["pre_lookahead_len"],
        chunk=encoder["static_chunk_size"],
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


def build_flow(fixture: Fixture, chunk: int = 0) -> TokenToMel:
    config = flow_config(fixture.description)
    config = replace(config, chunk=chunk or config.chunk)
    return loaded_strictly(lambda: TokenToMel(config), fixture.weights, fixture.name)


flows = pytest.mark.parametrize("fixture", fixtures("ar", lambda said: "cfm" in said))


def prompt_of(fixture: Fixture) -> AcousticPrompt:
    return AcousticPrompt(fixture["prompt_token"], fixture["prompt_feat"], fixture["embedding"])


def decoded(model: TokenFlow, fixture: Fixture, chunked: bool, final: bool, count: int | None = None) -> Tensor:
    stream = MelStream(model if chunked else seeing_everything(model), prompt_of(fixture))
    tokens = fixture["token"][0].tolist()[:count]
    if not final:
        return stream.unfinished(tokens)
    return torch.cat([stream.push(tokens), stream.finish()], dim=-1)


@pytest.mark.parametrize("case", CASES)
@flows
def test_parity_cosyvoice2_flow_mel(fixture: Fixture, case: str) -> None:
    assert_close(decoded(build_flow(fixture), fixture, **CASES[case]), fixture[f"{case}.feat"], TOLERANCE, case)


@flows
def test_parity_cosyvoice2_flow_without_prompt(fixture: Fixture) -> None:
    assert_without_prompt(build_flow(fixture), fixture)


def assert_without_prompt(model: TokenFlow, fixture: Fixture) -> None:
    prompt = AcousticPrompt(fixture["prompt_token"][:, :0], fixture["prompt_feat"][:, :0], fixture["embedding"])
    stream = MelStream(seeing_everything(model), prompt)
    assert stream.push(fixture["token"][0].tolist()).shape[-1] == 0
    assert_close(stream.finish(), fixture["noprompt.feat"], TOLERANCE, "noprompt")


@pytest.mark.parametrize("case", CASES)
@flows
def test_parity_cosyvoice2_flow_encoder_and_every_step(fixture: Fixture, case: str) -> None:
    model, final = flow_of(case, build_flow(fixture)), CASES[case]["final"]
    tokens = torch.cat([fixture["prompt_token"], fixture["token"]], dim=1)[0].tolist()
    kept = len(tokens) if final else len(tokens) - model.config.look_ahead
    memory, ahead = Memory(), None if final else model.embed(tokens[kept:])
    hidden = model.encoder(model.embed(tokens[:kept]), ahead, 0, memory)
    assert_close(hidden, fixture[f"{case}.encoder_out"], TOLERANCE, "encoder_out")
    assert_every_step(model, fixture, case, model.encoder_proj(hidden).mT)


def flow_of(case: str, model: TokenFlow) -> TokenFlow:
    return model if CASES[case]["chunked"] else seeing_everything(model)


@torch.inference_mode()
def assert_every_step(model: TokenFlow, fixture: Fixture, case: str, encoded: Tensor) -> None:
    """The conditions, the times, the noise and, from each recorded state, the velocity and the next state."""
    assert_close(encoded, fixture[f"{case}.mu"], TOLERANCE, "mu")
    speaker = model.speaker(fixture["embedding"])
    assert_close(speaker, fixture["spks"], TOLERANCE, "spks")
    times = torch.from_numpy(MelStream(model, prompt_of(fixture)).script.times)
    assert_close(times[:-1], fixture["t_per_step"], 1e-7, "t_per_step")
    given = conditions(encoded, speaker, fixture["cond"][..., : encoded.shape[-1]])
    states, table = fixture[f"{case}.x_in_per_step"], model.estimator.schedule(fixture["t_per_step"].numpy())
    run = model.estimator.begin(given, table, 0, [Memory(closing=True) for _ in states])
    assert_close(model.noise[..., : states.shape[-1]], states[:1], 1e-6, "noise")
    for step, state in enumerate(states):
        velocity = model.estimator.velocity(state[None].mT, step, run).mT
        if (name := f"{case}.velocity_step{step}") in fixture:
            assert_close(velocity, fixture[name], TOLERANCE, name)
        if step + 1 < len(states):
            guided = (1 + model.config.guidance) * velocity[0] - model.config.guidance * velocity[1]
            length = times[step + 1] - times[step]
            assert_close(state + length * guided, states[step + 1], TOLERANCE, f"state of step {step + 1}")


def hift_config(said: dict) -> HiftConfig:
    return HiftConfig(
        bands=said["in_channels"],
        channels=said["base_channels"],
        pitch_channels=said["f0_cond_channels"],
        upsampling=tuple(said["upsample_rates"]),
        upsampling_kernels=tuple(said["upsample_kernel_sizes"]),
        kernels=tuple(said["resblock_kernel_sizes"]),
        source_kernels=tuple(said["source_resblock_kernel_sizes"]),
        dilations=tuple(said["resblock_dilations"]),
        window=said["istft"]["n_fft"],
        hop=said["istft"]["hop_len"],
        harmonics=said["nb_harmonics"],
        sample_rate=said["sampling_rate"],
        float32_phases=True,
    )


def build_vocoder(fixture: Fixture) -> Hift:
    return Hift.official(hift_config(fixture.description["config"]), fixture.weights, fixture.name)


class Recorded:
    """The noise that upstream drew."""

    def __init__(self, noise: Tensor) -> None:
        self._noise = noise

    def draw(self, frames: int) -> Tensor:
        return self._noise


vocoders = pytest.mark.parametrize("fixture", fixtures("ar", lambda said: "f0_cond_channels" in said.get("config", {})))


@vocoders
def test_parity_cosyvoice2_hift_pitch_and_source(fixture: Fixture) -> None:
    vocoder, mel = build_vocoder(fixture), fixture["mel"]
    assert_close(vocoder.f0_predictor(mel, Progress(last=True)), fixture["f0"], TOLERANCE, "f0")
    quiet = vocoder.source(mel, NoNoise(vocoder.config), Progress(last=True))
    assert_close(quiet, fixture["zero.source"], TOLERANCE, "zero.source")
    noisy = vocoder.source(mel, Recorded(fixture["noise.sine_noise"]), Progress(last=True))
    assert_close(noisy, fixture["noise.source"], TOLERANCE, "noise.source")
    spectrum = vocoder.source_spectrum(fixture["zero.source"], Progress(last=True))
    assert_close(spectrum, fixture["zero.source_stft"], TOLERANCE, "zero.source_stft")


@vocoders
def test_parity_cosyvoice2_hift_layers(fixture: Fixture) -> None:
    vocoder = build_vocoder(fixture)
    hidden = vocoder.conv_pre(fixture["mel"], Progress(last=True))
    assert_close(hidden, fixture["conv_pre"], TOLERANCE, "conv_pre")
    raised = vocoder.ups[0](torch.nn.functional.leaky_relu(hidden, 0.1), Progress(last=True))
    assert_close(raised, fixture["zero.up0"], TOLERANCE, "zero.up0")
    seen = []
    vocoder.conv_post.register_forward_hook(lambda layer, given, found: seen.append(found))
    vocoder.decode(fixture["mel"], fixture["zero.source"], Progress(last=True))
    assert_close(seen[0], fixture["zero.conv_post"], TOLERANCE, "zero.conv_post")


@vocoders
def test_parity_cosyvoice2_hift_speech(fixture: Fixture) -> None:
    vocoder, mel = build_vocoder(fixture), fixture["mel"]
    cached = fixture["zero.source"].clone()
    cached[..., : fixture["cache.cache_source"].shape[-1]] = fixture["cache.cache_source"]
    zero, noise, alone = (fixture[f"{name}.source"] for name in ("zero", "noise", "decode_only"))
    given = {"zero": (mel, zero), "noise": (mel, noise), "cache": (mel, cached), "decode_only": (mel, alone)}
    for name, (frames, source) in (given | {"loud": (4 * mel, 60 * alone)}).items():
        assert_close(vocoder.decode(frames, source, Progress(last=True)), fixture[f"{name}.speech"], TOLERANCE, name)


OVERLAP_FRAMES = 8
HOP_GROWTH = 2
LONGEST_HOP = 100
"""Tokens of a chunk."""


class UpstreamStream:
    """One request. Audio comes in official chunks, (1, n) each."""

    def __init__(self, flow: TokenToMel, vocoder: Hift, prompt: AcousticPrompt, noise: Callable[[], Noise]) -> None:
        """``noise`` is asked for a new source of noise for every chunk."""
        self._flow, self._vocoder, self._prompt, self._noise = flow, vocoder, prompt, noise
        self._hop = flow.config.chunk
        self._tokens: list[int] = []
        self._offset = 0
        self._overlap: tuple[Tensor, Tensor, Tensor] | None = None
        """Mel frames, source and audio at the end of the last chunk."""

    def push(self, tokens: Sequence[int]) -> list[Tensor]:
        """Take more speech tokens; the chunks that are complete by now."""
        self._tokens += tokens
        chunks = []
        while (end := self._offset + self._next_hop) + self._flow.config.look_ahead <= len(self._tokens):
            stream = MelStream(self._flow, self._prompt)
            mel = stream.unfinished(self._tokens[: end + self._flow.config.look_ahead])
            chunks.append(self._vocoded(mel))
            self._offset, self._hop = end, min(HOP_GROWTH * self._hop, LONGEST_HOP)
        return chunks

    def finish(self) -> Tensor:
        """The last chunk; attention sees everything."""
        return self._vocoded(MelStream(seeing_everything(self._flow), self._prompt).whole(self._tokens), last=True)

    @property
    def _next_hop(self) -> int:
        """Tokens of the next chunk; the first one ends where a chunk of the flow ends."""
        spoken, chunk = self._prompt.tokens.shape[1], self._flow.config.chunk
        return self._hop + (-spoken % chunk if not self._offset else 0)

    @torch.inference_mode()
    def _vocoded(self, mel: Tensor, last: bool = False) -> Tensor:
        """Audio of the frames ``mel`` from the beginning on that was not given out yet."""
        mel = mel[..., FRAMES_PER_TOKEN * self._offset :]
        if self._overlap is not None:
            mel = torch.cat([self._overlap[0], mel], dim=-1)
        source = self._vocoder.source(mel, self._noise(), Progress(last=True))
        if self._overlap is not None:
            source[..., : self._overlap[1].shape[-1]] = self._overlap[1]
        speech = self._vocoder.decode(mel, source, Progress(last=True))
        samples = OVERLAP_FRAMES * self._vocoder.config.samples_per_frame
        if self._overlap is not None:
            window = torch.from_numpy(np.hamming(2 * samples)).to(speech)
            faded = speech[..., :samples] * window[:samples] + self._overlap[2] * window[samples:]
            speech = torch.cat([faded, speech[..., samples:]], dim=-1)
        if last:
            return speech
        self._overlap = mel[..., -OVERLAP_FRAMES:], source[..., -samples:], speech[..., -samples:]
        return speech[..., :-samples]


STREAMED = 1e-3
"""The vocoder sums up pitch to phases of ten thousand turns in float32, so that one more rounding anywhere before is
heard: where the fixture was made, operations in upstream's order differ by 1e-7, on a CPU with other instructions, or
with the same from another maker, by up to 6e-4 after seven seconds."""
OWN = 3e-4
"""Between two of our own ways, whose phases are in float64: found were 4e-5 to 1.4e-4, by the instructions."""

SPEED = re.compile(r"offline_speech|speed(?P<percent>\d+)_speech")
"""Names of what was made in one piece, some of it at another speed."""


def build_both(fixture: Fixture) -> tuple[TokenToMel, Hift]:
    """The models that the two other fixtures hold the weights of, with the chunks of this one."""
    flow = build_flow(fixture.beside("cosyvoice2_flow"), fixture.description["flow_static_chunk_size"])
    return flow, build_vocoder(fixture.beside("cosyvoice2_hift"))


STREAMS = fixtures("ar", lambda said: "first_request" in said)
streams = pytest.mark.parametrize("fixture", STREAMS)


@streams
def test_parity_cosyvoice2_stream_of_every_request(fixture: Fixture) -> None:
    flow, vocoder = build_both(fixture)
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
        assert_close(torch.cat(chunks, dim=-1), fixture["stream_speech"], STREAMED, "stream_speech")


@streams
def test_parity_cosyvoice2_stream_of_our_own_is_the_whole(fixture: Fixture) -> None:
    flow, rounded = build_both(fixture)
    vocoder = Hift(replace(rounded.config, float32_phases=False)).eval().requires_grad_(False)
    vocoder.load_state_dict(rounded.state_dict())
    decoder, tokens = CosyDecoder(flow, vocoder, prompt_of(fixture)), fixture["token"].tolist()
    chunk, ahead = flow.config.chunk, flow.config.look_ahead
    # The flow's chunks begin with the prompt, so that the first one of the speech is shorter.
    ends = range(chunk - fixture["prompt_token"].shape[1] % chunk, len(tokens) - ahead + 1, chunk)
    parts = [torch.from_numpy(decoder.push([token])) for token in tokens]
    audio = torch.cat([*parts, torch.from_numpy(decoder.finish())])
    assert [given for given, part in enumerate(parts, 1) if len(part)] == [end + ahead for end in ends]
    assert_close(audio, torch.from_numpy(decoder.whole(tokens).samples), OWN, "streamed audio")


@pytest.mark.parametrize(("fixture", "name"), cases(STREAMS, lambda one: filter(SPEED.fullmatch, one.names)))
def test_parity_cosyvoice2_stream_not_streamed(fixture: Fixture, name: str) -> None:
    percent = SPEED.fullmatch(name)["percent"]
    speed = int(percent) / 100 if percent else 1.0
    flow, vocoder = build_both(fixture)
    mel = MelStream(seeing_everything(flow), prompt_of(fixture)).whole(fixture["token"].tolist())
    audio = AudioStream(vocoder, NoNoise(vocoder.config)).push(sped_up(mel, speed), last=True)
    assert_close(audio, fixture[name], STREAMED, name)
