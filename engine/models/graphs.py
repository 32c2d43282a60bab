"""Forwards recorded as CUDA graphs, by their shapes: a shelf of recordings, and what puts each family's forwards on it.

A recording reads its inputs from fixed memory and leaves its output there. Whatever runs is copied in first: nothing is
approximated. Where lengths are rounded up, what is padded is masked, so that results are equal to rounding. Where a
forward cannot be recorded, it runs as it would without, and a note says so.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.failures import is_out_of_memory
from engine.models.base import OperationCounts
from engine.models.causal import NOTHING, CausalConfig, Look
from engine.models.compiled import times_of
from engine.models.diffusion import Conditioning, DiffusionTransformer
from engine.models.f5.unett import Conditioning as FlatConditioning
from engine.models.f5.unett import UNetT
from engine.models.fused_causal import FusedLayer, FusedTransformer, turn
from engine.sampling.cache import KeyValueCache
from engine.techniques.graphs import Graphing

WARM_UPS = 3
"""How often a forward runs before it is recorded: first runs choose kernels and take memory."""
MOST_CACHES = 2
"""Of a language model, whose recordings belong to them: of the lengths used last."""
MOST_TOKENS = 16
"""Longer passes of a language model, such as reading a prompt, are not recorded: they come once."""
FRAME_AXES = {"rotary": 0, "constant": 1, "to_sample": 1}
"""Along which axis of what a flow model's evaluations share its frames lie."""

Replay = Callable[[], None]
Result = TypeVar("Result")
Record = Callable[[Callable[[], Result]], tuple[Replay, Result]]
"""Gives what runs a function again, and where its result then is. Raises :class:`RuntimeError`."""
Entry = TypeVar("Entry")


class Memory(Protocol):
    """What a device's recordings are measured by; see :class:`CudaMemory`."""

    def held(self) -> int: ...

    def capacity(self) -> int: ...


def record_cuda(run: Callable[[], Result]) -> tuple[Replay, Result]:
    """``run`` as a CUDA graph with memory of its own."""
    if not torch.cuda.is_available():
        raise RuntimeError("there is no CUDA device")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = run()
    return graph.replay, output


class CudaMemory:
    """What recordings are measured by: what torch holds of a graphics card, with what it keeps for later given back."""

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


class Shelf(Generic[Entry]):
    """Recordings by what they are for; the one used longest ago makes room for a new one. Bounded by their number and
    by the memory that they hold."""

    def __init__(self, record: Record = record_cuda, memory: Memory | None = None) -> None:
        self.record = record
        self.most = 1
        """How many are kept."""
        self.room: int | None = None
        """How many bytes they may hold together; ``None``: any number."""
        self.status: Callable[[str], None] = lambda text: None
        """Told what is being recorded, since that takes long."""
        self._memory = CudaMemory() if memory is None else memory
        self._kept: OrderedDict[Hashable, _Kept[Entry]] = OrderedDict()
        self._failed: set[Hashable] = set()
        self._said: list[str] = []

    def __len__(self) -> int:
        """How many there are at present."""
        return len(self._kept)

    @property
    def bytes(self) -> int:
        """What they hold."""
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
        """The recording under ``key``, made where there is none; ``None`` where it cannot be made. ``what`` says for
        people what it is of."""
        if key in self._failed:
            return None
        if key not in self._kept and not self._make(key, make, what):
            return None
        self._kept.move_to_end(key)
        return self._kept[key].entry

    def notes(self) -> tuple[str, ...]:
        """What was recorded, or could not be, since this was last asked."""
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
        self._said.append(f"Recording a CUDA graph of {what} took {took}; the next one has it.")
        return True

    def _refuse(self, key: Hashable, what: str, reason: str) -> None:
        self._failed.add(key)
        self._said.append(f"No CUDA graph could be recorded of {what} ({reason}), so it ran without.")

    def _make_room(self, more: int) -> None:
        """Give up those used longest ago until ``more`` fit in."""
        while self._kept and (len(self._kept) + more > self.most or (self.room is not None and self.bytes > self.room)):
            self._kept.popitem(last=False)


# --- Flow -------------------------------------------------------------------------------------------------------------
class GraphedEvaluator:
    """Everything is computed, by recordings. See :class:`engine.sampling.caching.Evaluator`."""

    def __init__(self, backbone: DiffusionTransformer | UNetT, shelf: Shelf[_Evaluation], bucket: int) -> None:
        self._backbone, self._shelf = backbone, shelf
        # The convolutions of E2-TTS would see what is padded: each of its lengths has a graph of its own.
        self._bucket = bucket if isinstance(backbone, DiffusionTransformer) else 1

    def velocities(self, state: Tensor, evaluation: int, run: Conditioning | FlatConditioning) -> Tensor:
        length = state.shape[1]
        frames = math.ceil(length / self._bucket) * self._bucket
        key = "flow", id(self._backbone), run.branches, frames, state.shape[0], state.shape[2], self._bucket > 1
        found = self._shelf.find(
            key,
            lambda: _Evaluation(self._backbone, self._shelf.record, state, run, frames, masked=self._bucket > 1),
            f"an evaluation of {frames} frames in {run.branches} branch{'es' if run.branches > 1 else ''}",
        )
        if found is None:
            return self._backbone.velocity(state, evaluation, run)
        return found.velocities(state, evaluation, run)

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return counts.evaluation


