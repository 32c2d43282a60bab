"""Our decoder of natural speech against the original's: the second half of hibari-tts's graph, run by onnxruntime, and
its signal processing. The graph rounds what enters every product to eight bits; with the same rounding ours is the
same, without it as near as that rounding.
"""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load
from torch import Tensor, nn

from paretone.front_end import lexicon, networks, tagger
from paretone.front_end.lexicon import bundled
from paretone.front_end.networks import default_lengths, default_unknown_words
from paretone.front_end.phones import EDGE
from paretone.models.files.checkpoints import read_weights
from paretone.models.minis.natural_decoder import (
    BINS,
    HOP,
    LOWEST_VOICED,
    NaturalDecoder,
    PulseSpectra,
    PulseTrain,
    Spectra,
    turned,
)
from tests.engine.front_end.references import references
from tests.workload import only_in_full, workload

hibari = pytest.importorskip("hibari")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

HIDDEN, OUTPUTS = "/dec.3/Add_1_output_0", ("lh", "theta", "ln", "lr", "phi")
SENTENCES = ("The birch canoe slid on the smooth planks.", "Is it 5:30 already? Well, hurry up!")


@dataclass(frozen=True)
class Original:
    """A sentence inside of the original."""

    hidden: np.ndarray
    """(n, 256) after its fourth block."""
    spectra: tuple[np.ndarray, ...]
    """Five of (601, n) as the graph gives them; the second becomes half-turns."""
    pitch: np.ndarray
    """(n,) hertz."""

    @property
    def noise(self) -> Tensor:
        """(n, 601) complex64, as the original draws it of seed 0."""
        drawn = np.random.default_rng(0).standard_normal((BINS, 2 * len(self.pitch)), dtype=np.float32)
        return torch.from_numpy(np.ascontiguousarray(drawn.view(np.complex64).T))

    @property
    def audio(self) -> np.ndarray:
        """Output of the original, with the noise of seed 0."""
        from hibari import dsp

        return dsp.synth(*(one.copy() for one in self.spectra), self.pitch, np.random.default_rng(0))

    @property
    def own_spectra(self) -> tuple[np.ndarray, ...]:
        """As ours are: all phases as unit complex numbers."""
        harmonic, turns, noise, free, phase = self.spectra
        phases = (turned(torch.from_numpy(one)).numpy() for one in (np.tanh(turns) * np.pi, phase))
        return harmonic, next(phases), noise, free, next(phases)

    @property
    def own_pitch(self) -> Tensor:
        """The pitch as latents hold it: 0 without voice."""
        return torch.from_numpy(np.where(self.pitch > LOWEST_VOICED, self.pitch, 0))


class GivenNoise:
    """Existing noise, (frames, bins) complex64."""

    def __init__(self, noise: Tensor) -> None:
        self._rest = noise

    def draw(self, frames: int) -> Tensor:
        drawn, self._rest = self._rest[:frames], self._rest[frames:]
        return drawn


