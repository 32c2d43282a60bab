"""Attention: torch's operator, or machine code where that is faster.

On AMD's processors torch's operator computes at a third of the speed of products, because it calls MKL. In machine code
a few queries at a time are multiplied with all keys, and their shares with all values, by the code of other products
(:mod:`paretone.models.kernels.machine_code`); their scores stay in the nearest cache. Results are equal up to rounding,
and a query's does not depend on what is computed with it, bit for bit. The code runs on one thread without Python's
lock; several threads share the heads of torch's operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from timeit import Timer
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from paretone.sampling.tokens import unless_numba_fails

PAYS = 0.8
"""Share of the operator's time that machine code may take and be used: chance must not decide."""
TRIALS = 5
_library = torch.library.Library("paretone", "DEF")
_library.define("attention(Tensor query, Tensor key, Tensor value, int[] lengths) -> Tensor")


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, lengths: Sequence[int] | None = None
) -> Tensor:
    """Attention over (rows, heads, sequence, head_width), within each of the sequences of ``lengths``, if given; groups
    of heads may share keys."""
    learns = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    plain = mask is None and query.device.type == "cpu" and query.dtype == torch.float32 and not learns
    if plain and not torch.compiler.is_compiling() and torch.get_num_threads() == 1:
        code = machine_code()
        if code is not None and query.shape[-1] % code.BLOCK == 0:
            found: Tensor = torch.ops.paretone.attention(query, key, value, lengths or [])
            return found
    operator = partial(F.scaled_dot_product_attention, attn_mask=mask, enable_gqa=query.shape[1] != key.shape[1])
    if lengths is None:
        return operator(query, key, value)
    parts = zip(*(one.split(list(lengths), dim=2) for one in (query, key, value)), strict=True)
    return torch.cat([operator(*part) for part in parts], dim=2)


@unless_numba_fails("Attention runs in torch")
def machine_code() -> ModuleType | None:
    """:mod:`paretone.models.kernels.compiled_attention`, if it compiles here, is right, and faster by a measurement of
    some milliseconds on one thread."""
    from paretone.models.kernels import compiled_attention

    query, key, value = torch.randn(3, 1, 4, 261, 64, generator=torch.Generator().manual_seed(0))
    operator = partial(F.scaled_dot_product_attention, query, key, value)
    code = partial(compiled_attention.attention, query, key, value, [])
    if not torch.allclose(code(), operator(), atol=1e-4):
        raise ArithmeticError("its results are wrong")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    by_code, by_operator = (min(Timer(one).repeat(TRIALS, 1)) for one in (code, operator))
    torch.set_num_threads(threads)
    return compiled_attention if by_code < PAYS * by_operator else None


@torch.library.impl(_library, "attention", "CPU")
def _attention(query: Tensor, key: Tensor, value: Tensor, lengths: Sequence[int]) -> Tensor:
    from paretone.models.kernels import compiled_attention

    return compiled_attention.attention(query, key, value, lengths)


@register_flop_formula(torch.ops.paretone.attention)
def _operations(query: list[int], key: list[int], value: list[int], lengths: list[int], **_: object) -> int:
    pairs = sum(one**2 for one in lengths) if lengths else query[2] * key[2]
    return 4 * query[0] * query[1] * query[3] * pairs
