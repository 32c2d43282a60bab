"""Pronounce words missing from the dictionary from their letters, with a small transformer.

Each letter has four slots for phonemes; repeated and empty ones are left out, as in connectionist temporal
classification. Layout and weights are those of hibari-tts's network for such words, trained on readings of espeak-ng;
see ``NOTICE`` next to the file.
"""

from __future__ import annotations

import functools
import itertools
from pathlib import Path

import torch
from torch import Tensor, nn

from paretone.front_end.lexicon import bundled, read_network
from paretone.front_end.phones import CONSONANTS, STRESSES, VOWELS
from paretone.models.files.checkpoints import load_strictly

FILE = "unknown_words.safetensors"
ALPHABETS = {"letters": "in", "phonemes": "out"}
"""Names of the two alphabets here and in the wheel."""
WIDTH, INNER, HEADS, LAYERS, SLOTS, LONGEST = 128, 384, 4, 4, 4, 24
_SPOKEN = frozenset((*VOWELS, *CONSONANTS, *STRESSES[1:], " "))


class _Network(nn.Module):
    def __init__(self, letters: int, phonemes: int) -> None:
        super().__init__()
        self.emb = nn.Embedding(letters + 1, WIDTH)
        self.pos = nn.Parameter(torch.zeros(LONGEST, WIDTH))
        self.layers = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, 0.0, "gelu", batch_first=True, norm_first=True)
                for _ in range(LAYERS)
            )
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, SLOTS * (phonemes + 1))

    def forward(self, letters: Tensor) -> Tensor:
        """(n,) letters to (4 n,) phonemes."""
        hidden = self.layers((self.emb(letters) + self.pos[: len(letters)])[None])
        return self.head(self.norm(hidden)).unflatten(-1, (SLOTS, -1)).argmax(-1).flatten()


class UnknownWords:
    def __init__(self, network: nn.Module, letters: list[str], phonemes: list[str]) -> None:
        self._network = network
        self._letters = {letter: number for number, letter in enumerate(letters, 1)}
        self._phonemes = dict(enumerate(phonemes, 1))

    @classmethod
    def load(cls, path: Path) -> UnknownWords:
        """Read the file written by :mod:`tests.tools.natural_front_end`. Raises :class:`CheckpointError`."""
        weights, (letters, phonemes) = read_network(path, *ALPHABETS)
        network = _Network(len(letters), len(phonemes)).eval()
        load_strictly(network, {name: value.float() for name, value in weights.items()}, str(path))
        return cls(network, letters, phonemes)

    @torch.inference_mode()
    def __call__(self, word: str) -> str:
        """Phonemes of the first :data:`LONGEST` letters of ``word``; empty if the network knows none of them."""
        letters = [self._letters[letter] for letter in word if letter in self._letters][:LONGEST]
        if not letters:
            return ""
        slots = self._network(torch.tensor(letters)).tolist()
        said = (self._phonemes[number] for number, _ in itertools.groupby(slots) if number)
        return "".join(phoneme for phoneme in said if phoneme in _SPOKEN)


@functools.lru_cache(maxsize=1)
def default_unknown_words() -> UnknownWords:
    return UnknownWords.load(bundled(FILE))
