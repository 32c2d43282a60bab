"""Networks as if they had been trained: before, parts of them hold zeros, which no file of weights may."""

from typing import TypeVar

import torch
from torch import nn

from paretone.models.files.checkpoints import is_matrix

Network = TypeVar("Network", bound=nn.Module)


def awake(network: Network) -> Network:
    """``network`` with small random numbers in its matrices of zeros; those of others stay as they are."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, value in network.state_dict(keep_vars=True).items():
            if value.is_floating_point() and (is_matrix(value) or name.endswith(".weight")) and not value.any():
                value.copy_(0.1 * torch.randn(value.shape, generator=generator))
    return network
