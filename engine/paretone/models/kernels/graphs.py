"""CUDA graphs of forwards, by shape: recording, a cache of recordings, and the recorded passes of each family.

A recording reads its inputs from fixed memory and leaves its output there. Inputs are copied in first: nothing is
approximated. If lengths are rounded up, the padding is masked, so results are equal up to rounding. A forward that
cannot be recorded runs as usual, with a note.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import ref

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.errors import is_out_of_memory
from paretone.models.f5.unett import UNetT, UNetTConditioning
from paretone.models.kernels.compiled import times_of
from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest, MaskedRun
from paretone.models.kernels.masked_pass import Rows
from paretone.models.networks.causal import NOTHING, CausalConfig, Probe
from paretone.models.networks.diffusion import Conditioning, DiffusionTransformer
from paretone.observer import Status
from paretone.sampling.cache import KeyValueCache
from paretone.sampling.demasking import Guide
from paretone.sampling.operations import OperationCounts
from paretone.setting.plan import Graphing

Replay = Callable[[], None]
Result = TypeVar("Result")
Record = Callable[[Callable[[], Result]], tuple[Replay, Result]]
"""Returns a replay function and the location of its result. Raises :class:`RuntimeError`."""
Entry = TypeVar("Entry")


def record_cuda(run: Callable[[], Result]) -> tuple[Replay, Result]:
    """``run`` as a CUDA graph with its own memory."""
    if not torch.cuda.is_available():
        raise RuntimeError("there is no CUDA device")
    stream = _side_stream(torch.cuda.current_device())
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # First runs choose kernels and allocate memory.
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = run()
    return graph.replay, output


@cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """The stream of ``device`` for runs before a recording. Shared, because cuBLAS keeps a workspace per stream, 32 MiB
    on an H100, which every new stream would add."""
    return torch.cuda.Stream(device)


class CudaMemory:
    """Memory that torch holds on a GPU, without its cache."""

    def held(self) -> int:
        """Bytes, including the pools of CUDA graphs."""
        if not torch.cuda.is_available():
            return 0
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved()

    def capacity(self) -> int:
        return torch.cuda.mem_get_info()[1] if torch.cuda.is_available() else 0


class GraphCache(Generic[Entry]):
    """Least recently used cache of recordings, bounded by number and memory."""

    def __init__(self, record: Record = record_cuda, memory: CudaMemory | None = None) -> None:
        self.record = record
        self.most = 1
        self.room: int | None = None
        """Maximum bytes of all recordings; ``None``: no limit."""
        self.status: Status = lambda text: None
        self._memory = memory or CudaMemory()
        self._kept: OrderedDict[Hashable, tuple[Entry, int]] = OrderedDict()
        """With their bytes."""
        self._failed: set[Hashable] = set()
        self._said: list[str] = []

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def bytes(self) -> int:
        return sum(held for _, held in self._kept.values())

    def bound(self, graphing: Graphing) -> None:
        before = self.most, self.room
        self.most = graphing.most
        self.room = round(graphing.share * self._memory.capacity()) or None
        if before != (self.most, self.room):
            self._failed.clear()
        self._make_room(0)

    def find(self, key: Hashable, make: Callable[[], Entry], what: str) -> Entry | None:
        """The recording under ``key``, made on demand; ``None`` if impossible. ``what`` describes it for people.
        ``key`` names a network by a weak reference: another one may get its identity later."""
        if key in self._failed:
            return None
        if key not in self._kept and not self._make(key, make, what):
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def notes(self) -> tuple[str, ...]:
        """Recordings and failures since the last call."""
        said, self._said = tuple(self._said), []
        return said

    def forget(self, owner: object) -> None:
        """Discard recordings whose keys contain ``owner``'s identity, which another object may get later."""

        def names_it(key: Hashable) -> bool:
            return isinstance(key, tuple) and id(owner) in key

        for key in filter(names_it, tuple(self._kept)):
            del self._kept[key]
        self._failed = {key for key in self._failed if not names_it(key)}

    def _make(self, key: Hashable, make: Callable[[], Entry], what: str) -> bool:
        """Record and keep; return whether that succeeded."""
        self._make_room(1)
        self.status(f"Recording a CUDA graph of {what} …")
        began, held = time.perf_counter(), self._memory.held()
        try:
            made = make()
        except RuntimeError as error:
            if is_out_of_memory(error):
                self._kept.clear()
            self._refuse(key, what, str(error).splitlines()[0] if str(error) else type(error).__name__)
            return False
        size = max(0, self._memory.held() - held)
        if self.room is not None and size > self.room:
            self._refuse(key, what, f"it takes {size / 1e6:.0f} MB, and there are {self.room / 1e6:.0f} MB")
            return False
        self._kept[key] = made, size
        self._make_room(0)
        took = f"{time.perf_counter() - began:.2f} s of this take" + (f" and {size / 1e6:.0f} MB" if size else "")
        self._said.append(f"Recording a CUDA graph of {what} took {took}; later takes reuse it.")
        return True

    def _refuse(self, key: Hashable, what: str, reason: str) -> None:
        self._failed.add(key)
        self._said.append(f"No CUDA graph could be recorded of {what} ({reason}), so it ran without one.")

    def _make_room(self, more: int) -> None:
        while self._kept and (len(self._kept) + more > self.most or (self.room is not None and self.bytes > self.room)):
            self._kept.popitem(last=False)


