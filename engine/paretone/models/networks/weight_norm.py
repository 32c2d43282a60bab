"""Weight normalisation as official files store it, multiplied out once when they are read.

A normalised weight is ``g · v / ‖v‖``, with one ``g`` and one norm for each entry of the first axis (Salimans and
Kingma, arXiv 1602.07868; ``torch.nn.utils.weight_norm`` with ``dim=0``). That axis is the output channel of a
convolution and the input channel of a transposed one. PyTorch has two ways of naming the pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from paretone.models.files.checkpoints import check_shapes, load_strictly


@dataclass(frozen=True)
class Naming:
    """Names of the two halves of a weight."""

    magnitude: str
    direction: str


HOOKED = Naming("weight_g", "weight_v")
"""Names that ``torch.nn.utils.weight_norm`` gives."""
PARAMETRISED = Naming("parametrizations.weight.original0", "parametrizations.weight.original1")
"""Names that ``torch.nn.utils.parametrizations.weight_norm`` gives."""


def stored_shapes(
    module: nn.Module, naming: Naming = HOOKED, plain: tuple[str, ...] = ()
) -> dict[str, tuple[int, ...]]:
    """Names and shapes that a file has for ``module`` when all of its convolutions were normalised, but for those
    whose names begin with one of ``plain``."""
    convolutions = {
        f"{name}.weight"
        for name, part in module.named_modules()
        if isinstance(part, nn.Conv1d | nn.ConvTranspose1d) and not name.startswith(plain)
    }
    shapes: dict[str, tuple[int, ...]] = {}
    for name, value in module.state_dict().items():
        if name in convolutions:
            layer = name.removesuffix("weight")
            shapes[layer + naming.magnitude] = (value.shape[0], *(1 for _ in value.shape[1:]))
            shapes[layer + naming.direction] = tuple(value.shape)
        else:
            shapes[name] = tuple(value.shape)
    return shapes


def fused(weights: Mapping[str, Tensor], naming: Naming = HOOKED) -> dict[str, Tensor]:
    """``weights`` with every pair of a magnitude and a direction multiplied out to one ``…weight``."""
    result = {}
    for name, value in weights.items():
        if name.endswith(naming.direction):
            layer = name.removesuffix(naming.direction)
            result[layer + "weight"] = torch._weight_norm(value, weights[layer + naming.magnitude], 0)
        elif not name.endswith(naming.magnitude):
            result[name] = value
    return result


def load_normalised(
    module: nn.Module,
    weights: Mapping[str, Tensor],
    where: str,
    naming: Naming = HOOKED,
    plain: tuple[str, ...] = (),
) -> None:
    """Copy the ``weights`` of a file into ``module``, strictly, with the normalisation multiplied out.

    Raises :class:`paretone.errors.CheckpointError` that names the keys at fault as the file has them.
    """
    found = {name: tuple(value.shape) for name, value in weights.items()}
    check_shapes(stored_shapes(module, naming, plain), found, where)
    load_strictly(module, fused(weights, naming), where)
