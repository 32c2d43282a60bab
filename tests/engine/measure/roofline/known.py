"""Ceilings of a device that is not there."""

from dataclasses import replace

import torch

from paretone.measure.roofline import benchmarks
from paretone.measure.roofline import ceilings as store
from paretone.measure.roofline.ceilings import Ceilings


def ceilings(**changes: object) -> Ceilings:
    made = Ceilings("a device", "seconds", {"float32": 1e11, "int8": 4e11}, {"float32": 1e10}, 1e-6, torch="2")
    return replace(made, **changes)


def keep_known_ceilings() -> None:
    """Keep some for this machine, with any number of threads, in the user's data, so that none are measured."""
    for threads in range(1, torch.get_num_threads() + 9):
        blank = replace(benchmarks.unmeasured(torch.device("cpu")), threads=threads)
        store.keep(replace(blank, operations={"float32": 1e11}, bytes={"float32": 1e10}, launch_seconds=1e-6))
