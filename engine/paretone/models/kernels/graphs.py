"""Forwards recorded as CUDA graphs, by their shapes: how they are recorded, and a cache of recordings. Each family puts
its own on it: :mod:`paretone.models.kernels.flow_graphs`, :mod:`paretone.models.kernels.causal_graphs`,
:mod:`paretone.models.kernels.masked_graphs`.

A recording reads its inputs from fixed memory and leaves its output there. Whatever runs is copied in first: nothing is
approximated. Where lengths are rounded up, what is padded is masked, so that results are equal to rounding. Where a
forward cannot be recorded, it runs as it would without, and a note says so.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache
from typing import Generic, Protocol, TypeVar

import torch

from paretone.failures import is_out_of_memory
from paretone.setting.plan import Graphing

WARM_UPS = 3
"""Number of runs before recording: first runs choose kernels and take memory."""

Replay = Callable[[], None]
Result = TypeVar("Result")
Record = Callable[[Callable[[], Result]], tuple[Replay, Result]]
"""Gives what runs a function again, and where its result then is. Raises :class:`RuntimeError`."""
Entry = TypeVar("Entry")


class Memory(Protocol):
    """Memory meter for a device's recordings; see :class:`CudaMemory`."""

    def held(self) -> int: ...

    def capacity(self) -> int: ...


def record_cuda(run: Callable[[], Result]) -> tuple[Replay, Result]:
    """``run`` as a CUDA graph with its own memory."""
    if not torch.cuda.is_available():
        raise RuntimeError("there is no CUDA device")
    stream = _side_stream(torch.cuda.current_device())
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = run()
    return graph.replay, output


@cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """The stream of ``device`` for runs before a recording. One for all: cuBLAS keeps a workspace for every stream, 32
    MiB on an H100, where a new stream for each recording let memory grow by that much each time."""
    return torch.cuda.Stream(device)


class CudaMemory:
    """Memory that torch holds on a GPU, without its cache, to measure recordings by."""

    def held(self) -> int:
        """Bytes, those in the pools of CUDA graphs included."""
        if not torch.cuda.is_available():
            return 0
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved()

    def capacity(self) -> int:
        """Bytes of the whole card."""
        return torch.cuda.mem_get_info()[1] if torch.cuda.is_available() else 0


@dataclass
class _Kept(Generic[Entry]):
    entry: Entry
    bytes: int


class GraphCache(Generic[Entry]):
    """Recordings by what they are for; the one used longest ago makes room for a new one. Bounded by their number and
    by the memory that they hold."""

    def __init__(self, record: Record = record_cuda, memory: Memory | None = None) -> None:
        self.record = record
        self.most = 1
        """Maximum number of recordings."""
        self.room: int | None = None
        """Maximum bytes of all recordings; ``None``: no limit."""
        self.status: Callable[[str], None] = lambda text: None
        """Status callback for recording, which takes long."""
        self._memory = CudaMemory() if memory is None else memory
        self._kept: OrderedDict[Hashable, _Kept[Entry]] = OrderedDict()
        self._failed: set[Hashable] = set()
        self._said: list[str] = []

    def __len__(self) -> int:
        """Number of cached recordings."""
        return len(self._kept)

    @property
    def bytes(self) -> int:
        """Memory of all recordings."""
        return sum(one.bytes for one in self._kept.values())

    def bound(self, graphing: Graphing) -> None:
        """Keep no more than ``graphing`` says from now on."""
        before = self.most, self.room
        self.most = graphing.most
        self.room = round(graphing.share * self._memory.capacity()) or None
        if before != (self.most, self.room):
            self._failed.clear()
        self._make_room(0)

    def find(self, key: Hashable, make: Callable[[], Entry], what: str) -> Entry | None:
        """The recording under ``key``, made if there is none; ``None`` if it cannot be made. ``what`` says for
        people what it is of."""
        if key in self._failed:
            return None
        if key not in self._kept and not self._make(key, make, what):
            return None
        self._kept.move_to_end(key)
        return self._kept[key].entry

    def notes(self) -> tuple[str, ...]:
        """Recordings and failures since the last call."""
        said, self._said = tuple(self._said), []
        return said

    def forget(self, owner: object) -> None:
        """Give up those whose keys name ``owner`` by its identity, which another may have once it is gone."""

        def names_it(key: Hashable) -> bool:
            return isinstance(key, tuple) and id(owner) in key

        for key in filter(names_it, tuple(self._kept)):
            del self._kept[key]
        self._failed = {key for key in self._failed if not names_it(key)}

    def clear(self) -> None:
        """Give all up."""
        self._kept.clear()

    def _make(self, key: Hashable, make: Callable[[], Entry], what: str) -> bool:
        """Whether it could be made and kept."""
        self._make_room(1)
        self.status(f"Recording a CUDA graph of {what} …")
        began, held = time.perf_counter(), self._memory.held()
        try:
            made = _Kept(make(), 0)
        except RuntimeError as error:
            if is_out_of_memory(error):
                self.clear()
            self._refuse(key, what, str(error).splitlines()[0] if str(error) else type(error).__name__)
            return False
        made.bytes = max(0, self._memory.held() - held)
        if self.room is not None and made.bytes > self.room:
            self._refuse(key, what, f"it takes {made.bytes / 1e6:.0f} MB, and there are {self.room / 1e6:.0f} MB")
            return False
        self._kept[key] = made
        self._make_room(0)
        seconds = time.perf_counter() - began
        took = f"{seconds:.2f} s of this take" + (f" and {made.bytes / 1e6:.0f} MB" if made.bytes else "")
        self._said.append(f"Recording a CUDA graph of {what} took {took}; later takes reuse it.")
        return True

    def _refuse(self, key: Hashable, what: str, reason: str) -> None:
        self._failed.add(key)
        self._said.append(f"No CUDA graph could be recorded of {what} ({reason}), so it ran without one.")

    def _make_room(self, more: int) -> None:
        """Give up those used longest ago until ``more`` fit in."""
        while self._kept and (len(self._kept) + more > self.most or (self.room is not None and self.bytes > self.room)):
            self._kept.popitem(last=False)
