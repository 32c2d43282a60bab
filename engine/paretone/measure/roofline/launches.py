"""Launches of a piece of work: kernels, or operators on processors; and its Chrome trace.

On a GPU kernels are counted by torch's profiler, those within CUDA graphs too. On a processor there are no
kernels to launch, but every operator has to be called; counted are those that compute, without views and without taking
memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from paretone.errors import PlainError
from paretone.files import TEMPORARY, reason, write_through
from paretone.measure.profiler import ProfilerActivity, profile
from paretone.measure.roofline.counts import Work

_NO_WORK = {"empty", "empty_like", "empty_strided", "new_empty", "resize_", "set_", "_local_scalar_dense"}
"""Operators that are no views and compute nothing."""
_WHOLE = {"fbgemm_linear_fp16_weight_fp32_activation"}
"""Operators that torch says are made of others, but that compute themselves."""


class OperatorCounter(TorchDispatchMode):
    """Counts the operators that run while it is entered: how many, their operations and what they read and write.

    Operations are those that torch knows to count: products, convolutions and attention. Every operator's inputs and
    outputs count as bytes, also where one operator's outputs are the next one's inputs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.launches = 0
        self.work = Work()

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        name = func._schema.name.partition("::")[2]
        if func._overloadpacket not in flop_registry and name not in _WHOLE:
            with self:
                whole = func.decompose(*args, **kwargs)
            if whole is not NotImplemented:
                return whole
        result = func(*args, **kwargs)
        if not _is_view(func) and name not in _NO_WORK:
            self.launches += 1
            operations = _operations(func, name, args, kwargs, result)
            tensors = [one for one in tree_leaves((args, kwargs, result)) if isinstance(one, Tensor)]
            # What is written in place is both input and output, and counts once each.
            self.work += Work(float(operations), float(sum(one.numel() * one.element_size() for one in tensors)))
        return result


def counted(run: Callable[[], object]) -> tuple[int, Work]:
    """Number and cost of the operators that one ``run`` calls."""
    counter = OperatorCounter()
    with torch.inference_mode(), counter:
        run()
    return counter.launches, counter.work


def launches(run: Callable[[], object], device: torch.device) -> int:
    """Kernels that one ``run``, warm, starts on a GPU; operators that it calls on a processor."""
    if device.type != "cuda":
        return counted(run)[0]
    with torch.inference_mode(), profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize(device)
    gpu = torch.autograd.DeviceType.CUDA  # type: ignore[attr-defined]  # torch does not declare that it is public.
    kernels = (one for one in profiler.events() if one.device_type == gpu)
    return sum(not one.name.startswith(("Memset", "Memcpy HtoD", "Memcpy DtoH")) for one in kernels)


def write_chrome_trace(run: Callable[[], object], path: Path, device: torch.device) -> None:
    """Write what one ``run`` does, operator by operator, for ``chrome://tracing`` and Perfetto. Raises
    :class:`PlainError` if the file cannot be written."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with torch.inference_mode(), profile(activities=activities, record_shapes=True) as profiler:
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    try:
        # Torch reports a path that it cannot write on standard error only.
        with tempfile.TemporaryDirectory(prefix=TEMPORARY) as folder:
            made = Path(folder) / f"trace{path.suffix}"
            profiler.export_chrome_trace(str(made))
            write_through(path, made.read_bytes())
    except OSError as error:
        raise PlainError(f"The trace {path} could not be written: {reason(error)}.") from error


def _operations(func: torch._ops.OpOverload, name: str, args: tuple, kwargs: dict, result: object) -> float:
    if func._overloadpacket in flop_registry:
        return flop_registry[func._overloadpacket](*args, **kwargs, out_val=result)
    if name.startswith("_scaled_dot_product"):  # The processors' own is not among those that torch counts.
        query, key = args[:2]
        return 4.0 * query.numel() * key.shape[-2]
    return 0.0


def _is_view(func: torch._ops.OpOverload) -> bool:
    """Whether an operator's results are other looks at its arguments."""
    returned = [one.alias_info for one in func._schema.returns]
    return bool(returned) and all(one is not None and not one.is_write for one in returned)
