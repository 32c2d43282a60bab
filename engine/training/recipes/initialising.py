"""Initial weights of bundled models, such that depth needs no warm-up."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from engine.models.networks.causal import TransformerLayer
from engine.models.networks.diffusion import DiffusionTransformer


@torch.no_grad()
def open_gates(model: DiffusionTransformer) -> None:
    """AdaLN at zero, as officially, except that the gates start half open."""
    for block in model.blocks:
        linear = block.norm.linear
        linear.weight.zero_()
        shift, scale, gate, shift_forward, scale_forward, gate_forward = linear.bias.chunk(6)
        for part in (shift, scale, shift_forward, scale_forward):
            part.zero_()
        for part in (gate, gate_forward):
            part.fill_(0.5)
    model.final_norm.linear.weight.zero_()
    model.final_norm.linear.bias.zero_()


@torch.no_grad()
def begin_as_nothing(layers: Iterable[TransformerLayer]) -> None:
    """Every layer adds nothing to its input."""
    for layer in layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
