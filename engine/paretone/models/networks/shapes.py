"""Modules without weights: for the shapes of an architecture, or to take tensors that are there already or are read.

Sizes come from files of other people, so that a module may be held against the weights that it is to take while it is
made: a description that asks for a billion layers ends after as many as there are weights, before memory does.
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
"""What a module may have beyond twice the weights: windows, rotations and other tables that files do not hold."""
_FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn, torch.full)


@contextmanager
def without_weights(weights: Held | None = None, where: str = "") -> Iterator[None]:
    """Modules that are made within have parameters of the right shapes on the meta device, without values.

    If ``weights`` are given, which came from ``where``, raises :class:`CheckpointError` for sizes that cannot be those
    of a module that takes them.
    """
    with _sizes(weights, where) as mode, torch.device("meta"), mode:
        yield


@contextmanager
def uninitialised(weights: Held | None = None, where: str = "") -> Iterator[None]:
    """Modules that are made within have parameters with any values, for weights that are read into all of them: drawing
    initial ones takes a sixth of the time to load a small model. ``weights`` as for :func:`without_weights`."""
    with _sizes(weights, where) as mode, mode:
        yield


@contextmanager
def _sizes(weights: Held | None, where: str) -> Iterator[_Uninitialised]:
    if weights is None:
        yield _Uninitialised()
        return
    try:
        yield _Bounded(weights, where)
    except (RuntimeError, ValueError, TypeError, ArithmeticError, AssertionError, LookupError) as error:
        if is_out_of_memory(error):
            raise
        raise CheckpointError(
            f"The network of {where} cannot have the sizes in its description ({first_line(error)}); download both "
            "again."
        ) from error


class _Uninitialised(TorchFunctionMode):
    """Leaves parameters as they are: drawing what nobody reads would import torch's compiler, for seconds."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        arguments: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
    ) -> Any:
        if getattr(function, "__module__", "") == "torch.nn.init":
            return arguments[0] if arguments else (named or {})["tensor"]
        return function(*arguments, **(named or {}))


class _Bounded(_Uninitialised):
    """Counts the tensors that are made, before they are."""

    def __init__(self, weights: Held, where: str) -> None:
        super().__init__()
        shapes = [tuple(getattr(one, "shape", one)) for one in weights.values()]
        self._where, self._count, self._held = where, len(shapes), sum(map(math.prod, shapes))
        self._tensors, self._numbers = 2 * self._count + _SPARE_TENSORS, 2 * self._held + _SPARE_NUMBERS

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        arguments: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
    ) -> Any:
        if function in _FACTORIES:
            self._count_in(arguments, named or {})
        return super().__torch_function__(function, types, arguments, named)

    def _count_in(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
        size = named.get("size", arguments)
        flat = [axis for one in size for axis in (one if isinstance(one, tuple | list | torch.Size) else (one,))]
        self._tensors -= 1
        self._numbers -= math.prod(axis for axis in flat if isinstance(axis, int) and axis > 0)
        if self._tensors < 0 or self._numbers < 0:
            raise CheckpointError(
                f"{self._where} does not fit its description, which asks for more than its {grouped(self._count)} "
                f"weights of {grouped(self._held)} numbers; download both again."
            )
