"""Modules without weights: for the shapes of an architecture, or to be filled with existing weights.

Sizes come from other people's files, so construction can be limited by the weights that the module will take: a
description of a billion layers fails after as many as there are weights, before memory runs out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from paretone.errors import CheckpointError, is_out_of_memory
from paretone.reading import first_line
from paretone.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Generic, TypeVar, overload

    Kind = TypeVar("Kind", bound=nn.Module)

    class Modules(nn.ModuleList, Generic[Kind]):
        def __init__(self, modules: Iterable[Kind] = ()) -> None: ...

        def __iter__(self) -> Iterator[Kind]: ...

        @overload
        def __getitem__(self, idx: slice) -> Modules[Kind]: ...

        @overload
        def __getitem__(self, idx: int) -> Kind: ...

        def __getitem__(self, idx: int | slice) -> Modules[Kind] | Kind: ...

else:
    Modules = nn.ModuleList


Held = Mapping[str, Tensor] | Mapping[str, tuple[int, ...]]
"""Weights, or their shapes, by name."""
_SPARE_TENSORS, _SPARE_NUMBERS = 64, 1 << 26
"""Allowance beyond twice the weights: windows, rotations and other tables that files do not contain."""
_FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn, torch.full)


@contextmanager
def without_weights(weights: Held | None = None, where: str = "") -> Iterator[None]:
    """Create modules on the meta device: parameters have shapes but no values. With ``weights`` from ``where``, raises
    :class:`CheckpointError` for sizes impossible for a module that takes them."""
    with _sizes(weights, where) as mode, torch.device("meta"), mode:
        yield


@contextmanager
def uninitialised(weights: Held | None = None, where: str = "") -> Iterator[None]:
    """Create modules with uninitialised parameters, all to be overwritten: initialisation takes a sixth of the loading
    time of a small model. ``weights`` as in :func:`without_weights`."""
    with _sizes(weights, where) as mode, mode:
        yield


@contextmanager
def _sizes(weights: Held | None, where: str) -> Iterator[_Building]:
    try:
        yield _Building(weights, where)
    except (RuntimeError, ValueError, TypeError, ArithmeticError, AssertionError, LookupError) as error:
        if weights is None or is_out_of_memory(error):
            raise
        raise CheckpointError(
            f"The network of {where} cannot have the sizes in its description ({first_line(error)}); download both "
            "again."
        ) from error


class _Building(TorchFunctionMode):
    """Skips initialisation, which would import torch's compiler, and counts tensors that ``weights`` limit."""

    def __init__(self, weights: Held | None, where: str) -> None:
        super().__init__()
        self._limited = weights is not None
        shapes = [tuple(getattr(one, "shape", one)) for one in (weights or {}).values()]
        self._where, self._count, self._held = where, len(shapes), sum(map(math.prod, shapes))
        self._tensors, self._numbers = 2 * self._count + _SPARE_TENSORS, 2 * self._held + _SPARE_NUMBERS

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        arguments: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
    ) -> Any:
        named = named or {}
        if getattr(function, "__module__", "") == "torch.nn.init":
            return arguments[0] if arguments else named["tensor"]
        if self._limited and function in _FACTORIES:
            size = named.get("size", arguments)
            flat = [axis for one in size for axis in (one if isinstance(one, tuple | list | torch.Size) else (one,))]
            self._tensors -= 1
            self._numbers -= math.prod(axis for axis in flat if isinstance(axis, int) and axis > 0)
            if self._tensors < 0 or self._numbers < 0:
                raise CheckpointError(
                    f"{self._where} does not fit its description, which asks for more than its {grouped(self._count)} "
                    f"weights of {grouped(self._held)} numbers; download both again."
                )
        return function(*arguments, **named)
