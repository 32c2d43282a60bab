"""Passes through a causal transformer, and drafts on its states, each as one call of machine code, which numba compiles
for the processor that runs it.

At one token per pass, some 260 operators took three times as long as reading the weights. Here a pass is one function
that runs on one thread, without Python's lock. Results equal those of
:class:`paretone.models.kernels.fused_causal.FusedTransformer` up to rounding, and a row's result does not depend on
other rows, bit for bit: neither on how many tokens a pass reads, nor on other sequences in it. For float32 on
processors, with weights of float16 or float32.

Code is compiled when a model first needs it (:func:`prepare`) and kept on disk: in the folder ``NUMBA_CACHE_DIR``, or
next to this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray
from torch import Tensor

from paretone.models.kernels.machine_code import BLOCK, LANES, ROWS, SCORED, at_once, call, kernels, pointer
from paretone.models.networks.causal import CausalConfig
from paretone.sampling.cache import Limits
from paretone.sampling.compiled_tokens import ONE, compiled, draw_from, exponential, shares_of, truncate
from paretone.sampling.tokens import Truncation

Array = np.ndarray[Any, Any]


class Layers(NamedTuple):
    """A transformer's layers; weights are blocks of (inputs, BLOCK) given by their addresses."""

    weights: Array
    """(layers, 4): of queries, keys and values; of the output; of gate and up; of down."""
    norms: Array
    """(layers, 2, hidden): before attention and before the feed-forward."""
    biases: Array
    """(layers, outputs), or nothing: of queries, keys and values."""
    norms_of_heads: Array
    """(layers, heads + key_heads, width), or nothing."""
    shrinking: Array
    """(layers, 2): factors for what the output and down read, if their weights are stored larger than they are."""
    kernels: Array
    """See :func:`kernels`."""
    half: bool
    epsilon: float
    epsilon_of_heads: float
    heads: int
    key_heads: int
    width: int
    feed_forward: int


class Head(NamedTuple):
    """Scores of tokens: the weights of the norm before them, the address of their own, and the bias (rows,), or
    nothing."""

    norm: Array
    weights: int
    bias: Array
    rows: int


class Draft(NamedTuple):
    """A draft's weights of the norms of states and tokens, addresses of the weight that joins them and of the
    head's first one, and the numbers between its two."""

    of_state: Array
    of_token: Array
    join: int
    narrow: int
    rank: int
    head: Head


