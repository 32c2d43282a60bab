"""Processes that train together on one CPU, one GPU or many, through ``accelerate``.

``accelerate launch`` starts one per GPU, ``torchrun`` several on CPUs; without either there is one. Each step they
agree here on progress and on stopping.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from paretone import device as devices
from paretone.errors import DeviceError, TrainingError
from paretone.extras import NO_TRAINING, needing

if TYPE_CHECKING:
    from accelerate import Accelerator


class Processes:
    """All processes of a run, seen from one of them."""

    def __init__(self, accelerator: Accelerator) -> None:
        self.accelerator = accelerator
        self.device: torch.device = accelerator.device
        self.count, self.number = accelerator.num_processes, accelerator.process_index
        """Number of processes, and rank of this one, from 0."""
        self.is_first = accelerator.is_main_process
        """Whether this process writes and reports."""

    def agree(self, progress: float, stop: bool) -> tuple[float, bool]:
        """The first process's progress, and whether any process stops."""
        if self.count == 1:
            return progress, stop
        values = torch.tensor([[progress, float(stop)]], dtype=torch.float64, device=self.device)
        gathered = self.accelerator.gather(values)
        return float(gathered[0, 0]), bool(gathered[:, 1].any())

    def gather(self, value: Any) -> list[Any]:
        """``value`` of every process, by rank."""
        if self.count == 1:
            return [value]
        from accelerate.utils import gather_object

        return gather_object([value])

    def own(self, values: list[Any]) -> Any:
        """This process's value of those that :meth:`gather` returned in the run to resume. Raises
        :class:`TrainingError` if that had another number of processes."""
        if len(values) != self.count:
            raise TrainingError(f"The run to resume has {len(values)} processes, here are {self.count}; start as many.")
        return values[self.number]

    @contextmanager
    def first_process_first(self) -> Iterator[None]:
        """Make the others wait until the first process has left the block."""
        with self.accelerator.main_process_first():
            yield


def join_processes(device: str, half_precision: bool) -> Processes:
    """This process's place in the run. ``device`` is ``auto``, ``cpu``, ``cuda`` or ``mps``. Raises
    :class:`TrainingError` if ``accelerate`` is not installed, and :class:`DeviceError`."""
    with needing(TrainingError, NO_TRAINING):
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState
    chosen = devices.choose(device)
    # accelerate keeps device and precision of the process's first run; the application may start further runs.
    AcceleratorState._reset_state(reset_partial_state=not torch.distributed.is_initialized())
    accelerator = Accelerator(cpu=chosen.type == "cpu", mixed_precision="bf16" if half_precision else "no")
    if accelerator.device.type != chosen.type:
        raise DeviceError(
            f"accelerate runs on {accelerator.device.type}, not on {chosen.type}; "
            "choose that device, or change its configuration with: accelerate config"
        )
    return Processes(accelerator)