# --- Short passes of causal transformers ------------------------------------------------------------------------------
MOST_CACHES = 2
"""Maximum number of caches of a language model, one per length; recorded graphs belong to a cache."""
MOST_TOKENS = 16
"""Longer passes of a language model, such as reading a prompt, are not recorded, because they run once."""


class GraphedTransformer(nn.Module):
    """A fused transformer with recorded short passes. Its caches have lengths in multiples of ``bucket`` and are
    reused, so it serves one request at a time."""

    def __init__(self, plain: FusedTransformer, cache: GraphCache[_Step], bucket: int) -> None:
        super().__init__()
        self._plain, self._cache, self._bucket = (plain,), cache, bucket
        self._caches: OrderedDict[int, KeyValueCache] = OrderedDict()
        """By length, the last used one last."""

    @property
    def plain(self) -> FusedTransformer:
        return self._plain[0]

    @property
    def config(self) -> CausalConfig:
        return self.plain.config

    def cache(self, capacity: int, batch: int = 1) -> KeyValueCache:
        """An empty cache, which reuses the memory of the last one of its length."""
        room = math.ceil(capacity / self._bucket) * self._bucket
        if room not in self._caches:
            while len(self._caches) >= MOST_CACHES:
                self._cache.forget(self._caches.popitem(last=False)[1])
            self._caches[room] = self.plain.cache(room, batch)
            # Unwritten memory is masked, but must be finite.
            self._caches[room].clear_memory()
        self._caches.move_to_end(room)
        self._caches[room].crop(0)
        return self._caches[room]

    def reach(self, positions: int) -> None:
        self.plain.reach(positions)

    def fill(self, embedded: Tensor, cache: KeyValueCache, positions: Tensor) -> None:
        self.plain.fill(embedded, cache, positions)

    @torch.inference_mode()
    def forward(
        self,
        embedded: Tensor,
        cache: KeyValueCache | None = None,
        positions: Tensor | None = None,
        probe: Probe | None = None,
        skip: frozenset[int] = NOTHING,
    ) -> Tensor:
        tokens = embedded.shape[1]
        plain = probe is not None or bool(skip) or not 1 <= tokens <= MOST_TOKENS
        if cache is None or positions is None or plain or cache not in self._caches.values():
            return self.plain(embedded, cache, positions, probe, skip)
        seen = min(math.ceil((cache.length + tokens) / self._bucket) * self._bucket, cache.capacity)
        found = self._cache.find(
            ("language", ref(self.plain), id(cache), tokens, seen, len(self.plain.rotations)),
            lambda: _Step(self.plain, self._cache.record, cache, seen, embedded, positions),
            f"a pass over {tokens} token{'s' if tokens > 1 else ''} within {seen}",
        )
        if found is None:
            return self.plain(embedded, cache, positions)
        hidden = found.hidden(embedded, cache.length, positions)
        cache.advance(tokens)
        return hidden


class _Step:
    """Recording of a pass over a few tokens, with the first ``seen`` places of the cache visible, later ones masked."""

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
        # What the recording reads must live as long as it: longer speech has another table of rotations.
        self._of = transformer, cache, transformer.rotations
        # Recording runs the pass, so what it writes into the cache must be correct.
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
                layer.turn(projected.narrow(2, 0, heads + key_heads), rotation)
                query, both = projected.split((heads, 2 * key_heads), dim=2)
                memory[index].index_copy_(1, self._places, both)
                query = query.transpose(1, 2).reshape(1, key_heads, -1, width)
                mixed = F.scaled_dot_product_attention(query, keys[index], values[index], mask)
                mixed = mixed.reshape(1, heads, tokens, width)
                hidden = layer.after(mixed.transpose(1, 2).reshape(-1, heads * width), hidden)
            return transformer.final_norm(hidden).view_as(self._embedded)

        self._replay, self._output = record(run)

    def hidden(self, embedded: Tensor, length: int, positions: Tensor) -> Tensor:
        """Hidden states of ``embedded`` after ``length`` others."""
        self._embedded.copy_(embedded)
        torch.add(self._offsets, length, out=self._places)
        self._positions.copy_(positions)
        self._replay()
        return self._output.clone()


