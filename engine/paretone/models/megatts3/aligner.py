"""The aligner: a recording to its phones, tones and durations, by a small Whisper that writes phones and end times.

Official layout (``tts/modules/aligner/whisper_small.py``, after Radford et al., arXiv 2212.04356). Tokens alternate
between a phone and its end time, 800 + frames of 10 ms. Upstream evaluates the whole sequence for every token; here
keys and values are cached, which gives the same tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.audio.mel import whisper_mel
from paretone.errors import AudioError, CheckpointError
from paretone.models.files.checkpoints import loaded_strictly, shapes_of
from paretone.models.files.config_file import WeightShapes
from paretone.models.megatts3.phones import Timed, separated
from paretone.models.networks.incremental import Growing
from paretone.models.networks.layers import split_heads
from paretone.models.networks.shapes import Modules
from paretone.observer import Check
from paretone.wording import beyond

SAMPLE_RATE, HOP = 16000, 160
FRAMES_MULTIPLE = 8
START, END, TIME_ZERO = 798, 799, 800
LONGEST = 768
"""Maximum number of tokens, as upstream."""


@dataclass(frozen=True)
class AlignerConfig:
    """Sizes, hard-coded upstream."""

    bands: int = 80
    width: int = 512
    heads: int = 8
    layers: int = 6
    places: int = 3000
    """Encoder positions, of 20 ms each."""
    tokens: int = 2048
    """Decoder positions."""
    vocabulary: int = 6800

    @classmethod
    def of_weights(cls, weights: Mapping[str, Tensor], where: str) -> AlignerConfig:
        """Sizes from the official tensors, with the released number of heads. Raises :class:`CheckpointError`."""
        shape = WeightShapes(shapes_of(weights), where, "a MegaTTS 3 aligner")
        width, bands, _ = shape("encoder.conv1.weight", 3)
        config = cls(
            bands=bands,
            width=width,
            layers=shape.count(r"decoder\.blocks\.(\d+)\."),
            places=shape("encoder.positional_embedding", 2)[0],
            tokens=shape("decoder.positional_embedding", 2)[0],
            vocabulary=shape("decoder.out_proj.bias", 1)[0],
        )
        if config.vocabulary <= TIME_ZERO or config.width % config.heads:
            raise CheckpointError(
                f"{where} is not a MegaTTS 3 aligner: it has {config.vocabulary} tokens, where more than {TIME_ZERO} "
                f"are needed, or its width {config.width} is not a multiple of {config.heads}."
            )
        return config


def log_mel(samples: Tensor, bands: int = 80) -> Tensor:
    """Whisper's front end: 16 kHz ``samples`` (n,) to (1, bands, n // 160), cut to a multiple of eight frames. Raises
    :class:`AudioError` for a recording shorter than that."""
    if samples.shape[-1] < FRAMES_MULTIPLE * HOP:
        raise AudioError(
            f"The reference recording lasts {samples.shape[-1] / SAMPLE_RATE:.2f} s; at least 1 s of speech is needed."
        )
    levels = whisper_mel(samples, bands)
    return levels[None, :, : levels.shape[-1] // FRAMES_MULTIPLE * FRAMES_MULTIPLE]


class AlignerAttention(nn.Module):
    """Multi-head attention without a bias for keys."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, n, width) to twice (B, heads, n, width / heads)."""
        return split_heads(self.key(x), self.heads), split_heads(self.value(x), self.heads)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, causal: bool = False) -> Tensor:
        """(B, n, width) to the same shape."""
        query = split_heads(self.query(x), self.heads)
        found = functional.scaled_dot_product_attention(query, keys, values, is_causal=causal)
        return self.out(found.transpose(1, 2).flatten(2))


class AlignerBlock(nn.Module):
    """Self-attention, in the decoder cross-attention to the recording, and feed-forward, each after a norm."""

    def __init__(self, width: int, heads: int, hears: bool) -> None:
        super().__init__()
        self.attn = AlignerAttention(width, heads)
        self.attn_ln = nn.LayerNorm(width)
        if hears:
            self.cross_attn = AlignerAttention(width, heads)
            self.cross_attn_ln = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.mlp_ln = nn.LayerNorm(width)


class AudioEncoder(nn.Module):
    """Mel frames of 10 ms to features of 20 ms."""

    positional_embedding: Tensor

    def __init__(self, config: AlignerConfig) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(config.bands, config.width, 3, padding=1)
        self.conv2 = nn.Conv1d(config.width, config.width, 3, stride=2, padding=1)
        self.register_buffer("positional_embedding", torch.empty(config.places, config.width))
        self.blocks = Modules(AlignerBlock(config.width, config.heads, False) for _ in range(config.layers))
        self.ln_post = nn.LayerNorm(config.width)

    def forward(self, mel: Tensor) -> Tensor:
        """(B, bands, frames) to (B, frames / 2, width)."""
        x = functional.gelu(self.conv2(functional.gelu(self.conv1(mel)))).transpose(1, 2)
        x = x + self.positional_embedding[: x.shape[1]]
        for block in self.blocks:
            normed = block.attn_ln(x)
            x = x + block.attn(normed, *block.attn.keys_and_values(normed))
            x = x + block.mlp(block.mlp_ln(x))
        return self.ln_post(x)