@pytest.fixture(scope="module")
def originals() -> list[Original]:
    from onnx import TensorProto, helper

    graph = onnx.load(Path(hibari.__file__).parent / "assets" / "hibari.onnx")
    graph.graph.output.append(helper.make_tensor_value_info(HIDDEN, TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    voice = hibari.Hibari()
    found = []
    for text in SENTENCES:
        for phonemes in voice.phonemize(text):
            given = {"ids": np.array([voice.ids(phonemes)]), "speed": np.ones(1, np.float32)}
            *spectra, pitch, hidden = session.run([*OUTPUTS, "f0", HIDDEN], given)
            found.append(Original(hidden[0].T.copy(), tuple(one[0] for one in spectra), pitch[0]))
    return found


@pytest.fixture(scope="module")
def decoder() -> NaturalDecoder:
    return NaturalDecoder.load()


@contextmanager
def rounding_as_the_original(decoder: NaturalDecoder) -> Iterator[None]:
    """Round inputs of products to 256 levels between their extremes, with zero: ONNX's DynamicQuantizeLinear."""

    def rounded(module: nn.Module, given: tuple[Tensor]) -> tuple[Tensor]:
        (x,) = given
        low, high = x.min().clamp(max=0), x.max().clamp(min=0)
        scale = (high - low) / 255
        zero = (-low / scale).round().clamp(0, 255)
        return (((x / scale).round() + zero).clamp(0, 255).sub(zero) * scale,)

    hooks = [one.register_forward_pre_hook(rounded) for one in decoder.modules() if isinstance(one, nn.Linear)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def network(decoder: NaturalDecoder, original: Original) -> list[np.ndarray]:
    with torch.inference_mode():
        spectra = decoder.network(torch.from_numpy(original.hidden).T[None])
    return [getattr(spectra, one.name).numpy().T for one in fields(Spectra)]


def signal_to_noise(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Decibels."""
    return float(10 * np.log10(np.square(theirs).mean() / np.square(ours - theirs).mean()))


def test_spectra_with_the_same_rounding_are_the_same(decoder: NaturalDecoder, originals: list[Original]):
    differences = []
    for original in originals:
        with rounding_as_the_original(decoder):
            ours = network(decoder, original)
        pairs = zip(ours, original.own_spectra, strict=True)
        differences.append(max(float(np.abs(one - theirs).mean() / theirs.std()) for one, theirs in pairs))
    # A value at the edge between two levels may fall to either side, and what follows with it; in some sentence none
    # does.
    assert max(differences) < 0.02
    assert min(differences) < 1e-3


def excitation(original: Original) -> tuple[Tensor, Tensor]:
    """Pulses of the pitch, and their spectra."""
    pulses = PulseTrain().push(torch.from_numpy(original.pitch), last=True)
    return pulses, PulseSpectra().push(pulses, last=True)


def test_pulses_and_their_spectra_are_the_same(originals: list[Original]):
    from hibari import dsp

    for original in originals:
        pulses, shaped = excitation(original)
        # Where a harmonic passes 11 kHz, rounding decides whether a sample has it.
        assert np.mean(np.abs(pulses.numpy() - dsp.pulses(original.pitch)) > 1e-3) < 1e-4
        np.testing.assert_allclose(
            shaped.numpy(), dsp.stft(dsp.pulses(original.pitch), len(original.pitch)).T, atol=5e-3
        )


def test_audio_of_the_same_spectra_is_the_same(decoder: NaturalDecoder, originals: list[Original]):
    for original in originals:
        _, shaped = excitation(original)
        spectra = Spectra(*(torch.from_numpy(one.T.copy()) for one in original.own_spectra))
        ours = decoder.audio(spectra.spectrum(shaped, original.noise)).numpy()
        assert signal_to_noise(ours, original.audio) > 50


def test_audio_of_the_hidden_frames_is_that_of_the_original(decoder: NaturalDecoder, originals: list[Original]):
    for original in originals:
        given = torch.from_numpy(original.hidden), torch.from_numpy(original.pitch)
        ours = decoder.decode_hidden(*given, noise=GivenNoise(original.noise))
        assert len(ours) == len(original.pitch) * HOP
        assert signal_to_noise(ours.numpy(), original.audio) > 24
        with rounding_as_the_original(decoder):
            same = decoder.decode_hidden(*given, noise=GivenNoise(original.noise))
        assert signal_to_noise(same.numpy(), original.audio) > 30


def test_the_latent_keeps_the_voice(decoder: NaturalDecoder, originals: list[Original]):
    """32 of 256 components: what is lost is small against what differs from frame to frame, and so are log spectra."""
    for original in originals:
        hidden = torch.from_numpy(original.hidden)
        latents = decoder.space.latents(hidden, original.own_pitch)
        again = decoder.space.hidden(latents)
        lost = float((again - hidden).square().sum() / (hidden - hidden.mean(0)).square().sum())
        assert lost < 0.1
        torch.testing.assert_close(decoder.space.pitch(latents), original.own_pitch, rtol=1e-3, atol=0.1)
        with torch.inference_mode():
            ours, whole = (decoder.network(one.T[None]) for one in (again, hidden))
        voiced = original.own_pitch > 0
        difference = (ours.harmonic - whole.harmonic)[voiced, :200].abs().mean()  # below 4 kHz
        assert float(difference) < 0.7


LENGTHS = "/Clip_output_0"


@pytest.fixture(scope="module")
def teacher() -> object:
    return hibari.Hibari()


def test_the_record_is_what_the_teacher_reads(teacher: hibari.Hibari) -> None:
    some = references()[:: workload(1, 7)]
    assert [one.text for one in some if " ".join(teacher.phonemize(one.text)) != one.teacher] == []


def test_unknown_words_are_read_alike(teacher: hibari.Hibari) -> None:
    words = {word for one in references() if one.kind in ("name", "unknown") for word in one.text.split()}
    read = default_unknown_words()
    assert [word for word in words if read(word) != teacher.g2p.oov(word)] == []


def test_lengths_are_the_same_but_for_the_rounding_to_eight_bits(teacher: hibari.Hibari) -> None:
    graph = onnx.shape_inference.infer_shapes(onnx.load(Path(hibari.__file__).parent / "assets" / "hibari.onnx"))
    part = onnx.utils.Extractor(graph).extract_model(["ids", "speed"], [LENGTHS])
    session = onnxruntime.InferenceSession(part.SerializeToString(), providers=["CPUExecutionProvider"])
    differences: list[float] = []
    for one in references()[:: workload(10, 50)]:
        given = {"ids": np.array([teacher.ids(one.teacher)], np.int64), "speed": np.ones(1, np.float32)}
        theirs = session.run([LENGTHS], given)[0].ravel()
        ours = np.maximum(np.round(default_lengths().units((EDGE, *one.teacher, EDGE))), 1)
        differences += (ours - theirs).tolist()
    assert np.abs(differences).max() <= 1 and np.count_nonzero(differences) < 0.02 * len(differences)


@only_in_full("recipes")
def test_the_files_are_made_from_the_wheel() -> None:
    from tests.tools import natural_front_end as recipe

    # Packed anew, other versions of zlib and Python give other bytes.
    assert gzip.decompress(recipe.pronunciations()) == gzip.decompress(bundled(lexicon.FILE).read_bytes())
    weights = {networks.LENGTHS: recipe.lengths_weights(), networks.UNKNOWN_WORDS: recipe.unknown_words_weights()}
    for file, made in weights.items():
        shipped, remade = read_weights(bundled(file)), load(made)
        assert shipped.keys() == remade.keys()
        assert all(torch.equal(value, remade[name]) for name, value in shipped.items())
    with np.load(bundled(tagger.FILE)) as ours, np.load(BytesIO(recipe.tagger_weights())) as again:
        assert all(np.array_equal(ours[name], again[name]) for name in ours.files)
