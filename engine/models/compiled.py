"""Backbones whose whole evaluations go through ``torch.compile``. Where compiling fails, they run as they would
without, and a note says so."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from engine.failures import is_out_of_memory
from engine.models.diffusion import Conditioning, DiffusionTransformer, Look
from engine.models.fused_masked import FusedMasked, Rows
from engine.models.half_products import Product
from engine.models.layers import SelfAttention
from engine.models.products import PackableLinear, PackedProduct
from engine.sampling.skipping import LayerDuty, LayerMemory

_log = logging.getLogger(__name__)


class Compiled:
    """A function, compiled when it is first called; the function itself from the first failure on."""

    def __init__(self, plain: Callable[..., Tensor], mode: str) -> None:
        self._plain = plain
        self._compiled = torch.compile(plain, mode=None if mode == "default" else mode)
        self._failed = False
        self._said: list[str] = []

    def __call__(self, *arguments: object) -> Tensor:
        if self._failed:
            return self._plain(*arguments)
        try:
            return self._compiled(*arguments)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            # Whatever a compiler trips over, speech goes on.
            _log.warning("torch.compile failed.", exc_info=error)
            self._failed = True
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            self._said.append(f"Compiling failed ({reason}), so evaluations ran without; details are in the log.")
            return self._plain(*arguments)

    def notes(self) -> tuple[str, ...]:
        """What went wrong since this was last asked."""
        said, self._said = tuple(self._said), []
        return said


class CompiledBackbone:
    """What is added to a copy of a flow model's backbone; see :func:`compiled_backbone`."""

    def __init__(self, plain: DiffusionTransformer, mode: str) -> None:
        self._plain = plain
        # One evaluation's modulations at a time: their number would otherwise be part of what is compiled.
        self.function = Compiled(lambda x, run: plain.velocity(x, 0, run), mode)

    def velocity(
        self,
        x: Tensor,
        evaluation: int,
        run: Conditioning,
        duties: Sequence[LayerDuty] | None = None,
        memory: Sequence[LayerMemory] | None = None,
        look: Look | None = None,
    ) -> Tensor:
        """As :meth:`engine.models.diffusion.DiffusionTransformer.velocity`."""
        if duties is not None or look is not None:
            return self._plain.velocity(x, evaluation, run, duties, memory, look)
        only = slice(evaluation, evaluation + 1)
        run = replace(run, modulations=run.modulations[only], final_modulations=run.final_modulations[only])
        # Graphs of the compiler's own overwrite their result at the next call.
        return self.function(x, run).clone()


def compiled_backbone(backbone: DiffusionTransformer, mode: str) -> DiffusionTransformer:
    """A copy of ``backbone``, weights shared, whose evaluations are compiled at their first call."""
    plain = copy.deepcopy(backbone, {id(one): one for one in backbone.parameters()})
    for module in plain.modules():
        _unpack(module)
    made = copy.copy(plain)
    compiled = CompiledBackbone(plain, mode)
    object.__setattr__(made, "velocity", compiled.velocity)
    object.__setattr__(made, "compilation_notes", compiled.function.notes)
    return made


def compiled_masked(network: FusedMasked, mode: str) -> FusedMasked:
    """``network``, weights shared, whose passes are compiled at their first call."""
    plain = copy.copy(network)
    plain._layers = tuple(
        replace(
            layer,
            queries_keys_values=_unpacked(layer.queries_keys_values),
            output=_unpacked(layer.output),
            gate_up=_unpacked(layer.gate_up),
            down=_unpacked(layer.down),
        )
        for layer in network.layers
    )
    made = copy.copy(plain)

    def passed(hidden: Tensor, projected: tuple[Tensor, Tensor], rows: Rows, wanted: tuple[slice, ...]) -> Tensor:
        return plain.forward(hidden, projected, rows, wanted)

    function = Compiled(passed, mode)
    made.forward = lambda *arguments: function(*arguments).clone()
    made.compilation_notes = function.notes
    return made


def notes_of(backbone: object) -> tuple[str, ...]:
    """What went wrong in compiling ``backbone`` since this was last asked; nothing where it is not compiled."""
    ask = getattr(backbone, "compilation_notes", None)
    return () if ask is None else ask()


def _unpack(module: nn.Module) -> None:
    """The compiler knows nothing of packed weights."""
    if isinstance(module, PackableLinear):
        module.unpack()
    if isinstance(module, SelfAttention) and isinstance(module._fused, PackedProduct):
        module.project_by(_unpacked(module._fused))


def _unpacked(product: Product) -> Product:
    return product.plain if isinstance(product, PackedProduct) else product
