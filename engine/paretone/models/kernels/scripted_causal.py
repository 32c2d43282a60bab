"""Passes of few tokens through a causal transformer, drafts on its states, and codes of a frame, each as one call of
TorchScript.

At one token per pass on a processor, a quarter of the time goes into calling some 260 operators from Python, more where
the weights that are read push the interpreter out of the caches. Here one interpreted function calls the same operators
in the same order as :class:`paretone.models.kernels.fused_causal.FusedTransformer`, so that results are equal bit by
bit, or up to rounding where values are gathered (:func:`gathering_pays`). Only for float32 on processors, with products
that are either all of float16 weights or all plain.
"""

from __future__ import annotations

import functools
import logging
import math
import warnings
from collections.abc import Callable, Sequence
from timeit import Timer
from typing import Any, NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.reading import first_line
from paretone.sampling.cache import Limits
from paretone.sampling.tokens import Truncation, draw, truncated

_log = logging.getLogger(__name__)
# TorchScript reads these types; it knows no ``Tensor | None`` in them.
LayerTensors = tuple[Tensor, Tensor, Optional[Tensor], Optional[Tensor], Tensor, Tensor, Tensor, Tensor]  # noqa: UP045
"""Of a layer: the scaled weight of its attention norm; weights and bias of queries, keys and values, scaled weights
(heads + key_heads, width) of the heads' norm, and weights of its output; the scaled weight of its feed-forward norm;
weights of gate and up, and of down. Weights are (outputs, inputs), or packed."""


class Layers(NamedTuple):
    tensors: list[LayerTensors]
    half: bool
    """Whether weights are packed."""
    floor: Tensor
    """Of the norms."""
    floor_of_heads: Tensor
    heads: int
    key_heads: int
    width: int
    gathered: int
    """Most tokens of a pass that gathers values; 0 where that does not pay."""


class Place(NamedTuple):
    """Where a pass reads: after the first ``start`` tokens of a cache."""

    memory: Tensor
    start: int
    rotation: Tensor
    mask: Optional[Tensor]  # noqa: UP045
    """For several tokens."""
    gathers: bool
    """Whether values are gathered, of one sequence."""


class Head(NamedTuple):
    norm: Tensor
    """Scaled weight of the norm before it."""
    weight: Tensor
    bias: Optional[Tensor]  # noqa: UP045
    half: bool


class Draft(NamedTuple):
    """A draft's scaled weights of the norms of states and tokens, the weight that joins them, and the head's two."""

    of_state: Tensor
    of_token: Tensor
    join: Tensor
    narrow: Tensor
    head: Head


class Frames(NamedTuple):
    """Of a predictor of the codes within a frame: tables (groups, codes, width) that embed them, the weight and bias
    from that width to the transformer's, if they differ, and for each group the weight of its scores."""

    tables: Tensor
    narrow: Optional[Tensor]  # noqa: UP045
    bias: Optional[Tensor]  # noqa: UP045
    norm: Tensor
    """Scaled weight of the norm before the scores."""
    heads: list[Tensor]


MOST_TOKENS = 16
"""Of more tokens, the time of the calls does not count."""
MOST_GATHERED, LEAST_SEEN = 6, 256
"""A pass gathers values if it has at most the first number of tokens, and its cache more than the second."""


def _norm(x: Tensor, scaled: Tensor, floor: Tensor) -> Tensor:
    """As :class:`paretone.models.kernels.fused_causal.QuickNorm`."""
    length = torch.linalg.vector_norm(x, 2.0, [-1], True)
    return x.div(torch.hypot(length, floor)).mul_(scaled)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None, half: bool) -> Tensor:
    if half:
        return torch.fbgemm_linear_fp16_weight_fp32_activation(x, weight, bias)
    return F.linear(x, weight, bias)