class Cache:
    """Keys and values of one layer, for the recording and for the tokens so far."""

    def __init__(self, block: AlignerBlock, features: Tensor) -> None:
        self.heard = block.cross_attn.keys_and_values(features)
        self.keys, self.values = Growing(), Growing()


class AlignerDecoder(nn.Module):
    """Tokens so far to scores of the next."""

    def __init__(self, config: AlignerConfig) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)
        self.positional_embedding = nn.Parameter(torch.empty(config.tokens, config.width))
        self.blocks = Modules(AlignerBlock(config.width, config.heads, True) for _ in range(config.layers))
        self.ln = nn.LayerNorm(config.width)
        self.out_proj = nn.Linear(config.width, config.vocabulary)

    def begin(self, features: Tensor) -> list[Cache]:
        """Caches for a recording's ``features`` (B, n, width)."""
        return [Cache(block, features) for block in self.blocks]

    def forward(self, tokens: Tensor, caches: Sequence[Cache]) -> Tensor:
        """Scores (B, n, vocabulary) after each of n more ``tokens`` (B, n): one, or any number at the start."""
        start = caches[0].keys.length
        x = self.token_embedding(tokens) + self.positional_embedding[start : start + tokens.shape[1]]
        for block, cache in zip(self.blocks, caches, strict=True):
            normed = block.attn_ln(x)
            keys, values = block.attn.keys_and_values(normed)
            x = x + block.attn(normed, cache.keys.extend(keys), cache.values.extend(values), tokens.shape[1] > 1)
            x = x + block.cross_attn(block.cross_attn_ln(x), *cache.heard)
            x = x + block.mlp(block.mlp_ln(x))
        return self.out_proj(self.ln(x))


class Aligner(nn.Module):
    def __init__(self, config: AlignerConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = AudioEncoder(config)
        self.decoder = AlignerDecoder(config)

    @torch.inference_mode()
    def tokens(self, mel: Tensor, longest: int = LONGEST, check: Check = lambda: None) -> list[int]:
        """Greedy decoding of ``mel`` (1, bands, frames): :data:`START` first, :data:`END` last unless ``longest``
        tokens came without it. ``check`` is called per token and may raise to cancel.

        Raises :class:`AudioError` if the recording is too long.
        """
        if mel.shape[-1] > 2 * self.config.places:
            raise AudioError(
                f"The reference recording lasts {beyond(mel.shape[-1] / 100)}; cut it to {self.config.places / 50:.0f} "
                "s or less, best 5 to 20 s."
            )
        longest = min(longest, self.config.tokens)
        caches = self.decoder.begin(self.encoder(mel))
        found = [START]
        while len(found) <= longest and found[-1] != END:
            check()
            scores = self.decoder(torch.tensor([found[-1:]], device=mel.device), caches)
            found.append(int(scores[0, -1].argmax()))
        return found

    def align(self, samples: Tensor, check: Check = lambda: None) -> Timed:
        """Phones of 16 kHz ``samples`` (n,). Raises :class:`AudioError` without any."""
        mel = log_mel(samples, self.config.bands)
        return read_alignment(self.tokens(mel, check=check)[1:-1], mel.shape[-1])

    @classmethod
    def from_official(cls, weights: Mapping[str, Tensor], where: str) -> Aligner:
        """Load the official tensors, ``['state_dict']['model']``, strictly. Raises :class:`CheckpointError`."""
        config = AlignerConfig.of_weights(weights, where)
        return loaded_strictly(lambda: cls(config), weights, where)


def read_alignment(tokens: Sequence[int], frames: int) -> Timed:
    """Phones, tones and durations from tokens without :data:`START` and :data:`END`, lasting ``frames`` in total.

    As upstream, missing frames go to the last phone, and excess frames are taken from one phone after another, starting
    with the first. Beyond upstream: a final phone without a time is dropped, and no duration becomes negative through
    decreasing times or removal. Raises :class:`AudioError` without any phone.
    """
    pairs = list(zip(tokens[::2], tokens[1::2], strict=False))
    if not pairs:
        raise AudioError("No speech was found in the recording; choose one of clear English or Chinese speech.")
    phones, tones = zip(*(separated(phone) for phone, _ in pairs), strict=True)
    ends = [0, *(time - TIME_ZERO if time >= TIME_ZERO else time for _, time in pairs)]
    durations = [max(end - start, 0) for start, end in pairwise(ends)]
    excess = sum(durations) - frames
    if excess < 0:
        durations[-1] -= excess
    while excess > 0:
        for place, duration in enumerate(durations):
            if duration and excess:
                durations[place] -= 1
                excess -= 1
    return Timed(phones, tones, tuple(durations))