class _Evaluation:
    """The recording of one evaluation."""

    def __init__(
        self,
        backbone: DiffusionTransformer | UNetT,
        record: Record,
        state: Tensor,
        run: Conditioning | FlatConditioning,
        frames: int,
        *,
        masked: bool,
    ) -> None:
        # Recordings are found by what they are of, which must not go while they stay.
        self._of = backbone
        self._state = state.new_zeros(state.shape[0], frames, state.shape[2])
        rows = run.branches * len(state)
        mask = torch.ones(rows, frames, dtype=torch.bool, device=state.device) if masked else None
        changes = {
            name: _each(getattr(run, name), lambda one, axis=axis: _lengthened(one, axis, frames - state.shape[1]))
            for name, axis in FRAME_AXES.items()
            if hasattr(run, name)
        }
        self._run = replace(run, mask=mask, **changes, **{name: one.clone() for name, one in times_of(run, 0).items()})
        self._owner: Conditioning | FlatConditioning | None = None
        self._take_over(run, state.shape[1])

        def evaluate() -> Tensor:
            with _padding_unseen(backbone):
                return backbone.velocity(self._state, 0, self._run)

        self._replay, self._output = record(evaluate)

    def velocities(self, state: Tensor, evaluation: int, run: Conditioning | FlatConditioning) -> Tensor:
        length = state.shape[1]
        if run is not self._owner:
            self._take_over(run, length)
        self._state[:, :length].copy_(state)
        for name, one in times_of(run, evaluation).items():
            getattr(self._run, name).copy_(one)
        self._replay()
        return self._output[:, :length]

    def _take_over(self, run: Conditioning | FlatConditioning, length: int) -> None:
        """Copy in what a new run's evaluations share."""
        self._owner = run
        self._state.zero_()
        if self._run.mask is not None:
            self._run.mask.copy_(torch.arange(self._run.mask.shape[1], device=self._run.mask.device) < length)
        for name, axis in FRAME_AXES.items():
            if hasattr(run, name):
                for target, source in zip(_parts(self._run, name), _parts(run, name), strict=True):
                    target.narrow(axis, 0, source.shape[axis]).copy_(source)


@contextlib.contextmanager
def _padding_unseen(backbone: DiffusionTransformer | UNetT) -> Iterator[None]:
    """Padded frames are not attended to, also in families that do so among items of different lengths: there, they are
    part of the official model, here they are none of it."""
    modules = [block.attention for block in backbone.blocks]
    for one in modules:
        one.attends_padding = False
    try:
        yield
    finally:
        for one in modules:
            del one.attends_padding


def _parts(run: Conditioning | FlatConditioning, name: str) -> tuple[Tensor, ...]:
    value = getattr(run, name)
    return value if isinstance(value, tuple) else (value,)


def _each(value: Tensor | tuple[Tensor, ...], change: Callable[[Tensor], Tensor]) -> Tensor | tuple[Tensor, ...]:
    return tuple(map(change, value)) if isinstance(value, tuple) else change(value)


def _lengthened(value: Tensor, axis: int, more: int) -> Tensor:
    """A copy with so many ``more`` zeros behind it."""
    shape = list(value.shape)
    shape[axis] = more
    return torch.cat([value, value.new_zeros(shape)], dim=axis)


