"""The two networks of the text front end: mean durations of symbols, and pronunciations of unknown words.

Layouts and weights are those of hibari-tts's wheel: half precision, or matrices in 8-bit integers with one scale each;
see ``NOTICE`` next to the files, which :mod:`tests.tools.natural_front_end` wrote.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from paretone.front_end.lexicon import bundled, unreadable
from paretone.front_end.phones import CONSONANTS, EDGE, STRESSES, VOWELS
from paretone.models.files.checkpoints import load_strictly
from paretone.models.minis.natural_decoder import EPSILON, dequantised
from paretone.models.networks.vocos import ConvNeXtBlock
from paretone.reading import parsed_json, require_regular


def _read(path: Path, *lists: str) -> tuple[dict[str, Tensor], list[list[str]]]:
    """The stored weights in ``path``, and ``lists`` of symbols from its header. Raises :class:`CheckpointError`."""
    try:
        require_regular(path)
        with safe_open(path, "pt") as stored:
            symbols = [parsed_json(stored.metadata()[name]) for name in lists]
            return {name: stored.get_tensor(name) for name in stored.keys()}, symbols  # noqa: SIM118
    except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise unreadable(path, error) from error


LENGTHS = "lengths.safetensors"
WIDTH, INNER, HEADS, BLOCKS, PASSES, KERNEL = 192, 384, 2, 2, 6, 5


class _Block(ConvNeXtBlock):
    def __init__(self) -> None:
        super().__init__(WIDTH, INNER, EPSILON)
        self.dwconv = nn.Conv1d(WIDTH, WIDTH, KERNEL, padding=KERNEL // 2, groups=WIDTH)


class LengthNetwork(nn.Module):
    """Mean duration of each symbol of a sentence, without knowledge of its delivery: an embedding, two ConvNeXt blocks,
    one transformer layer applied six times, and two convolutions. The same network timed the bundled models' training
    speech, so no training is needed and mean lengths are exact."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.emb = nn.Embedding(symbols, WIDTH)
        self.blocks = nn.Sequential(*(_Block() for _ in range(BLOCKS)))
        self.layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, INNER, 0.0, "gelu", EPSILON, batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.out = nn.Sequential(nn.Conv1d(WIDTH, WIDTH, 3, padding=1), nn.GELU(), nn.Conv1d(WIDTH, 1, 1))

    def forward(self, symbols: Tensor) -> Tensor:
        """(n,) symbol numbers to (n,) lengths in units of 25 ms, not rounded."""
        hidden = self.blocks(self.emb(symbols)[None].mT).mT
        for _ in range(PASSES):
            hidden = self.layer(hidden)
        return self.out(self.norm(hidden).mT).flatten().expm1()


class SymbolLengths:
    def __init__(self, network: LengthNetwork, symbols: Sequence[str]) -> None:
        """``symbols`` in the order of the network's embedding."""
        self._network = network
        self._numbers = {symbol: number for number, symbol in enumerate(symbols) if symbol != EDGE}

    @classmethod
    def load(cls, path: Path) -> SymbolLengths:
        """Raises :class:`CheckpointError`."""
        weights, (symbols,) = _read(path, "symbols")
        network = LengthNetwork(len(symbols)).eval()
        load_strictly(network, dequantised(weights), str(path))
        return cls(network, symbols)

    @torch.inference_mode()
    def units(self, symbols: Sequence[str]) -> np.ndarray:
        """(n,) float32 mean lengths of ``symbols``, a sentence with :data:`EDGE` at both ends, in units of 25 ms."""
        return self._network(torch.tensor([self._numbers.get(symbol, 0) for symbol in symbols])).numpy()


@functools.lru_cache(maxsize=1)
def default_lengths() -> SymbolLengths:
    return SymbolLengths.load(bundled(LENGTHS))


UNKNOWN_WORDS = "unknown_words.safetensors"
ALPHABETS = {"letters": "in", "phonemes": "out"}
"""Names of the two alphabets here and in the wheel."""
SLOTS, LONGEST = 4, 24
_SPOKEN = frozenset((*VOWELS, *CONSONANTS, *STRESSES[1:], " "))


class _Speller(nn.Module):
    """Words missing from the dictionary from their letters: a small transformer, trained on readings of espeak-ng. Each
    letter has four slots for phonemes; repeated and empty ones are left out, as in connectionist temporal
    classification."""

    def __init__(self, letters: int, phonemes: int) -> None:
        super().__init__()
        width, inner, heads, layers = 128, 384, 4, 4
        self.emb = nn.Embedding(letters + 1, width)
        self.pos = nn.Parameter(torch.zeros(LONGEST, width))
        self.layers = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(width, heads, inner, 0.0, "gelu", batch_first=True, norm_first=True)
                for _ in range(layers)
            )
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, SLOTS * (phonemes + 1))

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
        """Raises :class:`CheckpointError`."""
        weights, (letters, phonemes) = _read(path, *ALPHABETS)
        network = _Speller(len(letters), len(phonemes)).eval()
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
    return UnknownWords.load(bundled(UNKNOWN_WORDS))
