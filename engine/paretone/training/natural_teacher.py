"""Teacher of natural speech: hibari-tts, split where its delivery can be controlled.

Its network runs in two halves. Between them are the input frames of its decoder: 128 numbers for content, log pitch,
and energy. Emphasis makes a word longer, higher and louder there, and everything after it follows. Overall pitch and
pitch range change only the pulses, within harmless limits. From its fifth block on, the decoder is ours
(:mod:`paretone.models.minis.natural_decoder`).

It is also the original speaker of the bundled voices, and says any sentence in them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from paretone.errors import PlainError
from paretone.extras import how_to_add, needing
from paretone.front_end.phones import EDGE
from paretone.front_end.reading import LEAD, LONGER, TAIL, UNIT_FRAMES, word_at
from paretone.models.base import Voice
from paretone.models.minis.natural_decoder import LEVEL_MEAN, LOWEST_VOICED, NaturalDecoder, SeededNoise
from paretone.models.voices import Origin, origin_of
from paretone.training.natural_corpus import Manner, SpokenSentence

if TYPE_CHECKING:
    import onnx
    import onnxruntime


UNITS, CONDITIONS, HIDDEN, PITCH = "/Clip_output_0", "/Concat_43_output_0", "/dec.3/Add_1_output_0", "f0"
"""Tensors of the graph: durations in units of 25 ms, the decoder's input, its fourth block's output, hertz."""
LOG_PITCH, ENERGY = 128, 129
"""Rows of the decoder's input."""
LOG_PITCH_SCALE = 5.0
"""The row holds log(1 + hertz) divided by this."""
HIGHER, LOUDER = 0.2, 0.2
"""Increments at full emphasis: of the word's log pitch, and of its relative energy."""
LARGEST = 0.95
"""Maximum peak of a recording."""
MISSING = f"Natural speech is made by hibari-tts, which is not installed; {how_to_add('voice')}"