# --- Language ---------------------------------------------------------------------------------------------------------
class GraphedTransformer(nn.Module):
    """A fused transformer whose short passes are recordings. Its caches are of lengths in multiples of ``bucket`` and
    used again: it serves one request at a time."""

    def __init__(self, plain: FusedTransformer, shelf: Shelf[_Step], bucket: int) -> None:
        super().__init__()
        self._plain, self._shelf, self._bucket = (plain,), shelf, bucket
        self._caches: OrderedDict[int, KeyValueCache] = OrderedDict()
        """By length; the one used last comes last."""

    @property
    def plain(self) -> FusedTransformer:
        """What it computes, without recordings."""
        return self._plain[0]

    @property
    def config(self) -> CausalConfig:
        """Sizes."""
        return self.plain.config

    @property
    def fused_layers(self) -> tuple[FusedLayer, ...]:
        """The layers, in order."""
        return self.plain.fused_layers

    def rotation(self, positions: Tensor) -> Tensor:
        """As :meth:`engine.models.fused_causal.FusedTransformer.rotation`."""
        return self.plain.rotation(positions)

    def cache(self, capacity: int, batch: int = 1) -> KeyValueCache:
        """An empty cache; the next one of its length takes its memory."""
        room = math.ceil(capacity / self._bucket) * self._bucket
        if room not in self._caches:
            while len(self._caches) >= MOST_CACHES:
                self._shelf.forget(self._caches.popitem(last=False)[1])
            self._caches[room] = self.plain.cache(room, batch)
            # What was never written is masked, but must be numbers.
            self._caches[room].clear_memory()
        self._caches.move_to_end(room)
        self._caches[room].crop(0)
        return self._caches[room]

    def reach(self, positions: int) -> None:
        """As :meth:`engine.models.fused_causal.FusedTransformer.reach`."""
        self.plain.reach(positions)

    def operations(self, tokens: int, context: int = 0) -> float:
        """Operations of a pass."""
        return self.plain.operations(tokens, context)

    def fill(self, embedded: Tensor, cache: KeyValueCache, positions: Tensor) -> None:
        """As :meth:`engine.models.fused_causal.FusedTransformer.fill`."""
        self.plain.fill(embedded, cache, positions)

    @torch.inference_mode()
    def forward(
        self,
        embedded: Tensor,
        cache: KeyValueCache | None = None,
        positions: Tensor | None = None,
        look: Look | None = None,
        skip: frozenset[int] = NOTHING,
    ) -> Tensor:
        """As :meth:`engine.models.fused_causal.FusedTransformer.forward`."""
        tokens, own = embedded.shape[1], cache is not None and cache in self._caches.values()
        if not own or look is not None or skip or positions is None or not 1 <= tokens <= MOST_TOKENS:
            return self.plain(embedded, cache, positions, look, skip)
        end = cache.length + tokens
        seen = min(math.ceil(end / self._bucket) * self._bucket, cache.capacity)
        found = self._shelf.find(
            ("language", id(self.plain), id(cache), tokens, seen),
            lambda: _Step(self.plain, self._shelf.record, cache, seen, embedded, positions),
            f"a pass over {tokens} token{'s' if tokens > 1 else ''} within {seen}",
        )
        if found is None:
            return self.plain(embedded, cache, positions)
        hidden = found.hidden(embedded, cache.length, positions)
        cache.advance(tokens)
        return hidden


class _Step:
    """The recording of a pass over a few tokens, with all of the cache's first ``seen`` places in view and those behind
    the tokens masked."""

    def __init__(
        self,
        transformer: FusedTransformer,
        record: Record,
        cache: KeyValueCache,
        seen: int,
        embedded: Tensor,
        positions: Tensor,
    ) -> None:
        config, device, tokens = transformer.config, transformer.device, embedded.shape[1]
        self._of = transformer, cache
        # Recording runs it: what it then writes into the cache must be what belongs there.
        self._embedded, self._positions = embedded.clone(), positions.clone()
        self._offsets = torch.arange(tokens, device=device)
        self._places = self._offsets + cache.length
        memory, keys, values = cache.first(seen)
        every = torch.arange(seen, device=device)
        groups = config.heads // config.key_value_heads
        heads, key_heads, width = config.heads, config.key_value_heads, config.head_width

        def run() -> Tensor:
            rotation = transformer.rotation(self._positions)
            late = every[None] > self._places[:, None]
            mask = torch.zeros(tokens, seen, dtype=self._embedded.dtype, device=device)
            mask = mask.masked_fill(late, -math.inf).repeat(groups, 1)
            hidden = self._embedded.reshape(-1, config.hidden)
            for index, layer in enumerate(transformer.fused_layers):
                projected = layer.queries_keys_values(layer.attention_norm(hidden)).view(1, tokens, -1, width)
                turn(projected.narrow(2, 0, heads + key_heads), rotation)
                query, both = projected.split((heads, 2 * key_heads), dim=2)
                memory[index].index_copy_(1, self._places, both)
                query = query.transpose(1, 2).reshape(1, key_heads, -1, width)
                mixed = F.scaled_dot_product_attention(query, keys[index], values[index], mask)
                mixed = mixed.reshape(1, heads, tokens, width)
                hidden = layer.output(mixed.transpose(1, 2).reshape(-1, heads * width)) + hidden
                gate, up = layer.gate_up(layer.feed_forward_norm(hidden)).chunk(2, dim=-1)
                hidden = layer.down(F.silu(gate) * up) + hidden
            return transformer.final_norm(hidden).view_as(self._embedded)

        self._replay, self._output = record(run)

    def hidden(self, embedded: Tensor, length: int, positions: Tensor) -> Tensor:
        """The hidden states of ``embedded`` behind ``length`` others."""
        self._embedded.copy_(embedded)
        torch.add(self._offsets, length, out=self._places)
        self._positions.copy_(positions)
        self._replay()
        return self._output.clone()
