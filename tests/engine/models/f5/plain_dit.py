"""F5's DiT written down as the facts say it, with nothing saved: what the exact savings are compared with. And what
holds for the layers of every diffusion transformer.

Each branch is its own pass; times, text, projections, modulation and rotations are computed anew for every evaluation.
"""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from paretone.models.f5.config import BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.kernels import products
from paretone.models.networks.diffusion import Conditioning, DiffusionTransformer
from paretone.models.networks.layers import SelfAttention


def prepare(backbone: DiffusionTransformer, prepared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave ``backbone`` ``plain``, have it ``fused``, or fused so that its layers run ``by blocks`` of a few rows."""
    by_blocks = prepared == "by blocks"
    monkeypatch.setattr(products, "NARROWEST", 1 if by_blocks else 1 << 20)
    if by_blocks:
        if not products.available():
            pytest.skip("this build of torch cannot pack weights")
        monkeypatch.setattr(products, "LEAST_WORK", 1)
        monkeypatch.setattr(products, "ROWS", 8)
        monkeypatch.setattr(products, "FEED_FORWARD_ROWS", 16)
    if prepared != "plain":
        backbone.fuse()
    packed = {module.is_packed(backbone.final_norm.linear.weight) for module in backbone.block(0)[1:]}
    assert packed == {by_blocks}


def plain_velocity(dit: DiT, x: Tensor, prompt: Tensor, ids: Tensor, time: float, drop: bool) -> Tensor:
    """One branch's velocity for one item, (1, frames, bands)."""
    frames = x.shape[1]
    vector = dit.time_embed(torch.tensor([time]))
    text = dit.text_embed(ids, frames, drop)
    given = torch.zeros_like(prompt) if drop else prompt
    projected = dit.input_embed.proj(torch.cat([x, given, text], dim=-1))
    hidden = dit.input_embed.conv_pos_embed.conv1d(projected.transpose(1, 2)).transpose(1, 2) + projected
    entered, hidden = hidden, plain_layers(dit, hidden, vector, lambda forward, x: forward(x))
    if dit.long_skip_connection is not None:
        hidden = dit.long_skip_connection(torch.cat([hidden, entered], dim=-1))
    return dit.proj_out(plain_end(dit, hidden, vector))


def plain_layers(
    backbone: DiffusionTransformer, hidden: Tensor, vector: Tensor, forward: Callable[[nn.Module, Tensor], Tensor]
) -> Tensor:
    """All layers at the time that ``vector`` embeds; ``forward`` runs a feed-forward network."""
    for norm, attention, network in backbone.blocks:
        parts = norm.linear(F.silu(vector)).chunk(6, dim=-1)
        shift, scale, gate, shift_forward, scale_forward, gate_forward = (part[:, None] for part in parts)
        hidden = hidden + gate * plain_attention(attention, plain_norm(hidden) * (1 + scale) + shift)
        hidden = hidden + gate_forward * forward(network, plain_norm(hidden) * (1 + scale_forward) + shift_forward)
    return hidden


def plain_end(backbone: DiffusionTransformer, hidden: Tensor, vector: Tensor) -> Tensor:
    """The final norm."""
    scale, shift = (part[:, None] for part in backbone.final_norm.linear(F.silu(vector)).chunk(2, dim=-1))
    return plain_norm(hidden) * (1 + scale) + shift


def plain_attention(attention: SelfAttention, x: Tensor) -> Tensor:
    """Attention of one item head by head, with rotations by sines and cosines of each position's angles."""
    outputs = []
    rotated = attention.heads if attention.rotary_heads is None else attention.rotary_heads
    queries, keys, values = (projection(x)[0].chunk(attention.heads, dim=-1) for projection in attention.inputs)
    for head, (query, key, value) in enumerate(zip(queries, keys, values, strict=True)):
        query, key = attention.normalised(query, key)
        if head < rotated:
            query, key = _rotated(query), _rotated(key)
        outputs.append((query @ key.T / math.sqrt(query.shape[-1])).softmax(dim=-1) @ value)
    return attention.output(torch.cat(outputs, dim=-1))[None]


def _rotated(x: Tensor) -> Tensor:
    result = torch.empty_like(x)
    for pair in range(x.shape[1] // 2):
        angles = torch.arange(len(x)) * 10000.0 ** (-2 * pair / x.shape[1])
        first, second = x[:, 2 * pair], x[:, 2 * pair + 1]
        result[:, 2 * pair] = first * angles.cos() - second * angles.sin()
        result[:, 2 * pair + 1] = second * angles.cos() + first * angles.sin()
    return result


def plain_norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], eps=1e-6)


def require_own_maps(
    backbone: DiffusionTransformer, layer: int, state: Tensor, run: Conditioning
) -> tuple[Tensor, Tensor]:
    """The attention maps of a layer are those of its attention: return its input and the maps."""
    seen: dict[str, Tensor] = {}
    hidden = backbone.enter(state, 0, run)
    backbone.layer(layer, hidden, 0, run, probe=lambda _, name, value: seen.update({name: value}))
    given = seen["attention_input"]
    query, key, _ = backbone.block(layer).attention.queries_keys_values(given, run.rotary)
    expected = (query @ key.transpose(2, 3) / query.shape[-1] ** 0.5).softmax(-1).mean(1)
    torch.testing.assert_close(backbone.attention_maps(layer, given, run, 512), expected, atol=1e-6, rtol=0)
    return given, expected


def counted(compute: Callable[[], object]) -> int:
    """Operations by torch's counter, which does not know the fused attention kernels of a CPU."""
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        compute()
    return counter.get_total_flops()


def small_dit(seed: int = 0, **changes: object) -> DiT:
    """A random DiT with every parameter away from zero."""
    sizes = {"dim": 64, "depth": 3, "heads": 2, "dim_head": 32, "text_dim": 32, "conv_layers": 2, "text_num_embeds": 20}
    torch.manual_seed(seed)
    dit = DiT(BackboneConfig("DiT", **(sizes | {"text_mask_padding": True, "mel_dim": 20} | changes)))
    with torch.no_grad():
        for parameter in dit.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return dit.eval().requires_grad_(False)
