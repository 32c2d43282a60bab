"""Initial weights of bundled models, such that depth needs no warm-up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import nn

from paretone.models.networks.causal import TransformerLayer
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.models.networks.quantised_mel import MelStatistics


class WithMel(Protocol):
    """Interface of clips with a mel."""

    @property
    def mel(self) -> np.ndarray:
        """(frames, bands) log mel."""


def mel_frames(clips: Sequence[WithMel]) -> np.ndarray:
    """The mel frames (n, bands) of every seventh clip, float32: enough for statistics of a corpus."""
    return np.concatenate([clip.mel for clip in clips[::7]]).astype(np.float32)


@torch.no_grad()
def begin_over_mels(model: MelStatistics, clips: Sequence[WithMel]) -> None:
    """The mel statistics of ``clips``, and :func:`begin_blocks`."""
    mels = torch.from_numpy(mel_frames(clips))
    model.mel_mean.copy_(mels.mean(0))
    model.mel_scale.copy_(mels.std(0))
    begin_blocks(model)


@torch.no_grad()
def begin_blocks(model: nn.Module) -> None:
    """ConvNeXt blocks that begin close to passing their input on."""
    for name, parameter in model.named_parameters():
        if name.endswith("gamma"):
            parameter.fill_(0.2)


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