def _bags(tokens: int, length: int, capacity: int, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """For :func:`_gathered`: zero, rows of all values in a layer's memory by head and token, and the first of each."""
    first = torch.arange(heads * capacity, 2 * heads * capacity, capacity).view(-1, 1, 1)
    rows = (first + torch.arange(length)).expand(heads, tokens, length).reshape(-1)
    return torch.zeros(()), rows, torch.arange(0, len(rows), length)


def _gathered(
    query: Tensor,
    keys: Tensor,
    table: Tensor,
    mask: Optional[Tensor],  # noqa: UP045
    bags: tuple[Tensor, Tensor, Tensor],
    scale: float,
) -> Tensor:
    """Attention of ``query`` (tokens, heads, width) to ``keys`` (heads, length, width) and to the rows of ``table`` in
    ``bags``, (tokens, heads · width). Keys and values come from memory, and products wait for it. So values are summed
    as rows of a table, a kernel that fetches rows ahead of their use."""
    zero, rows, first = bags
    tokens, heads, width = query.size(0), query.size(1), query.size(2)
    if tokens == 1:
        scores = torch.baddbmm(zero, keys, query.permute(1, 2, 0), beta=0.0, alpha=scale).view(heads, 1, -1)
    else:
        # The sum does not count (beta), but it reads the keys faster than the product would.
        queries, transposed = query.transpose(0, 1), keys.transpose(1, 2)
        scores = torch.baddbmm(keys.sum(), queries, transposed, beta=0.0, alpha=scale)
    if mask is not None:
        scores.add_(mask)
    mixed = torch.embedding_bag(table, rows, first, False, 0, False, scores.softmax(-1).view(-1))[0]
    return mixed.view(heads, tokens, width).transpose(0, 1).reshape(tokens, -1)


def _pass(embedded: Tensor, layers: Layers, place: Place) -> list[Tensor]:
    batch, tokens, half, floor = embedded.size(0), embedded.size(1), layers.half, layers.floor
    heads, key_heads, width = layers.heads, layers.key_heads, layers.width
    hidden = embedded.reshape(batch * tokens, -1)
    start, length = place.start, place.start + tokens
    kept = place.memory.narrow(3, start, tokens).transpose(2, 3).unbind()
    keys = place.memory.narrow(2, 0, key_heads).narrow(3, 0, length).unbind()
    bags, mask, scale = (floor, floor, floor), place.mask, 1.0 / math.sqrt(width)
    if place.gathers:
        bags = _bags(tokens, length, place.memory.size(3), heads)
        values = place.memory.view(len(kept), -1, width).unbind()
        keys = place.memory.select(1, 0).narrow(1, 0, key_heads).narrow(2, 0, length).unbind()
    else:
        values = place.memory.narrow(2, key_heads, key_heads).narrow(3, 0, length).unbind()
    outputs: list[Tensor] = []
    for index, (attention, inputs, bias, normed, output, forward, gate_up, down) in enumerate(layers.tensors):
        projected = _product(_norm(hidden, attention, floor), inputs, bias, half).view(batch, tokens, -1, width)
        turned = projected.narrow(2, 0, heads + key_heads)
        if normed is not None:
            turned.copy_(_norm(turned, normed, layers.floor_of_heads))
        torch.view_as_complex(turned.unflatten(-1, [-1, 2])).mul_(place.rotation)
        kept[index].copy_(projected.narrow(2, heads, 2 * key_heads))
        query = projected.narrow(2, 0, heads)
        if place.gathers:
            mixed = _gathered(query[0], keys[index], values[index], mask, bags, scale)
        else:
            query = query.transpose(1, 2)
            if heads != key_heads:
                query = query.reshape(batch, key_heads, -1, width)
            mixed = F.scaled_dot_product_attention(query, keys[index], values[index], mask)
            if heads != key_heads:
                mixed = mixed.reshape(batch, heads, tokens, width)
            mixed = mixed.transpose(1, 2).reshape(-1, heads * width)
        hidden = _product(mixed, output, None, half).add_(hidden)
        gate, up = _product(_norm(hidden, forward, floor), gate_up, None, half).chunk(2, -1)
        hidden = _product(F.silu(gate).mul_(up), down, None, half).add_(hidden)
        outputs.append(hidden)
    return outputs


def _pass_together(
    hidden: Tensor,
    counts: list[int],
    memories: list[Tensor],
    starts: list[int],
    rotation: Tensor,
    masks: list[Optional[Tensor]],  # noqa: UP045
    groups: list[tuple[int, int]],
    layers: Layers,
) -> list[Tensor]:
    half, floor = layers.half, layers.floor
    heads, key_heads, width = layers.heads, layers.key_heads, layers.width
    fold = heads // key_heads
    # Views are made once for all layers. Heads that share keys are further queries, sequence by sequence.
    asked = hidden.new_empty([key_heads, fold * hidden.size(0), width])
    summed = torch.empty_like(asked)
    # Of each group, scores and shares (key_heads, queries, tokens): −∞ and 0 after a sequence's end.
    scores: list[Tensor] = []
    shares: list[Tensor] = []
    # Of each sequence, by layer: where its new keys and values go, its own keys, and the whole cache as rows of a
    # table. For all layers: what its own keys and values need (queries, scores, mask, shares, sum), and which rows of
    # the table its own values are, with the first of each head.
    places: list[list[Tensor]] = []
    keys: list[list[Tensor]] = []
    tables: list[list[Tensor]] = []
    own: list[tuple[Tensor, Tensor, Optional[Tensor], Tensor, Tensor]] = []  # noqa: UP045
    bags: list[tuple[Tensor, Tensor]] = []
    row = 0
    for size, shared in groups:
        number = len(places)
        ends = [starts[one] + counts[one] for one in range(number, number + size)]
        found = hidden.new_full([key_heads, fold * sum(counts[number : number + size]), max(ends)], -math.inf)
        shares.append(torch.empty_like(found))
        scores.append(found)
        first = row
        for place, end in enumerate(ends):
            one, later = number + place, end - shared
            memory, rows, mask = memories[one].select(1, 0), fold * counts[one], masks[one]
            places.append(list(memory.narrow(2, starts[one], counts[one]).transpose(1, 2).unbind()))
            keys.append(list(memory.narrow(1, 0, key_heads).narrow(2, shared, later).unbind()))
            tables.append(list(memory.flatten(1, 2).unbind()))
            at = torch.arange(key_heads, 2 * key_heads).unsqueeze(1) * memory.size(2) + torch.arange(shared, end)
            bags.append((at.view(-1), torch.arange(0, at.numel(), later)))
            if mask is not None:
                mask = mask.narrow(1, shared, later).t()
            seen = found.narrow(1, row - first, rows).narrow(2, shared, later).transpose(1, 2)
            share = shares[-1].narrow(1, row - first, rows).narrow(2, shared, later)
            own.append((asked.narrow(1, row, rows).transpose(1, 2), seen, mask, share, summed.narrow(1, row, rows)))
            row += rows
    outputs: list[Tensor] = []
    for index, (attention, inputs, bias, normed, output, forward, gate_up, down) in enumerate(layers.tensors):
        projected = _product(_norm(hidden, attention, floor), inputs, bias, half).view(hidden.size(0), -1, width)
        turned = projected.narrow(1, 0, heads + key_heads)
        if normed is not None:
            turned.copy_(_norm(turned, normed, layers.floor_of_heads))
        torch.view_as_complex(turned.unflatten(-1, [-1, 2])).mul_(rotation)
        query = projected.narrow(1, 0, heads).mul(1.0 / math.sqrt(width)).transpose(0, 1)
        if fold > 1:
            query = torch.cat([one.reshape(key_heads, -1, width) for one in query.split(counts, 1)], 1)
        asked.copy_(query)
        both = projected.narrow(1, heads, 2 * key_heads).split(counts)
        number, first = 0, 0
        for group, (size, shared) in enumerate(groups):
            found, share = scores[group], shares[group]
            rows = found.size(1)
            table = tables[number][index].view(2, key_heads, -1, width).narrow(2, 0, shared)
            if shared > 0:
                seen = torch.bmm(asked.narrow(1, first, rows), table[0].transpose(1, 2))
                found.narrow(2, 0, shared).copy_(seen)
            for one in range(number, number + size):
                places[one][index].copy_(both[one])
                query, seen, mask, _, _ = own[one]
                # This way round keys are read as they lie, which is faster.
                seen.copy_(torch.bmm(keys[one][index], query))
                if mask is not None:
                    seen.add_(mask)
            torch.softmax(found, -1, out=share)
            if shared > 0:
                summed.narrow(1, first, rows).copy_(torch.bmm(share.narrow(2, 0, shared), table[1]))
            else:
                summed.narrow(1, first, rows).zero_()
            for one in range(number, number + size):
                _, _, _, share, total = own[one]
                at, begin = bags[one]
                if total.size(1) == 1:
                    # Read as rows of a table, which are fetched ahead of their use.
                    seen = torch.embedding_bag(tables[one][index], at, begin, False, 0, False, share.reshape(-1))[0]
                    total.add_(seen.unsqueeze(1))
                else:
                    values = tables[one][index].view(2, key_heads, -1, width)[1]
                    total.baddbmm_(share, values.narrow(1, shared, share.size(2)))
            number += size
            first += rows
        together = summed
        if fold > 1:
            parts = summed.split([fold * count for count in counts], 1)
            together = torch.cat([one.reshape(heads, -1, width) for one in parts], 1)
        together = together.transpose(0, 1).reshape(-1, heads * width)
        hidden = _product(together, output, None, half).add_(hidden)
        gate, up = _product(_norm(hidden, forward, floor), gate_up, None, half).chunk(2, -1)
        hidden = _product(F.silu(gate).mul_(up), down, None, half).add_(hidden)
        outputs.append(hidden)
    return outputs


def _scores(
    embedded: Tensor, scored: int, keeps: list[int], head: Head, layers: Layers, place: Place
) -> tuple[Tensor, Tensor]:
    outputs = _pass(embedded, layers, place)
    hidden = _norm(outputs[-1], head.norm, layers.floor)
    features = hidden
    if len(keeps) > 0:
        features = torch.cat([outputs[layer] for layer in keeps] + [hidden], -1)
    last = hidden.narrow(0, hidden.size(0) - scored, scored)
    return _product(last, head.weight, head.bias, head.half), features


def _draft(
    states: Tensor, embedded: Tensor, scored: int, draft: Draft, layers: Layers, place: Place
) -> tuple[Tensor, Tensor]:
    half, floor, head = layers.half, layers.floor, draft.head
    joined = torch.cat([_norm(states, draft.of_state, floor), _norm(embedded, draft.of_token, floor)], -1)
    outputs = _pass(_product(joined, draft.join, None, half).unsqueeze(0), layers, place)[-1]
    last = _norm(outputs.narrow(0, outputs.size(0) - scored, scored), head.norm, floor)
    return outputs, _product(_product(last, draft.narrow, None, half), head.weight, head.bias, head.half)


def _drafts(
    states: Tensor,
    embedded: Tensor,
    uniforms: list[float],
    table: Tensor,
    rotations: Tensor,
    limits: Limits,
    sampling: Truncation,
    draft: Draft,
    layers: Layers,
    place: Place,
) -> tuple[list[int], list[Tensor]]:
    seen = limits.seen
    temperature, top_k, top_p = sampling
    drafted: list[int] = []
    proposals: list[Tensor] = []
    for uniform in uniforms:
        outputs, scores = _draft(states, embedded, 1, draft, layers, place)
        # As within_length in paretone.sampling.autoregressive.
        if seen < limits.minimum:
            scores.narrow(1, limits.codes, limits.stops).fill_(-math.inf)
        if 0 <= limits.length <= seen:
            scores.narrow(1, 0, limits.codes).fill_(-math.inf)
        proposal = truncated(scores, temperature, top_k, top_p)[0]
        token = draw(proposal, uniform)
        drafted.append(token)
        proposals.append(proposal)
        if token >= limits.codes:
            break
        seen, start = seen + 1, place.start + embedded.size(0)
        place = Place(place.memory, start, rotations.narrow(0, start, 1), None, False)
        states, embedded = outputs.narrow(0, outputs.size(0) - 1, 1), table.narrow(0, token, 1)
    return drafted, proposals


def _frame(
    state_and_first: Tensor,
    uniforms: list[float],
    rotations: Tensor,
    sampling: Truncation,
    frames: Frames,
    layers: Layers,
    memory: Tensor,
    mask: Tensor,
) -> list[int]:
    temperature, top_k, top_p = sampling
    codes: list[int] = []
    fed, start = state_and_first, 0
    for group, head in enumerate(frames.heads):
        narrow = frames.narrow
        if narrow is not None:
            fed = _product(fed, narrow, frames.bias, layers.half)
        rows = fed.size(0)
        place = Place(memory, start, rotations.narrow(0, start, rows), mask if rows > 1 else None, False)
        outputs = _pass(fed.unsqueeze(0), layers, place)[-1]
        hidden = _norm(outputs.narrow(0, rows - 1, 1), frames.norm, layers.floor)
        scores = _product(hidden, head, None, layers.half)
        codes.append(draw(truncated(scores, temperature, top_k, top_p)[0], uniforms[group]))
        fed, start = frames.tables[group].narrow(0, codes[group], 1), start + rows
    return codes


@functools.cache
def scripted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of this module as one call; the same in Python where TorchScript is missing."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            made: Callable[..., Any] = torch.jit.script(function)
            return made
    except (RuntimeError, AttributeError) as error:
        _log.warning("%s runs in Python, slower: TorchScript failed (%s).", function.__name__, first_line(error))
        return function


MEASURED_LENGTH, MEASURED_LAYERS, TRIALS = 384, 8, 7
READ_BETWEEN = 1 << 23
"""Numbers read between measurements: a pass reads its weights between two uses of keys and values."""


@functools.cache
def gathering_pays(heads: int, width: int, threads: int) -> bool:
    """Whether :func:`_gathered` values are faster for one token whose keys and values come from main memory."""
    memory = torch.ones(MEASURED_LAYERS, 2 * heads, MEASURED_LENGTH, width)
    others, query, scale = torch.ones(READ_BETWEEN), torch.ones(1, heads, width), width**-0.5

    def gather() -> None:
        bags = _bags(1, MEASURED_LENGTH, MEASURED_LENGTH, heads)
        for kept in memory:
            _gathered(query, kept[:heads], kept.view(-1, width), None, bags, scale)

    def attend() -> None:
        for kept in memory:
            F.scaled_dot_product_attention(query.transpose(0, 1)[None], *kept[None].chunk(2, 1))

    with torch.inference_mode():
        gathered, attended = (min(Timer(way, others.sum).repeat(TRIALS, 1)) for way in (gather, attend))
    return gathered < attended


def pass_of(embedded: Tensor, layers: Layers, place: Place) -> list[Tensor]:
    """A pass over ``embedded`` (batch, tokens, hidden): writes keys and values, and returns the layers' outputs,
    (batch · tokens, hidden) each."""
    outputs: list[Tensor] = scripted(_pass)(embedded, layers, place)
    return outputs


def pass_together(
    embedded: Sequence[Tensor], layers: Layers, places: Sequence[Place], groups: Sequence[tuple[int, int]]
) -> list[Tensor]:
    """:func:`pass_of` several sequences, (1, tokens, hidden) each, at their places. Products run over the rows of all,
    attention within each. ``groups``: numbers of consecutive sequences, and of the first tokens that their caches have
    in common, which are read once for all of them. Returns the layers' outputs, (all tokens, hidden) each."""
    counts = [one.shape[1] for one in embedded]
    memories, starts, rotations, masks, _ = zip(*places, strict=True)
    given = torch.cat(list(embedded), 1)[0], counts, list(memories), list(starts), torch.cat(rotations), list(masks)
    outputs: list[Tensor] = scripted(_pass_together)(*given, list(groups), layers)
    return outputs


def scores_of(
    embedded: Tensor, scored: int, keeps: Sequence[int], head: Head, layers: Layers, place: Place
) -> tuple[Tensor, Tensor]:
    """:func:`pass_of` one sequence, with the scores (scored, ids) after its last tokens, and outputs of the layers
    ``keeps`` and the last one's after the norm, (tokens, (kept + 1) · hidden)."""
    found: tuple[Tensor, Tensor] = scripted(_scores)(embedded, scored, list(keeps), head, layers, place)
    return found


def draft_of(
    states: Tensor, embedded: Tensor, scored: int, draft: Draft, layers: Layers, place: Place
) -> tuple[Tensor, Tensor]:
    """Outputs (tokens, hidden) of the last of :func:`pass_of`, and the scores (scored, ids) after the last ``scored``,
    of a draft on its target's states; see :class:`paretone.models.networks.feature_draft.FeatureDraft`."""
    found: tuple[Tensor, Tensor] = scripted(_draft)(states, embedded, scored, draft, layers, place)
    return found


def drafts_of(
    states: Tensor,
    embedded: Tensor,
    uniforms: list[float],
    tables: tuple[Tensor, Tensor],
    limits: Limits,
    sampling: Truncation,
    draft: Draft,
    layers: Layers,
    place: Place,
) -> tuple[list[int], list[Tensor]]:
    """One drafted token for each of ``uniforms``, up to one that ends speech, and their distributions (ids,).
    :func:`draft_of` reads the first tokens, and then each drafted one but the last, with the ``tables`` of embeddings
    (ids, hidden) and of rotations (positions, 1, head_width / 2)."""
    found: tuple[list[int], list[Tensor]] = scripted(_drafts)(
        states, embedded, uniforms, *tables, limits, sampling, draft, layers, place
    )
    return found


def frame_of(
    state_and_first: Tensor,
    uniforms: list[float],
    rotations: Tensor,
    sampling: Truncation,
    frames: Frames,
    layers: Layers,
    memory: Tensor,
    mask: Tensor,
) -> list[int]:
    """A code for each of ``uniforms``, one per group: read the two rows (2, width), and then each code but the last.
    ``memory``: of an empty cache; ``rotations`` (positions, 1, head_width / 2); ``mask`` of the two rows."""
    found: list[int] = scripted(_frame)(state_and_first, uniforms, rotations, sampling, frames, layers, memory, mask)
    return found