# --- Evaluations of flow models ---------------------------------------------------------------------------------------
FRAME_AXES = {"rotary": 0, "constant": 1, "to_sample": 1}
"""Axis of the frames in each tensor shared by a flow model's evaluations."""


class GraphedEvaluator:
    """Computes everything by recordings. See :class:`paretone.sampling.flow.Evaluator`."""

    def __init__(self, backbone: DiffusionTransformer | UNetT, cache: GraphCache[_Evaluation], bucket: int) -> None:
        self._backbone, self._cache = backbone, cache
        # The convolutions of E2-TTS would see padding, so each of its lengths has its own graph.
        self._bucket = bucket if isinstance(backbone, DiffusionTransformer) else 1

    def velocities(self, state: Tensor, evaluation: int, run: Any) -> Tensor:
        frames = math.ceil(state.shape[1] / self._bucket) * self._bucket
        key = "flow", ref(self._backbone), run.branches, frames, state.shape[0], state.shape[2], self._bucket > 1
        found = self._cache.find(
            key,
            lambda: _Evaluation(self._backbone, self._cache.record, state, run, frames, masked=self._bucket > 1),
            f"an evaluation of {frames} frames in {run.branches} branch{'es' if run.branches > 1 else ''}",
        )
        if found is None:
            return self._backbone.velocity(state, evaluation, run)
        return found.velocities(state, evaluation, run)

    def operations(self, evaluation: int, counts: OperationCounts) -> float:
        return counts.evaluation


class _Evaluation:
    def __init__(
        self,
        backbone: DiffusionTransformer | UNetT,
        record: Record,
        state: Tensor,
        run: Any,
        frames: int,
        *,
        masked: bool,
    ) -> None:
        # Keys contain identities, so the backbone must live as long as its recording.
        self._of = backbone
        self._state = state.new_zeros(state.shape[0], frames, state.shape[2])
        rows = run.branches * len(state)
        changes: dict[str, Any] = {name: one.clone() for name, one in times_of(run, 0).items()}
        changes["mask"] = torch.ones(rows, frames, dtype=torch.bool, device=state.device) if masked else None
        for name, axis in FRAME_AXES.items():
            if hasattr(run, name):
                changes[name] = _lengthened(getattr(run, name), axis, frames - state.shape[1])
        # The result of the backbone's own ``begin``, of one of two unrelated types.
        self._run: Any = replace(run, **changes)
        self._owner: Conditioning | UNetTConditioning | None = None
        self._take_over(run, state.shape[1])

        def evaluate() -> Tensor:
            with _padding_unseen(backbone):
                return backbone.velocity(self._state, 0, self._run)

        self._replay, self._output = record(evaluate)

    def velocities(self, state: Tensor, evaluation: int, run: Conditioning | UNetTConditioning) -> Tensor:
        length = state.shape[1]
        if run is not self._owner:
            self._take_over(run, length)
        self._state[:, :length].copy_(state)
        for name, one in times_of(run, evaluation).items():
            getattr(self._run, name).copy_(one)
        self._replay()
        return self._output[:, :length]

    def _take_over(self, run: Conditioning | UNetTConditioning, length: int) -> None:
        """Copy in the shared state of a new run's evaluations."""
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
    """Do not attend to padding, even in families whose official model attends to the padding of shorter items."""
    modules = [block.attention for block in backbone.blocks]
    for one in modules:
        one.attends_padding = False
    try:
        yield
    finally:
        for one in modules:
            del one.attends_padding


def _parts(run: Conditioning | UNetTConditioning, name: str) -> tuple[Tensor, ...]:
    value = getattr(run, name)
    return value if isinstance(value, tuple) else (value,)


def _lengthened(value: Any, axis: int, more: int) -> Any:
    """A copy of a tensor, or of each of a tuple, with ``more`` zeros appended."""
    if isinstance(value, tuple):
        return tuple(_lengthened(one, axis, more) for one in value)
    shape = list(value.shape)
    shape[axis] = more
    return torch.cat([value, value.new_zeros(shape)], dim=axis)


# --- Steps of masked models, by length bucket -------------------------------------------------------------------------
# The rows before the canvas, the canvas, and the frames to fill in are each rounded up to the bucket. Padded rows are
# never attended to; the frames to fill in are read from fixed memory. Passages, blocks and texts of different lengths
# thus share a recording, and results are equal up to rounding.


class Sizes(NamedTuple):
    """Sizes of a recording: rows before the canvas, its frames, and scored frames."""

    prefix: int
    frames: int
    scored: int


