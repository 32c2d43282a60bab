"""Backbones whose evaluations run through ``torch.compile``. If compiling fails, they run uncompiled, with a note."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from paretone.errors import is_out_of_memory
from paretone.models.f5.unett import UNetT, UNetTConditioning
from paretone.models.kernels.few_rows import Product
from paretone.models.kernels.fused_masked import FusedMasked
from paretone.models.kernels.masked_pass import Rows
from paretone.models.kernels.products import PackableLinear, PackedProduct
from paretone.models.networks.diffusion import Conditioning, DiffusionTransformer
from paretone.models.networks.layers import SelfAttention
from paretone.reading import first_line
from paretone.sampling.flow import Probe
from paretone.sampling.skipping import LayerMemory, LayerPlan

_log = logging.getLogger(__name__)

Backbone = TypeVar("Backbone", DiffusionTransformer, UNetT)
COMPILING = "Compiling; this may take minutes, and cannot be cancelled before it is done …"
WORTH_SAYING = 1.0
"""Compile time in seconds from which a take's notes mention it."""


class Compiled:
    """A function compiled at its first call, and for shapes not yet covered; uncompiled after the first failure."""

    def __init__(self, plain: Callable[..., Tensor], mode: str) -> None:
        self._plain = plain
        self._compiled = torch.compile(plain, mode=None if mode == "default" else mode)
        self._failed = False
        self._said: list[str] = []
        self._seconds = 0.0

    def __call__(self, *arguments: object) -> Tensor:
        if self._failed:
            return self._plain(*arguments)
        captured, began = _captured(), time.perf_counter()
        try:
            result = self._compiled(*arguments)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            # Speech continues without the compiler.
            _log.warning("Compiling failed.", exc_info=error)
            self._failed = True
            self._said.append(
                f"Compiling failed ({first_line(error)}), so evaluations ran uncompiled; details are in the log."
            )
            return self._plain(*arguments)
        if _captured() > captured:
            self._seconds += time.perf_counter() - began
        return result

    def warmed(self) -> None:
        """Reset the compile time so far, which belongs to no take."""
        self._seconds = 0.0

    def notes(self) -> tuple[str, ...]:
        if self._seconds >= WORTH_SAYING:
            self._said.append(
                f"Compiling for this length took {self._seconds:.0f} s, which the take's times include; speak again "
                "for the times of compiled code."
            )
        said, self._said, self._seconds = tuple(self._said), [], 0.0
        return said


def _captured() -> int:
    """Number of graphs that the compiler has captured in this process."""
    from torch._dynamo.utils import counters  # Imported here: few users compile, and it takes a second.

    return counters["stats"]["unique_graphs"]


def times_of(run: Conditioning | UNetTConditioning, evaluation: int) -> dict[str, Tensor]:
    only = slice(evaluation, evaluation + 1)
    by_evaluation = "modulations", "final_modulations", "time_tokens"
    return {name: getattr(run, name)[only] for name in by_evaluation if hasattr(run, name)}


def compiled_backbone(backbone: Backbone, mode: str) -> Backbone:
    """A copy of ``backbone`` with shared weights, whose evaluations are compiled at the first call."""
    plain = copy.deepcopy(backbone, {id(one): one for one in backbone.parameters()})
    for module in plain.modules():  # The compiler does not support packed weights.
        if isinstance(module, PackableLinear):
            module.unpack()
        if isinstance(module, SelfAttention) and module.packed is not None:
            module.project_by(module.packed.plain)
    # Passes one evaluation's time vectors at a time; otherwise the compiled code would depend on their number.
    function = Compiled(lambda x, run: plain.velocity(x, 0, run), mode)

    def velocity(
        x: Tensor,
        evaluation: int,
        run: Any,
        plans: Sequence[LayerPlan] | None = None,
        memory: Sequence[LayerMemory] | None = None,
        probe: Probe | None = None,
    ) -> Tensor:
        if plans is not None or probe is not None:
            return plain.velocity(x, evaluation, run, plans, memory, probe)
        # The compiler's own graphs overwrite their result at the next call.
        return function(x, replace(run, **times_of(run, evaluation))).clone()

    made = copy.copy(plain)
    object.__setattr__(made, "velocity", velocity)
    object.__setattr__(made, "compiled_function", function)
    return made


def compiled_masked(network: FusedMasked, mode: str) -> FusedMasked:
    """A copy of ``network`` with shared weights, whose passes are compiled at the first call."""
    plain = copy.copy(network)
    names = "queries_keys_values", "output", "gate_up", "down"
    plain.layers = tuple(
        replace(layer, **{name: _unpacked(getattr(layer, name)) for name in names}) for layer in network.layers
    )
    made = copy.copy(plain)

    def passed(hidden: Tensor, projected: tuple[Tensor, Tensor], rows: Rows, wanted: tuple[slice, ...]) -> Tensor:
        return plain.forward(hidden, projected, rows, wanted)

    function = Compiled(passed, mode)
    # Only this copy is compiled.
    vars(made).update(forward=lambda *arguments: function(*arguments).clone(), compiled_function=function)
    return made


def notes_of(backbone: object) -> tuple[str, ...]:
    """New notes on compiling ``backbone`` since the last call; empty if it is not compiled."""
    function = getattr(backbone, "compiled_function", None)
    return () if function is None else function.notes()


def warmed(backbone: object) -> None:
    """Exclude the time of compiling ``backbone`` so far from takes; no effect if it is not compiled."""
    if (function := getattr(backbone, "compiled_function", None)) is not None:
        function.warmed()


def _unpacked(product: Product) -> Any:
    return product.plain if isinstance(product, PackedProduct) else product
