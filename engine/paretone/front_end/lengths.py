"""Mean duration of each symbol of a sentence, without knowledge of its delivery.

The layout is that of hibari-tts's length network: an embedding, two ConvNeXt blocks, one transformer layer applied six
times, and two convolutions. Its weights are those of the wheel: matrices in 8-bit integers with one scale each, the
rest in half precision; see ``NOTICE`` next to the file. The same network timed the bundled models' training speech, so
no training is needed and mean lengths are exact.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from paretone.front_end.lexicon import bundled, read_network
from paretone.front_end.phones import EDGE
from paretone.models.files.checkpoints import load_strictly
from paretone.models.minis.natural_decoder import EPSILON, dequantised
from paretone.models.networks.vocos import ConvNeXtBlock

FILE = "lengths.safetensors"
WIDTH, INNER, HEADS, BLOCKS, PASSES, KERNEL = 192, 384, 2, 2, 6, 5


class _Block(ConvNeXtBlock):
    def __init__(self) -> None:
        super().__init__(WIDTH, INNER, EPSILON)
        self.dwconv = nn.Conv1d(WIDTH, WIDTH, KERNEL, padding=KERNEL // 2, groups=WIDTH)


class LengthNetwork(nn.Module):
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
        """Read the file written by :mod:`tests.tools.natural_front_end`. Raises :class:`CheckpointError`."""
        weights, (symbols,) = read_network(path, "symbols")
        network = LengthNetwork(len(symbols)).eval()
        load_strictly(network, dequantised(weights), str(path))
        return cls(network, symbols)

    @torch.inference_mode()
    def units(self, symbols: Sequence[str]) -> np.ndarray:
        """(n,) float32 mean lengths of ``symbols``, a sentence with :data:`EDGE` at both ends, in units of 25 ms."""
        return self._network(torch.tensor([self._numbers.get(symbol, 0) for symbol in symbols])).numpy()


@functools.lru_cache(maxsize=1)
def default_lengths() -> SymbolLengths:
    return SymbolLengths.load(bundled(FILE))