class GraphedRun(MaskedRun):
    def __init__(
        self,
        network: FusedMasked,
        request: MaskedRequest,
        guidance: float,
        cache: GraphCache[_DemaskingStep],
        bucket: int,
    ) -> None:
        super().__init__(network, request, guidance)
        self._cache, self._bucket = cache, bucket

    @torch.inference_mode()
    def scores(self, codes: Tensor, first: int, last: int, guide: Guide) -> Tensor:
        possible = self._possible(guide, first, last)
        exact = self._request.prefix, self._request.frames, last - first
        sizes = Sizes(*(math.ceil(one / self._bucket) * self._bucket for one in exact))
        branches = 2 if possible is Guide.BOTH else 1
        found = self._cache.find(
            ("masked", ref(self._network), sizes, possible, self._guidance, self._bucket > 1),
            lambda: _DemaskingStep(self, sizes, possible, self._cache.record, masked=self._bucket > 1),
            f"a step with {sizes.prefix + branches * sizes.frames} rows",
        )
        if found is None:
            return super().scores(codes, first, last, guide)
        self._count(last - first, possible)
        scores, difference = found.scores(self, codes, first, last)
        if difference is not None:
            self._difference = (first, last), difference
        return scores


def with_graphs(network: FusedMasked, cache: GraphCache[_DemaskingStep], bucket: int) -> FusedMasked:
    """``network`` with recorded steps, of lengths in multiples of ``bucket``."""
    return network.beginning(lambda request, guidance: GraphedRun(network, request, guidance, cache, bucket))


class _PaddedRun(MaskedRun):
    """A canvas with room for any shorter one, whose contents are copied in."""

    def __init__(self, like: GraphedRun, sizes: Sizes, *, masked: bool) -> None:
        request, device = like._request, like._network.device
        padding = request.text.new_zeros(sizes.prefix)
        super().__init__(like._network, MaskedRequest(padding, request.reference[:, :0], sizes.frames), like._guidance)
        self._seen = torch.zeros(1, sizes.prefix + sizes.frames, dtype=torch.bool, device=device)
        self.places = torch.arange(sizes.scored, device=device)
        if masked:
            seen = self._seen, self._seen[:, sizes.prefix :]
            self._guided, self._unguided = (
                replace(rows, seen=seen[: len(rows.parts)]) for rows in (self._guided, self._unguided)
            )

    def wanted(self, rows: Rows, first: int, last: int) -> tuple[Tensor, ...]:
        # A row after the frames of its branch would belong to another branch.
        frames = self._request.frames
        places = self.places.clamp(max=frames - 1)
        return tuple(places + (part.stop - part.start - frames) for part in rows.parts)

    def take_over(self, run: MaskedRun) -> None:
        """Copy in the shared state of all steps of ``run``."""
        prefix, frames, room = run._request.prefix, run._request.frames, self._request.prefix
        self._seen[:, :prefix] = True
        self._seen[:, prefix:room] = False
        self._seen[:, room : room + frames] = True
        self._seen[:, room + frames :] = False
        both = ((one._prefix, *one._prefix_projected) for one in (self, run))
        for target, source in zip(*both, strict=True):
            target[:prefix].copy_(source)
        for mine, theirs in ((self._guided, run._guided), (self._unguided, run._unguided)):
            for target, source in ((mine.cosines, theirs.cosines), (mine.sines, theirs.sines)):
                target[:prefix].copy_(source[:prefix])
                for part, other in zip(mine.parts, theirs.parts, strict=True):
                    start = part.stop - self._request.frames
                    target[start : start + frames].copy_(source[other.stop - frames : other.stop])


class _DemaskingStep:
    def __init__(self, run: GraphedRun, sizes: Sizes, guide: Guide, record: Record, *, masked: bool) -> None:
        config = run._network.config
        self._static = _PaddedRun(run, sizes, masked=masked)
        self._codes = torch.full((config.codebooks, sizes.frames), config.mask, device=run._network.device)
        self._owner = run
        self._static.take_over(run)
        self._guide = guide
        if guide is Guide.REUSED:
            found = run._last_difference()
            self._static._difference = (0, sizes.scored), found.new_zeros(sizes.scored, found.shape[1])
        self._replay, self._output = record(lambda: self._static.scores(self._codes, 0, sizes.scored, guide))

    def scores(self, run: GraphedRun, codes: Tensor, first: int, last: int) -> tuple[Tensor, Tensor | None]:
        """Scores, and the branches' difference if computed."""
        if run is not self._owner:
            self._owner = run
            self._static.take_over(run)
        frames = min(codes.shape[1], self._codes.shape[1])
        self._codes[:, :frames].copy_(codes[:, :frames])
        torch.arange(first, first + len(self._static.places), out=self._static.places)
        scored, difference = last - first, None
        if self._guide is Guide.REUSED:
            self._static._last_difference()[:scored].copy_(run._last_difference())
        self._replay()
        if self._guide is Guide.BOTH:
            difference = self._static._last_difference()[:scored].clone()
        return self._output[:, :scored], difference
