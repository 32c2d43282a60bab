"""One processor, one GPU or many: the processes that train together, through ``accelerate``.

``accelerate launch`` starts one a GPU, ``torchrun`` several on processors; without either there is one. What
they must agree on (how far the run is, whether to stop) is agreed here once a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from paretone import device as devices
from paretone.errors import DeviceError, TrainingError
from paretone.extras import NO_TRAINING

if TYPE_CHECKING:
    from accelerate import Accelerator


class Processes:
    """All processes of a run, as one of them sees the others."""

    def __init__(self, accelerator: Accelerator) -> None:
        self.accelerator = accelerator

    @property
    def device(self) -> torch.device:
        return self.accelerator.device

    @property
    def count(self) -> int:
        return self.accelerator.num_processes

    @property
    def number(self) -> int:
        """This process's place, from 0."""
        return self.accelerator.process_index

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes and reports."""
        return self.accelerator.is_main_process

    def agree(self, progress: float, stop: bool) -> tuple[float, bool]:
        """The first process's progress, and whether any process is to stop."""
        if self.count == 1:
            return progress, stop
        values = torch.tensor([[progress, float(stop)]], dtype=torch.float64, device=self.device)
        gathered = self.accelerator.gather(values)
        return float(gathered[0, 0]), bool(gathered[:, 1].any())

    def gather(self, value: Any) -> list[Any]:
        """``value`` of every process, in their order."""
        if self.count == 1:
            return [value]
        from accelerate.utils import gather_object

        return gather_object([value])

    @contextmanager
    def first_process_first(self) -> Iterator[None]:
        """The others wait until the first process is through the block."""
        with self.accelerator.main_process_first():
            yield


def join_processes(device: str, half_precision: bool) -> Processes:
    """This process's place in the run. ``device`` is ``auto``, ``cpu``, ``cuda`` or ``mps``.

    Raises :class:`TrainingError` when ``accelerate`` is not installed, and :class:`DeviceError`.
    """
    try:
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState
    except ImportError:
        raise TrainingError(NO_TRAINING) from None
    chosen = devices.choose(device)
    # It remembers device and precision of the first run in this process, and the application may start others.
    AcceleratorState._reset_state(reset_partial_state=not torch.distributed.is_initialized())
    accelerator = Accelerator(cpu=chosen.type == "cpu", mixed_precision="bf16" if half_precision else "no")
    if accelerator.device.type != chosen.type:
        raise DeviceError(
            f"accelerate runs on {accelerator.device.type}, not on {chosen.type}; "
            "choose that device, or change its configuration with: accelerate config"
        )
    return Processes(accelerator)
