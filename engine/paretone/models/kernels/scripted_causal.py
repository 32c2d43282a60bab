"""A pass of few tokens through a causal transformer, or a draft on its states, as one call of TorchScript.

At one token per pass on a processor, a quarter of the time goes into calling some 260 operators from Python. Here one
interpreted function calls the same operators in the same order as
:class:`paretone.models.kernels.fused_causal.FusedTransformer`, so that results are equal bit by bit. Only for float32
on processors, whose products are either all of float16 weights or all plain.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, List, Optional, Tuple  # noqa: UP035 (TorchScript reads these)

import torch
import torch.nn.functional as F
from torch import Tensor

from paretone.sampling.tokens import truncated

LayerTensors = Tuple[Tensor, Tensor, Optional[Tensor], Tensor, Tensor, Tensor, Tensor]  # noqa: UP006, UP045
"""Of a layer: the scaled weight of its attention norm; weights and bias of queries, keys and values, and weights of its
output; the scaled weight of its feed-forward norm; weights of gate and up, and of down. Weights are (outputs, inputs),
or packed."""
Arguments = tuple[Any, ...]
"""The layers' tensors, whether their weights are packed, and the norms' floor; the memory of a cache with its number of
tokens; rotations, a mask of several tokens, and the numbers of heads and of keys' heads with their width."""
HeadTensors = tuple[Tensor, Optional[Tensor], bool]  # noqa: UP045
"""Weights and bias of a head, and whether the weights are packed."""
OwnTensors = tuple[list[Tensor], Optional[Tensor]]  # noqa: UP045
"""Of a draft on its target's states: scaled weights of the norms of states and tokens, the weight that joins them, the
scaled weight of the last norm, the weights of the head, and the bias of its second."""
MOST_TOKENS = 16
"""Of more tokens, the time of the calls does not count."""


def _norm(x: Tensor, scaled: Tensor, floor: Tensor) -> Tensor:
    """As :class:`paretone.models.kernels.fused_causal.QuickNorm`."""
    length = torch.linalg.vector_norm(x, 2.0, [-1], True)
    return x.div(torch.hypot(length, floor)).mul_(scaled)


def _product(x: Tensor, weight: Tensor, bias: Optional[Tensor], half: bool) -> Tensor:  # noqa: UP045
    if half:
        return torch.fbgemm_linear_fp16_weight_fp32_activation(x, weight, bias)
    return F.linear(x, weight, bias)


def _pass(
    embedded: Tensor,
    layers: List[LayerTensors],  # noqa: UP006
    half: bool,
    floor: Tensor,
    memory: Tensor,
    start: int,
    rotation: Tensor,
    mask: Optional[Tensor],  # noqa: UP045
    heads: int,
    key_heads: int,
    width: int,
) -> List[Tensor]:  # noqa: UP006
    batch, tokens = embedded.size(0), embedded.size(1)
    hidden = embedded.reshape(batch * tokens, -1)
    outputs: List[Tensor] = []  # noqa: UP006
    for index, (attention, inputs, bias, output, forward, gate_up, down) in enumerate(layers):
        projected = _product(_norm(hidden, attention, floor), inputs, bias, half).view(batch, tokens, -1, width)
        turned = projected.narrow(2, 0, heads + key_heads)
        torch.view_as_complex(turned.unflatten(-1, [-1, 2])).mul_(rotation)
        kept = memory[index]
        kept.narrow(2, start, tokens).copy_(projected.narrow(2, heads, 2 * key_heads).transpose(1, 2))
        seen = kept.narrow(2, 0, start + tokens)
        query = projected.narrow(2, 0, heads).transpose(1, 2)
        if heads != key_heads:
            query = query.reshape(batch, key_heads, -1, width)
        key, value = seen.narrow(1, 0, key_heads), seen.narrow(1, key_heads, key_heads)
        mixed = F.scaled_dot_product_attention(query, key, value, mask)
        if heads != key_heads:
            mixed = mixed.reshape(batch, heads, tokens, width)
        hidden = _product(mixed.transpose(1, 2).reshape(-1, heads * width), output, None, half).add_(hidden)
        gate, up = _product(_norm(hidden, forward, floor), gate_up, None, half).chunk(2, -1)
        hidden = _product(F.silu(gate).mul_(up), down, None, half).add_(hidden)
        outputs.append(hidden)
    return outputs


def _scores(
    embedded: Tensor,
    scored: int,
    keeps: List[int],  # noqa: UP006
    norm: Tensor,
    head: Tensor,
    bias: Optional[Tensor],  # noqa: UP045
    half_head: bool,
    layers: List[LayerTensors],  # noqa: UP006
    half: bool,
    floor: Tensor,
    memory: Tensor,
    start: int,
    rotation: Tensor,
    mask: Optional[Tensor],  # noqa: UP045
    heads: int,
    key_heads: int,
    width: int,
) -> Tuple[Tensor, Tensor]:  # noqa: UP006
    outputs = _pass(embedded, layers, half, floor, memory, start, rotation, mask, heads, key_heads, width)
    hidden = _norm(outputs[-1], norm, floor)
    features = hidden
    if len(keeps) > 0:
        features = torch.cat([outputs[layer] for layer in keeps] + [hidden], -1)
    last = hidden.narrow(0, hidden.size(0) - scored, scored)
    return _product(last, head, bias, half_head), features