class NaturalTeacher:
    """Synthesises speech. Raises :class:`PlainError` if hibari-tts is not installed."""

    def __init__(self, decoder: NaturalDecoder | None = None) -> None:
        with needing(PlainError, MISSING):
            import hibari
            import onnx
        self._voice = hibari.Hibari()
        self._symbols = {number: symbol for symbol, number in self._voice.vocab.items()} | {0: EDGE}
        self._decoder = decoder or NaturalDecoder.load()
        graph = onnx.shape_inference.infer_shapes(onnx.load(Path(hibari.__file__).parent / "assets" / "hibari.onnx"))
        self._first = _session(graph, ["ids", "speed"], [UNITS, CONDITIONS, PITCH])
        self._second = _session(graph, [CONDITIONS], [HIDDEN])

    def phonemes(self, text: str) -> list[str]:
        """The sentences of ``text`` in the teacher's phonemes."""
        return self._voice.phonemize(text)

    def speak(self, text: str, delivery: Manner = Manner()) -> list[SpokenSentence]:
        noise = SeededNoise(delivery.seed)
        return [self._spoken(self._voice.ids(sentence), delivery, noise) for sentence in self.phonemes(text)]

    def _spoken(self, ids: Sequence[int], delivery: Manner, noise: SeededNoise) -> SpokenSentence:
        symbols = tuple(self._symbols[number] for number in ids)
        conditions, pitch, owners = self._planned(ids, delivery.tempo)
        if delivery.emphasis is not None:
            word = word_at(symbols, delivery.emphasis)
            conditions, pitch, owners = _emphasised(conditions, pitch, owners, word, delivery.strength)
        hidden = torch.from_numpy(self.hidden(conditions))
        voiced = torch.from_numpy(_sung(pitch, delivery.pitch, delivery.pitch_range))
        scale = None if delivery.formant == 1 else torch.full((len(hidden),), delivery.formant)
        return SpokenSentence(
            symbols,
            tuple(np.bincount(owners, minlength=len(ids)).tolist()),
            self._decoder.space.latents(hidden, voiced).numpy(),
            self._decoder.decode_hidden(hidden, voiced, scale, noise=noise).numpy(),
        )

    def _planned(self, ids: Sequence[int], tempo: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The decoder's input (130, n), the pitch (n,) in hertz, and the symbol index of each frame (n,)."""
        given = {"ids": np.array([ids], np.int64), "speed": np.array([tempo], np.float32)}
        units, conditions, pitch = self._first.run([UNITS, CONDITIONS, PITCH], given)
        owners = np.repeat(np.arange(len(ids)), UNIT_FRAMES * units.reshape(-1).astype(int))
        lengths = np.bincount(owners, minlength=len(ids)).tolist()
        kept = slice(max(lengths[0] - LEAD, 0), len(owners) - max(lengths[-1] - TAIL, 0))
        return conditions[0][:, kept], pitch[0][kept], owners[kept]

    def conditions(self, phonemes: str) -> np.ndarray:
        """The decoder's input (130, n) for a sentence in the teacher's own delivery."""
        return self._planned(self._voice.ids(phonemes), 1.0)[0]

    def hidden(self, conditions: np.ndarray) -> np.ndarray:
        """Output of the fourth block, (n, 256) float32, for the decoder's input (130, n)."""
        (hidden,) = self._second.run([HIDDEN], {CONDITIONS: conditions[None]})
        return np.ascontiguousarray(hidden[0].T)


def at_prompt_level(sentences: Sequence[SpokenSentence]) -> np.ndarray:
    """``sentences`` concatenated, (n,) float32 at the level of an F5 prompt."""
    samples = np.concatenate([one.samples for one in sentences]) * math.exp(LEVEL_MEAN)
    return np.asarray(samples / max(1.0, float(np.abs(samples).max()) / LARGEST), np.float32)


def _session(graph: onnx.ModelProto, inputs: list[str], outputs: list[str]) -> onnxruntime.InferenceSession:
    """Single-threaded session of a part of ``graph``."""
    import onnxruntime
    from onnx.utils import Extractor

    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    part = Extractor(graph).extract_model(inputs, outputs)
    return onnxruntime.InferenceSession(part.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _emphasised(
    conditions: np.ndarray, pitch: np.ndarray, owners: np.ndarray, word: np.ndarray, strength: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make the word of the symbols ``word`` longer, higher and louder, most in its middle."""
    inside = np.flatnonzero(np.isin(owners, word))
    if not len(inside):
        return conditions, pitch, owners
    longer = np.linspace(0, len(inside), round(len(inside) * (1 + LONGER * strength)), endpoint=False).astype(int)
    order = np.concatenate([np.arange(inside[0]), inside[longer], np.arange(inside[-1] + 1, len(owners))])
    bump = np.zeros(len(order), np.float32)
    bump[inside[0] : inside[0] + len(longer)] = np.hanning(len(longer) + 2)[1:-1] * strength
    conditions, pitch = conditions[:, order], pitch[order] * np.exp(HIGHER * bump)
    conditions[LOG_PITCH] = np.log1p(np.maximum(pitch, 0)) / LOG_PITCH_SCALE
    conditions[ENERGY] *= 1 + LOUDER * bump
    return conditions, pitch, owners[order]


def _sung(pitch: np.ndarray, factor: float, spread: float) -> np.ndarray:
    """Scale ``pitch`` (n,) in hertz by ``factor`` and its spread around the mean by ``spread`` (both in the log
    domain); 0 where unvoiced."""
    voiced = pitch > LOWEST_VOICED
    if not voiced.any():
        return np.zeros_like(pitch)
    mean = np.log(pitch[voiced]).mean()
    moved = np.exp(mean + spread * (np.log(np.maximum(pitch, 1)) - mean)) * factor
    return np.where(voiced, moved, 0).astype(np.float32)


def original_speech(text: str, voice: Voice) -> np.ndarray:
    """``text`` in the original speaker of ``voice``: (n,) float32 at 24 kHz, at prompt level. Raises
    :class:`PlainError` if the voice is not bundled, or its speaker is not installed."""
    return at_prompt_level(_spoken(text, _origin(voice)))


def decoder_copy(text: str, voice: Voice) -> np.ndarray:
    """Copy synthesis of :func:`original_speech` by the bundled decoder: (n,) float32 at 24 kHz, the upper limit for a
    model of these latents. Raises :class:`PlainError` likewise."""
    origin = _origin(voice)
    spoken = _spoken(text, origin)
    copies = [_decoder().decode(torch.from_numpy(one.latents), formant_scale=origin.formant) for one in spoken]
    return torch.cat(copies).numpy()


def _origin(voice: Voice) -> Origin:
    origin = origin_of(voice)
    if origin is None:
        raise PlainError(f"There is no recording of {voice.title} saying this sentence.")
    return origin


def _spoken(text: str, origin: Origin) -> list[SpokenSentence]:
    return shared_teacher().speak(text, Manner(origin.pitch, origin.formant))


@functools.cache
def shared_teacher() -> NaturalTeacher:
    return NaturalTeacher(_decoder())


@functools.cache
def _decoder() -> NaturalDecoder:
    return NaturalDecoder.load()
