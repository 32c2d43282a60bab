"""Measuring a device's ceilings: large matrix products, large copies, and smallest kernels. Ceilings are the best of
several runs, as other programs can only slow them down. Clock and threads are those of models."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import torch

from paretone import device as devices
from paretone.errors import DeviceError, PlainError
from paretone.measure.machine import processor
from paretone.measure.processor_time import clock_name
from paretone.measure.roofline import ceilings as store
from paretone.measure.roofline.ceilings import Ceilings
from paretone.measure.timing import stopwatch
from paretone.models.kernels import products
from paretone.models.kernels.precision import DTYPES, Int8Linear, offered
from paretone.models.kernels.products import PackedProduct
from paretone.observer import Check

SIZES = {"cpu": (512, 1024, 1536), "cuda": (4096, 8192), "mps": (2048, 4096)}
"""Sizes of the square matrix products."""
COPIED = {"cpu": 64 * 2**20, "cuda": 1024 * 2**20, "mps": 256 * 2**20}
"""Bytes of a copy's source, many times the caches' size."""
RUNS = 5
LEAST_SECONDS = 0.02
"""Minimum length of a timed block; shorter work is repeated."""
LAUNCHES = 2000
"""Launches of the smallest kernel per timed block."""


def ceilings_of(device: torch.device, again: bool = False, check: Check = lambda: None) -> Ceilings:
    """Ceilings of ``device``: cached where that can be written; measured anew if ``again``. ``check``, between the
    measurements, may cancel. Raises :class:`paretone.errors.DeviceError` if the device cannot be measured."""
    found = None if again else store.kept(unmeasured(device).key)
    if found is None:
        found = measure(device, check)
        with suppress(PlainError):
            store.keep(found)
    return found


@torch.inference_mode()
def measure(device: torch.device, check: Check = lambda: None) -> Ceilings:
    """Measure the ceilings of ``device`` in a few seconds."""
    operations: dict[str, float] = {}
    copied: dict[str, float] = {}
    try:
        for precision in offered(device):
            check()
            operations[precision] = max(_product(size, precision, device, check) for size in SIZES[device.type])
            copied[precision] = _copy(precision, device)
        check()
        launch = _launch(device)
        graph_launch = _graph_launch(device) if device.type == "cuda" else None
    except (RuntimeError, MemoryError) as error:
        raise DeviceError(
            f"The ceilings of {devices.title(device)} could not be measured ({error}); close other programs that use "
            "it."
        ) from error
    return replace(
        unmeasured(device),
        operations=operations,
        bytes=copied,
        launch_seconds=launch,
        graph_launch_seconds=graph_launch,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def best_seconds(run: Callable[[], object], device: torch.device) -> float:
    """Minimum seconds of one ``run`` by the device's clock."""

    def timed(repeats: int) -> float:
        with stopwatch(str(device)) as watch:
            for _ in range(repeats):
                run()
        return watch.seconds

    run()
    repeats = 1
    while (seconds := timed(repeats)) < LEAST_SECONDS:
        repeats = max(repeats + 1, math.ceil(repeats * 1.5 * LEAST_SECONDS / max(seconds, 1e-6)))
    return min(seconds, *(timed(repeats) for _ in range(RUNS - 1))) / repeats


def unmeasured(device: torch.device) -> Ceilings:
    """Ceilings without values, for the device's key."""
    on_processor = device.type == "cpu"
    threads = torch.get_num_threads() if on_processor else 1
    title = processor() if on_processor else devices.title(device)
    return Ceilings(title, clock_name(str(device)), {}, {}, 0.0, None, threads, torch.__version__)


def _product(size: int, precision: str, device: torch.device, check: Check) -> float:
    """Operations per second of a product of two square matrices."""
    check()
    return 2.0 * size**3 / min(best_seconds(way, device) for way in _multiplying(size, precision, device))


def _multiplying(size: int, precision: str, device: torch.device) -> list[Callable[[], object]]:
    """Ways of one product, of which models use the faster."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(size, size, generator=generator).to(device) for _ in range(2))
    if precision == "int8":
        layer = Int8Linear(right, None)
        return [lambda: layer(left)]
    dtype = DTYPES.get(precision, torch.float32)
    left, right = left.to(dtype), right.to(dtype)
    result = torch.empty(size, size, dtype=dtype, device=device)
    ways: list[Callable[[], object]] = [lambda: torch.mm(left, right, out=result)]
    if products.can_pack(right):
        packed = PackedProduct(right)
        ways.append(lambda: packed(left))
    return ways


def _copy(precision: str, device: torch.device) -> float:
    """Bytes per second of a copy, reads plus writes."""
    dtype = torch.int8 if precision == "int8" else DTYPES.get(precision, torch.float32)
    source = torch.zeros(COPIED[device.type] // dtype.itemsize, dtype=dtype, device=device)
    target = torch.empty_like(source)
    return 2.0 * COPIED[device.type] / best_seconds(lambda: target.copy_(source), device)


def _launch(device: torch.device) -> float:
    """Seconds per small kernel in a sequence; on CPUs, per operator call."""
    x = torch.zeros(8, device=device)

    def launch() -> None:
        for _ in range(LAUNCHES):
            x.add_(1.0)

    return best_seconds(launch, device) / LAUNCHES


def _graph_launch(device: torch.device) -> float | None:
    """Likewise within a CUDA graph; ``None`` if recording fails."""
    x = torch.zeros(8, device=device)
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(device):
            torch.cuda.synchronize(device)
            with torch.cuda.graph(graph):
                for _ in range(LAUNCHES):
                    x.add_(1.0)
    except RuntimeError:
        return None
    return best_seconds(graph.replay, device) / LAUNCHES