def _draft(
    states: Tensor,
    embedded: Tensor,
    scored: int,
    own: List[Tensor],  # noqa: UP006
    bias: Optional[Tensor],  # noqa: UP045
    layers: List[LayerTensors],  # noqa: UP006
    half: bool,
    floor: Tensor,
    memory: Tensor,
    start: int,
    rotation: Tensor,
    mask: Optional[Tensor],  # noqa: UP045
    heads: int,
    key_heads: int,
    width: int,
) -> Tuple[Tensor, Tensor]:  # noqa: UP006
    of_state, of_token, join, norm, narrow, widen = own
    joined = torch.cat([_norm(states, of_state, floor), _norm(embedded, of_token, floor)], -1)
    inner = _product(joined, join, None, half).unsqueeze(0)
    outputs = _pass(inner, layers, half, floor, memory, start, rotation, mask, heads, key_heads, width)[-1]
    last = _norm(outputs.narrow(0, outputs.size(0) - scored, scored), norm, floor)
    return outputs, _product(_product(last, narrow, None, half), widen, bias, half)


def _drafts(
    states: Tensor,
    embedded: Tensor,
    mask: Optional[Tensor],  # noqa: UP045
    uniforms: List[float],  # noqa: UP006
    table: Tensor,
    rotations: Tensor,
    limits: Tuple[int, int, int, int, int],  # noqa: UP006
    sampling: Tuple[float, int, float],  # noqa: UP006
    own: List[Tensor],  # noqa: UP006
    bias: Optional[Tensor],  # noqa: UP045
    layers: List[LayerTensors],  # noqa: UP006
    half: bool,
    floor: Tensor,
    memory: Tensor,
    start: int,
    heads: int,
    key_heads: int,
    width: int,
) -> Tuple[List[int], List[Tensor]]:  # noqa: UP006
    seen, minimum, length, codes, stops = limits
    temperature, top_k, top_p = sampling
    drafted: List[int] = []  # noqa: UP006
    proposals: List[Tensor] = []  # noqa: UP006
    for uniform in uniforms:
        tokens = embedded.size(0)
        rotation = rotations.narrow(0, start, tokens)
        sizes = heads, key_heads, width
        outputs, scores = _draft(
            states, embedded, 1, own, bias, layers, half, floor, memory, start, rotation, mask, *sizes
        )
        # As within_length and draw in paretone.sampling.
        if seen < minimum:
            scores.narrow(1, codes, stops).fill_(-math.inf)
        if 0 <= length <= seen:
            scores.narrow(1, 0, codes).fill_(-math.inf)
        proposal = truncated(scores, temperature, top_k, top_p)[0]
        sums = proposal.cumsum(-1)
        token = int(torch.searchsorted(sums, sums[-1:] * uniform, right=True))
        drafted.append(token)
        proposals.append(proposal)
        if token >= codes:
            break
        start, seen, mask = start + tokens, seen + 1, None
        states, embedded = outputs.narrow(0, tokens - 1, 1), table.narrow(0, token, 1)
    return drafted, proposals


@functools.cache
def scripted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of this module as one call; the same in Python where TorchScript is missing."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            made: Callable[..., Any] = torch.jit.script(function)
            return made
    except (RuntimeError, AttributeError):
        return function


def pass_of(embedded: Tensor, arguments: Arguments) -> List[Tensor]:  # noqa: UP006
    """A pass over ``embedded`` (batch, tokens, hidden): writes keys and values, and returns the layers' outputs,
    (batch · tokens, hidden) each."""
    outputs: List[Tensor] = scripted(_pass)(embedded, *arguments)  # noqa: UP006
    return outputs


def scores_of(
    embedded: Tensor, scored: int, keeps: Sequence[int], norm: Tensor, head: HeadTensors, arguments: Arguments
) -> tuple[Tensor, Tensor]:
    """:func:`pass_of` one sequence, with the scores (scored, ids) after its last tokens, and outputs of the layers
    ``keeps`` and the last one's after the norm, (tokens, (kept + 1) · hidden). ``norm``: scaled weight."""
    found: tuple[Tensor, Tensor] = scripted(_scores)(embedded, scored, list(keeps), norm, *head, *arguments)
    return found


def draft_of(
    states: Tensor, embedded: Tensor, scored: int, own: OwnTensors, arguments: Arguments
) -> tuple[Tensor, Tensor]:
    """Outputs (tokens, hidden) of the last of :func:`pass_of`, and the scores (scored, ids) after the last ``scored``,
    of a draft on its target's states; see :class:`paretone.models.networks.feature_draft.FeatureDraft`."""
    found: tuple[Tensor, Tensor] = scripted(_draft)(states, embedded, scored, *own, *arguments)
    return found


def drafts_of(
    states: Tensor,
    embedded: Tensor,
    uniforms: list[float],
    table: Tensor,
    rotations: Tensor,
    limits: tuple[int, int, int, int, int],
    sampling: tuple[float, int, float],
    own: OwnTensors,
    arguments: Arguments,
) -> tuple[list[int], list[Tensor]]:
    """One drafted token for each of ``uniforms``, up to one that ends speech, and their distributions (ids,).

    :func:`draft_of` reads the first tokens, and then each drafted one but the last, embedded by ``table`` and turned by
    ``rotations`` (positions, 1, head_width / 2). ``limits``: tokens before them, the least number, the whole number or
    −1, codes, and ids that end speech and are barred before the least; ``sampling``: as
    :func:`paretone.sampling.tokens.truncated`.
    """
    *layers, memory, start, _, mask, heads, key_heads, width = arguments
    sizes = memory, start, heads, key_heads, width
    found: tuple[list[int], list[Tensor]] = scripted(_drafts)(
        states, embedded, mask, uniforms, table, rotations, limits, sampling, *own, *layers, *sizes
    )
    return found
