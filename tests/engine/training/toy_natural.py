"""A corpus of natural speech without a teacher: mels that follow from latents, formant scale and phones."""

import numpy as np

from paretone.front_end.phones import timed_phones
from paretone.models.f5.config import HOP as MEL_HOP
from paretone.models.minis.natural_decoder import FORMANT_MEAN, FORMANT_SCALE, HOP, LATENT, SAMPLE_RATE, VOICING
from paretone.training.batches import Corpus
from paretone.training.natural_corpus import Manner, NaturalClip, SpokenSentence

SYMBOLS = ("^", "h", "ə", "l", "ˈ", "O", " ", "w", "ˈ", "ɜ", "ɹ", "l", "d", ".", "^")


def toy_natural_clip(voice: int, seed: int, frames: int = 60) -> NaturalClip:
    """A clip of about ``frames`` latent frames whose symbols last some frames each."""
    draw = np.random.default_rng(seed)
    lengths = draw.multinomial(frames, [1 / len(SYMBOLS)] * len(SYMBOLS)).tolist()
    sounds = np.random.default_rng(1).normal(0, 1, (len(SYMBOLS), LATENT))
    latents = np.repeat(sounds, lengths, axis=0) + 0.2 * draw.normal(0, 1, (frames, LATENT))
    latents[:, VOICING] = np.where(latents[:, VOICING] > 0, 1, -1)
    formant = 0.95 + 0.01 * voice
    places = np.arange((frames - 1) * HOP // MEL_HOP + 1) * MEL_HOP / HOP
    at_mel = np.stack([np.interp(places, np.arange(frames), column) for column in latents.T], axis=1)
    mixing = np.random.default_rng(0).normal(0, 0.3, (LATENT, 100))
    tilt = np.linspace(-1, 1, 100) * (formant - FORMANT_MEAN) / FORMANT_SCALE
    mel = (at_mel @ mixing + tilt - 4).astype(np.float16)
    phones = timed_phones(SYMBOLS, lengths, HOP / SAMPLE_RATE)
    return NaturalClip(f"v{voice:03d}", f"toy {seed}", formant, phones, mel, latents.astype(np.float16))


def toy_natural_corpus(clips: int = 12, frames: int = 60) -> Corpus[NaturalClip]:
    """Clips in four voices, and four held out in another."""
    training = [toy_natural_clip((0, 1, 3, 4)[seed % 4], seed, frames + seed) for seed in range(clips)]
    held_out = [toy_natural_clip(2, 100 + seed, frames + seed) for seed in range(4)]
    return Corpus(tuple(training), tuple(held_out), "toy")


class Hummer:
    """Speaks every text as one sentence of three sounds: what its letters and the delivery make of noise."""

    def __init__(self, frames: int = 20) -> None:
        self.spoken: list[str] = []
        self._frames = frames

    def speak(self, text: str, delivery: Manner) -> list[SpokenSentence]:
        self.spoken.append(text)
        draw = np.random.default_rng([len(text), delivery.seed])
        lengths = (4, self._frames + len(text) % 7, 6)
        latents = draw.normal(0, delivery.pitch, (sum(lengths), LATENT)).astype(np.float32)
        samples = draw.normal(0, 0.1, sum(lengths) * HOP).astype(np.float32)
        return [SpokenSentence(("^", "m", "^"), lengths, latents, samples)]
