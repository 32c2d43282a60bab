"""Weight normalisation as official files store it, multiplied out once when they are read.

A normalised weight is ``g · v / ‖v‖``, with one ``g`` and one norm for each entry of the first axis (Salimans and
Kingma, arXiv 1602.07868; ``torch.nn.utils.weight_norm`` with ``dim=0``). That axis is the output channel of a
convolution and the input channel of a transposed one.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from engine.models.checkpoints import check_shapes, load_strictly

_MAGNITUDE, _DIRECTION = "_g", "_v"


def stored_shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    """Names and shapes that a file has for ``module`` when all of its convolutions were normalised."""
    convolutions = {
        f"{name}.weight" for name, part in module.named_modules() if isinstance(part, nn.Conv1d | nn.ConvTranspose1d)
    }
    shapes: dict[str, tuple[int, ...]] = {}
    for name, value in module.state_dict().items():
        if name in convolutions:
            shapes[name + _MAGNITUDE] = (value.shape[0], *(1 for _ in value.shape[1:]))
            shapes[name + _DIRECTION] = tuple(value.shape)
        else:
            shapes[name] = tuple(value.shape)
    return shapes


def fused(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """``weights`` with every pair of ``…weight_g`` and ``…weight_v`` multiplied out to one ``…weight``."""
    result = {}
    for name, value in weights.items():
        magnitude = weights.get(name.removesuffix(_DIRECTION) + _MAGNITUDE)
        if name.endswith(f"weight{_DIRECTION}") and magnitude is not None:
            norm = value.norm(dim=tuple(range(1, value.dim())), keepdim=True)
            result[name.removesuffix(_DIRECTION)] = value * (magnitude / norm)
        elif not name.endswith(f"weight{_MAGNITUDE}"):
            result[name] = value
    return result


def load_normalised(module: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Copy the ``weights`` of a file into ``module``, strictly, with the normalisation multiplied out.

    Raises :class:`engine.errors.CheckpointError` that names the keys at fault as the file has them.
    """
    check_shapes(stored_shapes(module), {name: tuple(value.shape) for name, value in weights.items()}, where)
    load_strictly(module, fused(weights), where)
