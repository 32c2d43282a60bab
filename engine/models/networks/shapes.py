"""Modules without weights: for the shapes of an architecture, or to take tensors that are there already or are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


@contextmanager
def without_weights() -> Iterator[None]:
    """Modules that are made within have parameters of the right shapes on the meta device, without values."""
    with torch.device("meta"), _Uninitialised():
        yield


@contextmanager
def uninitialised() -> Iterator[None]:
    """Modules that are made within have parameters with any values, for weights that are read into all of them: drawing
    initial ones takes a sixth of the time to load a small model."""
    with _Uninitialised():
        yield


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