@compiled
def padded(count):
    """``count`` outputs in whole blocks."""
    return -(-count // BLOCK) * BLOCK


@compiled
def add_product(out, x, weights, inputs, half, kernels):
    """Add to ``out`` (rows, whole blocks) the product of ``x`` (rows, inputs) with the weights."""
    size = 2 * BLOCK if half else 4 * BLOCK
    kind, x_step, step = kernels[1 if half else 0], x.strides[0], out.strides[0]
    together = at_once(len(x))
    for block in range(out.shape[1] // BLOCK):
        at, to = weights + block * inputs * size, out.ctypes.data + 4 * BLOCK * block
        for row in range(0, len(x), together):
            rows = min(together, len(x) - row)
            call(kind[rows - 1], at, size, inputs, x.ctypes.data + row * x_step, x_step, to + row * step, step)


@compiled
def norm(x, begin, weight, epsilon, out):
    """Root mean square norm of the numbers from ``begin`` on, to the same places of ``out``."""
    total = np.float32(0)
    for place in range(len(weight)):
        total += x[begin + place] * x[begin + place]
    factor = ONE / np.sqrt(total / np.float32(len(weight)) + np.float32(epsilon))
    for place in range(len(weight)):
        out[begin + place] = x[begin + place] * factor * weight[place]


@compiled
def _attend(projected, mixed, scores, sequences, layer, layers):
    """Attention within each sequence, to keys and values of its cache, where those of its rows have been written."""
    width, key_heads, fold = layers.width, layers.key_heads, layers.heads // layers.key_heads
    factor, multiplying, scoring = layers.shrinking[layer, 0], layers.kernels[0], layers.kernels[2]
    size, step, row_step, out_step = 4 * width, scores.strides[0], projected.strides[0], mixed.strides[0]
    # What several sequences share is read head by head, so that it stays in the processor's cache.
    for head in range(key_heads):
        row = 0
        for count, start, own, of_layer, of_head, first, of_first_layer, of_first_head, shared in sequences:
            keys = own + layer * of_layer + head * of_head + size * shared
            first_keys = first + layer * of_first_layer + head * of_first_head
            values, first_values = keys + key_heads * of_head, first_keys + key_heads * of_first_head
            # Heads that share keys are rows like tokens, of one token; of several, they come one after another.
            alone = count == 1
            items, turns = (fold, 1) if alone else (count, fold)
            apart, out_apart = (size, size) if alone else (row_step, out_step)
            for turn in range(turns):
                for begin in range(0, items, min(ROWS, SCORED)):
                    rows = min(ROWS, SCORED, items - begin)
                    number, place = (row, head * fold + begin) if alone else (row + begin, head * fold + turn)
                    length = start + 1 if alone else start + begin + rows
                    query = projected.ctypes.data + number * row_step + place * size
                    out = mixed.ctypes.data + number * out_step + place * size
                    # Addresses of keys and values, tokens before, and tokens.
                    parts = (first_keys, first_values, 0, shared), (keys, values, shared, length - shared)
                    group, score, multiply = 4 if rows == 3 else rows, scoring[rows - 1], multiplying[rows - 1]
                    for part, _, before, tokens in parts:
                        # Scores of a part may end in the next one's places.
                        for one in range(rows):
                            for at in range(before, length):
                                scores[one, at] = 0
                        to, groups = scores.ctypes.data + 4 * before, -(-tokens * group // LANES)
                        for column in range(0, size if tokens else 0, 4 * BLOCK):
                            call(score, part + column, size, groups, query + column, apart, to, step)
                    for one in range(rows):
                        # A token sees those before it.
                        seen = length if alone else length - rows + one + 1
                        share = factor / shares_of(scores[one], seen, length)
                        for at in range(length):
                            scores[one, at] *= share
                    for _, part, before, tokens in parts:
                        at = scores.ctypes.data + 4 * before
                        for column in range(0, size if tokens else 0, 4 * BLOCK):
                            call(multiply, part + column, size, tokens, at, step, out + column, out_apart)
            row += count


@compiled
def _remember(projected, sequences, layer, layers):
    """Write the rows' keys and values into the caches."""
    width, row, begin = layers.width, 0, layers.heads * layers.width
    for count, start, own, of_layer, of_head, _, _, _, _ in sequences:
        for token in range(count):
            for head in range(2 * layers.key_heads):
                at = own + layer * of_layer + head * of_head + 4 * width * (start + token)
                kept = carray(pointer(at), width, np.float32)
                for place in range(width):
                    kept[place] = projected[row, begin + head * width + place]
            row += 1


@compiled
def run(hidden, sequences, positions, rotations, layers, outputs):
    """A pass over the rows of some sequences. ``hidden`` (rows, whole blocks) is what they embed, and becomes the last
    layer's output; ``outputs`` (layers, rows, hidden) are those of all. Without any, only keys and values are written.

    ``positions`` (rows,) are those of ``rotations`` (all, width), pairs of numbers; ``sequences`` have, each: rows;
    tokens before; address of the first layer's keys; bytes from layer to layer, and from head to head; the same three
    of the cache with the first tokens, and how many of these are read there."""
    rows, width, turned = len(hidden), layers.width, layers.heads + layers.key_heads
    size, inner, scale = layers.norms.shape[2], layers.feed_forward, np.float32(layers.width**-0.5)
    normed, active = np.empty((rows, size), np.float32), np.empty((rows, inner), np.float32)
    # One row more, since three are read like four.
    projected = np.empty((rows + 1, padded((turned + layers.key_heads) * width)), np.float32)
    mixed, wide = np.empty((rows, layers.heads * width), np.float32), np.empty((rows, padded(2 * inner)), np.float32)
    longest = 0
    for one in sequences:
        longest = max(longest, one[0] + one[1])
    scores = np.empty((4, longest + LANES), np.float32)
    for layer in range(len(layers.weights)):
        weights, shrinking = layers.weights[layer], layers.shrinking[layer, 1]
        for row in range(rows):
            norm(hidden[row], 0, layers.norms[layer, 0], layers.epsilon, normed[row])
            for place in range(projected.shape[1]):
                projected[row, place] = layers.biases[layer, place] if place < layers.biases.shape[1] else 0
            for place in range(mixed.shape[1]):
                mixed[row, place] = 0
            for place in range(wide.shape[1]):
                wide[row, place] = 0
        add_product(projected[:rows], normed, weights[0], size, layers.half, layers.kernels)
        for row in range(rows):
            line, rotation = projected[row], rotations[positions[row]]
            for head in range(turned):
                begin, factor = head * width, scale if head < layers.heads else ONE
                if len(layers.norms_of_heads):
                    norm(line, begin, layers.norms_of_heads[layer, head], layers.epsilon_of_heads, line)
                for place in range(0, width, 2):
                    real, imaginary = line[begin + place] * factor, line[begin + place + 1] * factor
                    line[begin + place] = real * rotation[place] - imaginary * rotation[place + 1]
                    line[begin + place + 1] = real * rotation[place + 1] + imaginary * rotation[place]
        _remember(projected, sequences, layer, layers)
        if not len(outputs) and layer == len(layers.weights) - 1:
            break
        _attend(projected, mixed, scores, sequences, layer, layers)
        add_product(hidden, mixed, weights[1], mixed.shape[1], layers.half, layers.kernels)
        for row in range(rows):
            norm(hidden[row], 0, layers.norms[layer, 1], layers.epsilon, normed[row])
        add_product(wide, normed, weights[2], size, layers.half, layers.kernels)
        for row in range(rows):
            for place in range(inner):
                gate, up = wide[row, place], wide[row, inner + place]
                active[row, place] = gate / (ONE + exponential(-gate)) * up * shrinking
        add_product(hidden, active, weights[3], inner, layers.half, layers.kernels)
        for row in range(rows if len(outputs) else 0):
            for place in range(size):
                outputs[layer, row, place] = hidden[row, place]


@compiled
def score(hidden, scored, head, layers, normed, scores):
    """The norm of all rows, and the scores of the last ones."""
    for row in range(len(hidden)):
        norm(hidden[row], 0, head.norm, layers.epsilon, normed[row])
    for row in range(scored):
        for place in range(scores.shape[1]):
            scores[row, place] = head.bias[place] if place < len(head.bias) else 0
    first = len(hidden) - scored
    add_product(scores, normed[first:], head.weights, normed.shape[1], layers.half, layers.kernels)


@compiled
def _drafts(states, embedded, uniforms, table, rotations, limits, sampling, draft, layers, sequences, drafted, shares):
    """Draft tokens into ``drafted`` and their distributions into ``shares``; returns how many."""
    seen, minimum, length, codes, stops = limits
    size, head, count = table.shape[1], draft.head, len(embedded)
    given, tokens = states.copy(), embedded.copy()
    joined, hidden = np.empty((count, 2 * size), np.float32), np.empty((count, padded(size)), np.float32)
    normed, narrow = np.empty((1, size), np.float32), np.empty((1, padded(draft.rank)), np.float32)
    scores = np.empty((1, padded(head.rows)), np.float32)
    for number in range(len(uniforms)):
        start = sequences[0, 1]
        for row in range(count):
            norm(given[row], 0, draft.of_state, layers.epsilon, joined[row, :size])
            norm(tokens[row], 0, draft.of_token, layers.epsilon, joined[row, size:])
            for place in range(hidden.shape[1]):
                hidden[row, place] = 0
        add_product(hidden[:count], joined[:count], draft.join, 2 * size, layers.half, layers.kernels)
        positions = np.arange(start, start + count)
        outputs = np.empty((len(layers.weights), count, size), np.float32)
        run(hidden[:count], sequences, positions, rotations, layers, outputs)
        norm(hidden[count - 1], 0, head.norm, layers.epsilon, normed[0])
        for place in range(narrow.shape[1]):
            narrow[0, place] = 0
        for place in range(scores.shape[1]):
            scores[0, place] = head.bias[place] if place < len(head.bias) else 0
        add_product(narrow, normed, draft.narrow, size, layers.half, layers.kernels)
        add_product(scores, narrow, head.weights, draft.rank, layers.half, layers.kernels)
        # As within_length in paretone.sampling.autoregressive.
        for place in range(codes, codes + stops if seen < minimum else codes):
            scores[0, place] = -np.inf
        for place in range(codes if 0 <= length <= seen else 0):
            scores[0, place] = -np.inf
        truncate(scores[0], sampling[0], sampling[1], sampling[2], shares[number])
        token = draw_from(shares[number], uniforms[number])
        drafted[number] = token
        if token >= codes:
            return number + 1
        seen += 1
        sequences[0, 1] += count
        sequences[0, 0] = 1
        for place in range(size):
            given[0, place], tokens[0, place] = hidden[count - 1, place], table[token, place]
        count = 1
    return len(uniforms)


def multiply(out: Tensor, x: Tensor, address: int, half: bool) -> None:
    """Add to ``out`` (rows, whole blocks) the product of ``x`` (rows, inputs) with weights at ``address``."""
    add_product(out.numpy(), _rows(x), address, x.shape[1], half, kernels())


def layers_of(
    config: CausalConfig, products: Sequence[Sequence[Any]], norms: Sequence[Any], norms_of_heads: Sequence[Any]
) -> Layers:
    """The layers of a :class:`paretone.models.kernels.fused_causal.FusedTransformer`, whose products they read and do
    not keep: four a layer, two norms a layer, and one of heads or none."""
    scales = np.array([[one.scale for one in some] for some in products], np.float32)
    scaled = np.stack([one.weight.numpy() for one in norms]).reshape(len(products), 2, -1)
    biases = [some[0].bias for some in products if some[0].bias is not None]
    of_heads = [one.weight.numpy() for one in norms_of_heads]
    return Layers(
        weights=np.array([[one.address for one in some] for some in products], np.int64),
        # Powers of two: what is read by weights that are stored larger is smaller, exactly.
        norms=scaled / scales[:, ::2, None],
        biases=torch.stack(biases).numpy() if biases else np.empty((0, 0), np.float32),
        norms_of_heads=np.stack(of_heads) if of_heads else np.empty((0, 0, 0), np.float32),
        shrinking=1 / scales[:, 1::2],
        kernels=kernels(),
        half=products[0][0].half,
        epsilon=norms[0].epsilon,
        epsilon_of_heads=norms_of_heads[0].epsilon if of_heads else 0.0,
        heads=config.heads,
        key_heads=config.key_value_heads,
        width=config.head_width,
        feed_forward=config.feed_forward,
    )


def head_of(norm: Any, product: Any) -> Head:
    """Scores by ``product`` after ``norm``."""
    bias = np.empty(0, np.float32) if product.bias is None else product.bias.numpy()
    return Head(norm.weight.numpy(), product.address, bias, product.outputs)


def prepare() -> None:
    """Compile a pass and scores, or read them from disk: no take is timed with that in it."""
    none, nothing = np.empty((0, 0), np.float32), np.empty((0, 2, 1), np.float32)
    weights = np.empty((0, 4), np.int64)
    layers = Layers(weights, nothing, none, nothing, none, kernels(), False, 0.0, 0.0, 1, 1, 1, 1)
    place, outputs, block = np.zeros(1, np.int64), np.empty((0, 1, 1), np.float32), np.zeros((1, BLOCK), np.float32)
    run(block, np.zeros((1, 9), np.int64), place, none, layers, outputs)
    score(block, 0, Head(np.empty(0, np.float32), 0, place.astype(np.float32), 0), layers, none, none)


class Place(NamedTuple):
    """Where a pass reads ``tokens``: after the first ``start`` of a cache."""

    memory: Tensor
    start: int
    tokens: int
    positions: Tensor
    """(tokens,)."""
    rotations: Tensor
    """(all positions, head_width / 2), complex."""

    def sequence(self, batch: int = 0, leader: Place | None = None, shared: int = 0) -> list[int]:
        """As in :func:`run`; the first ``shared`` tokens are read in the cache of ``leader``."""
        first = self if leader is None else leader
        return [self.tokens, self.start, *self._addresses(batch), *first._addresses(batch), shared]

    def _addresses(self, batch: int) -> list[int]:
        of_layer, of_item, of_head, *_ = self.memory.stride()
        return [self.memory.data_ptr() + 4 * batch * of_item, 4 * of_layer, 4 * of_head]

    @property
    def table(self) -> Array:
        """Rotations as pairs of numbers, (all positions, head_width)."""
        return torch.view_as_real(self.rotations).flatten(-2).numpy()


def _rows(x: Tensor) -> Array:
    return x.contiguous().numpy()


def in_blocks(x: Tensor) -> Array:
    """Rows, copied, with room for whole blocks."""
    found = np.zeros((len(x), padded(x.shape[1])), np.float32)
    found[:, : x.shape[1]] = x.numpy()
    return found


def _outputs(layers: Layers, rows: int) -> Tensor:
    return torch.empty(len(layers.weights), rows, layers.norms.shape[2])


def pass_together(
    embedded: Sequence[Tensor], layers: Layers, places: Sequence[Place], groups: Sequence[tuple[int, int]]
) -> list[Tensor]:
    """A pass over several sequences, (tokens, hidden) each, at their places, which writes keys and values. ``groups``:
    numbers of consecutive sequences, and of the first tokens that their caches have in common, which are read once for
    all of them. Returns the layers' outputs, (all tokens, hidden) each."""
    sequences, first = [], 0
    for size, shared in groups:
        sequences += [one.sequence(0, places[first], shared) for one in places[first : first + size]]
        first += size
    positions, outputs = torch.cat([one.positions for one in places]).numpy(), _outputs(layers, sum(map(len, embedded)))
    hidden = in_blocks(torch.cat(list(embedded)))
    run(hidden, np.array(sequences, np.int64), positions, places[0].table, layers, outputs.numpy())
    return list(outputs)


def pass_of(embedded: Tensor, layers: Layers, place: Place, *, filling: bool = False) -> list[Tensor]:
    """A pass over ``embedded`` (batch, tokens, hidden): writes keys and values, and, unless only ``filling`` the cache,
    returns the layers' outputs, (batch · tokens, hidden) each."""
    hidden, positions = in_blocks(embedded.flatten(0, 1)), place.positions.repeat(len(embedded)).numpy()
    sequences = np.array([place.sequence(item) for item in range(len(embedded))], np.int64)
    outputs = _outputs(layers, len(hidden))[: 0 if filling else None]
    run(hidden, sequences, positions, place.table, layers, outputs.numpy())
    return list(outputs)


def scores_of(
    embedded: Tensor, scored: int, keeps: Sequence[int], head: Head, layers: Layers, place: Place
) -> tuple[Tensor, Tensor]:
    """:func:`pass_of` one sequence (tokens, hidden), with the scores (scored, ids) after its last tokens, and outputs
    of the layers ``keeps`` and the last one's after the norm, (tokens, (kept + 1) · hidden)."""
    outputs, normed = _outputs(layers, len(embedded)), torch.empty_like(embedded)
    scores, sequences = torch.empty(scored, padded(head.rows)), np.array([place.sequence()], np.int64)
    hidden = in_blocks(embedded)
    run(hidden, sequences, place.positions.numpy(), place.table, layers, outputs.numpy())
    score(hidden, scored, head, layers, normed.numpy(), scores.numpy())
    features = torch.cat([*(outputs[layer] for layer in keeps), normed], -1) if keeps else normed
    return scores[:, : head.rows], features


def drafts_of(
    states: Tensor,
    embedded: Tensor,
    uniforms: list[float],
    table: Tensor,
    limits: Limits,
    sampling: Truncation,
    draft: Draft,
    layers: Layers,
    place: Place,
) -> tuple[list[int], list[Tensor]]:
    """One drafted token for each of ``uniforms``, up to one that ends speech, and their distributions (ids,).
    Reads the first tokens, and then each drafted one but the last, embedded by ``table`` (ids, hidden)."""
    shares, drafted = torch.empty(len(uniforms), draft.head.rows), np.empty(len(uniforms), np.int64)
    count = _drafts(
        _rows(states),
        _rows(embedded),
        np.array(uniforms),
        table.numpy(),
        place.table,
        limits,
        sampling,
        draft,
        layers,
        np.array([place.sequence()], np.int64),
        drafted,
        shares.numpy(),
    )
    return drafted[:count].tolist(), list(shares[:count])
