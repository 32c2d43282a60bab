"""Causal transformer of speech language models: Llama and Qwen2, as published.

Own code, because versions of transformers mask cached steps differently (CosyVoice 2 babbles from 4.53 on). Parameters
have the official names from ``layers.0`` to ``norm.weight``. Positions are independent of places in the cache: a model
may restart counting within its sequence.

Sources: ``modeling_llama.py`` and ``modeling_qwen2.py`` of transformers 5.23; rotary position embedding, Su et al.,
arXiv 2104.09864, with Llama 3's scaling (``modeling_rope_utils.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.errors import CheckpointError
from paretone.models.files.config_file import ConfigFile
from paretone.models.files.layer_importance import require_layers
from paretone.models.networks.shapes import Modules, without_weights
from paretone.reading import shown
from paretone.sampling.cache import KeyValueCache
from paretone.wording import listed

Probe = Callable[[int, str, Tensor], None]
"""Called with layer, name and value of an intermediate result: ``output``, before the final norm; and on request
``attention``, (batch, heads, queries, keys)."""

NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Llama3Scaling:
    factor: float
    low_frequency_factor: float
    high_frequency_factor: float
    original_length: int


@dataclass(frozen=True)
class CausalConfig:
    KINDS: ClassVar[tuple[str, ...]] = ("llama", "qwen2")
    """Model types that :meth:`read` accepts, as in ``config.json``."""

    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    head_width: int
    feed_forward: int
    epsilon: float
    rope_theta: float
    rope_scaling: Llama3Scaling | None = None
    biased: bool = False
    """Whether the projections to queries, keys and values have a bias (Qwen2)."""
    normed: bool = False
    """Whether each head's queries and keys are normalised before rotation (Qwen3)."""

    @property
    def width(self) -> int:
        """Width of the queries of all heads."""
        return self.heads * self.head_width

    @property
    def key_width(self) -> int:
        """Width of all keys, and of all values."""
        return self.key_value_heads * self.head_width

    @property
    def weights_of_layer(self) -> int:
        return self.hidden * (2 * self.width + 2 * self.key_width + 3 * self.feed_forward)

    def operations(self, tokens: int, context: int = 0) -> float:
        """Operations of a causal pass over ``tokens`` after ``context`` others (1 multiply-add = 2), without embeddings
        and head."""
        seen = tokens * context + tokens * (tokens + 1) / 2
        return 2 * self.layers * (tokens * self.weights_of_layer + 2 * seen * self.width)

    @classmethod
    def read(cls, config: ConfigFile | Mapping) -> Self:
        """Read a Hugging Face ``config.json`` of one of :attr:`KINDS`. Raises :class:`CheckpointError` with a field."""
        file = ConfigFile.of(config)
        kind = file.text("model_type")
        if kind not in cls.KINDS:
            raise CheckpointError(f"{file.where} is of type {shown(kind)}; only {listed(cls.KINDS)} is supported.")
        for name, value in {"hidden_act": "silu", "mlp_bias": False, "use_sliding_window": False}.items():
            file.require(name, value, value)
        # transformers 5 writes theta and scaling into one object.
        rope = file.part("rope_parameters" if file.has("rope_parameters") else "rope_scaling")
        hidden, heads = file.number("hidden_size"), file.number("num_attention_heads")
        sizes = cls(
            hidden=hidden,
            layers=file.number("num_hidden_layers"),
            heads=heads,
            key_value_heads=file.number("num_key_value_heads", heads),
            head_width=file.number("head_dim", max(hidden // heads, 1)),
            feed_forward=file.number("intermediate_size"),
            epsilon=file.real("rms_norm_eps", below=1.0),
            rope_theta=(rope if rope.has("rope_theta") else file).real("rope_theta", above=1.0),
            rope_scaling=_scaling(rope),
            biased=kind == "qwen2" or file.flag("attention_bias", False),
        )
        if sizes.heads % sizes.key_value_heads or sizes.head_width % 2:
            raise CheckpointError(
                f"{file.where}: {sizes.heads} heads of width {sizes.head_width} cannot share {sizes.key_value_heads} "
                "heads of keys, or their width is odd; take the published file."
            )
        return sizes


def _scaling(rope: ConfigFile) -> Llama3Scaling | None:
    kind = rope.text("rope_type", rope.text("type", "default"))
    if kind == "default":
        return None
    if kind != "llama3":
        raise CheckpointError(f"{rope.where} scales positions by {shown(kind)}; only llama3 is supported.")
    low, high = rope.real("low_freq_factor"), rope.real("high_freq_factor")
    if low >= high:
        raise CheckpointError(f"{rope.where}: low_freq_factor {low:g} should be below high_freq_factor {high:g}.")
    return Llama3Scaling(rope.real("factor"), low, high, rope.number("original_max_position_embeddings"))


def rotary_frequencies(config: CausalConfig) -> Tensor:
    """Rotation speed of each pair of a head, (head_width / 2,) in radians per position."""
    frequencies = 1.0 / config.rope_theta ** (torch.arange(0, config.head_width, 2).float() / config.head_width)
    scaling = config.rope_scaling
    if scaling is None:
        return frequencies
    turns = scaling.original_length * frequencies / (2 * math.pi)
    span = scaling.high_frequency_factor - scaling.low_frequency_factor
    share = ((turns - scaling.low_frequency_factor) / span).clamp(0, 1)
    return (1 - share) * frequencies / scaling.factor + share * frequencies


def rotations(config: CausalConfig, positions: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines for :func:`rotate`, in the type of ``like``: (tokens, head_width) for positions (tokens,),
    (batch, 1, tokens, head_width) for (batch, tokens)."""
    angles = positions[..., None].float() * rotary_frequencies(config).to(like.device)
    angles = torch.cat([angles, angles], dim=-1)
    # One table for all heads, and for all items without their own positions.
    angles = angles[:, None] if angles.dim() == 3 else angles
    return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def block_mask(tokens: int, length: int, device: torch.device) -> Tensor:
    """Visible keys, out of ``length``, for each of the last ``tokens`` tokens, (tokens, length)."""
    return torch.ones(tokens, length, dtype=torch.bool, device=device).tril(length - tokens)


class GroupedAttention(nn.Module):
    """Projections of self-attention whose heads share keys and values in groups."""

    def __init__(self, config: CausalConfig, *, biased_output: bool) -> None:
        super().__init__()
        self.config = config
        self.q_proj = nn.Linear(config.hidden, config.width, bias=config.biased)
        self.k_proj = nn.Linear(config.hidden, config.key_width, bias=config.biased)
        self.v_proj = nn.Linear(config.hidden, config.key_width, bias=config.biased)
        self.o_proj = nn.Linear(config.width, config.hidden, bias=biased_output)


class CausalAttention(GroupedAttention):
    """Grouped-query self-attention with rotated queries and keys, (batch, tokens, hidden)."""

    def __init__(self, config: CausalConfig) -> None:
        super().__init__(config, biased_output=False)
        self.q_norm, self.k_norm = (
            nn.RMSNorm(config.head_width, config.epsilon) if config.normed else None for _ in range(2)
        )

    def forward(
        self,
        x: Tensor,
        rotary: tuple[Tensor, Tensor],
        mask: Tensor | None,
        cache: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None,
        weights: Callable[[Tensor], None] | None,
    ) -> Tensor:
        """``mask`` (tokens, keys) is true for visible keys; ``None``: causal. ``weights`` gets those of attention."""
        split = (-1, self.config.head_width)
        query, key, value = (
            projection(x).unflatten(-1, split).transpose(1, 2) for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.q_norm is not None and self.k_norm is not None:
            query, key = self.q_norm(query), self.k_norm(key)
        query, key = rotate(query, rotary), rotate(key, rotary)
        if cache is not None:
            key, value = cache(key, value)
        grouped = self.config.heads != self.config.key_value_heads
        if weights is None:
            mixed = F.scaled_dot_product_attention(query, key, value, mask, is_causal=mask is None, enable_gqa=grouped)
        else:
            if mask is None:
                mask = block_mask(query.shape[2], key.shape[2], x.device)
            groups = self.config.heads // self.config.key_value_heads
            key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
            scores = query @ key.transpose(-1, -2) * self.config.head_width**-0.5
            attention = scores.masked_fill(~mask, -math.inf).softmax(-1)
            weights(attention)
            mixed = attention @ value
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))


def rotate(x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate each pair of ``x``, (batch, heads, tokens, head_width), whose parts are in the first and second half."""
    cosines, sines = rotary
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat([-second, first], dim=-1) * sines


class GatedFeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class TransformerLayer(nn.Module):
    """One layer: attention and feed-forward, each after a norm and with a residual connection."""

    def __init__(self, config: CausalConfig, attention: GroupedAttention) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config.hidden, config.epsilon)
        self.self_attn = attention
        self.post_attention_layernorm = nn.RMSNorm(config.hidden, config.epsilon)
        self.mlp = GatedFeedForward(config.hidden, config.feed_forward)


class CausalLayer(TransformerLayer):
    """A layer whose tokens see themselves and earlier ones."""

    self_attn: CausalAttention

    def __init__(self, config: CausalConfig) -> None:
        super().__init__(config, CausalAttention(config))


class CausalTransformer(nn.Module):
    """All layers and the final norm, from embeddings to hidden states. For training and inspection; decoding uses
    :class:`paretone.models.kernels.fused_causal.FusedTransformer`."""

    def __init__(self, config: CausalConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = Modules(CausalLayer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.hidden, config.epsilon)

    def forward(
        self,
        embedded: Tensor,
        cache: KeyValueCache | None = None,
        positions: Tensor | None = None,
        probe: Probe | None = None,
        skip: frozenset[int] = NOTHING,
        *,
        attention: bool = False,
    ) -> Tensor:
        """Embeddings (batch, tokens, hidden) to hidden states of that shape, after the final norm. Tokens see the
        content of ``cache``, themselves and earlier ones, and are added to the cache. ``positions`` is (tokens,) or
        (batch, tokens); ``None``: continue from the cache's length. Layers in ``skip`` are left out. ``probe`` gets
        each layer's output, and its attention if ``attention`` is set."""
        tokens = embedded.shape[1]
        start = cache.length if cache is not None else 0
        if positions is None:
            positions = torch.arange(start, start + tokens, device=embedded.device)
        rotary = rotations(self.config, positions, embedded)
        mask = block_mask(tokens, start + tokens, embedded.device) if start else None
        hidden = embedded
        for index, layer in enumerate(self.layers):
            if index in skip:
                continue
            extend = None if cache is None else partial(cache.extend, index)
            weights = partial(probe, index, "attention") if probe is not None and attention else None
            hidden = hidden + layer.self_attn(layer.input_layernorm(hidden), rotary, mask, extend, weights)
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
            if probe is not None:
                probe(index, "output", hidden)
        if cache is not None:
            cache.advance(tokens)
        return self.norm(hidden)

    def fill(self, embedded: Tensor, cache: KeyValueCache, positions: Tensor) -> None:
        """Add ``embedded`` (batch, tokens, hidden) to ``cache``, without returning an output."""
        self(embedded, cache, positions)

    def cache(self, capacity: int, batch: int = 1) -> KeyValueCache:
        return cache_for(self.config, capacity, self.norm.weight, batch)

    def kept(self, retained: Sequence[int]) -> CausalTransformer:
        """A copy with only the layers ``retained``, in ascending order, counted from 0."""
        require_layers(retained, self.config.layers)
        with without_weights():
            smaller = CausalTransformer(replace(self.config, layers=len(retained)))
        tensors = {"norm.weight": self.norm.weight}
        for new, old in enumerate(retained):
            tensors |= {f"layers.{new}.{name}": value for name, value in self.layers[old].state_dict().items()}
        smaller.load_state_dict({name: value.detach().clone() for name, value in tensors.items()}, assign=True)
        return smaller


def cache_for(config: CausalConfig, capacity: int, like: Tensor, batch: int = 1) -> KeyValueCache:
    """An empty cache for a transformer of ``config``, with the device and type of ``like``."""
    sizes = config.layers, config.key_value_heads, capacity, config.head_width
    return KeyValueCache(*sizes, like.device, like.dtype, batch)
