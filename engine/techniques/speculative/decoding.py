"""Speculative decoding of a language model's passages: which rule, which length, and what a model remembers of it."""

from __future__ import annotations

from weakref import ref

from engine.errors import SettingError
from engine.last_used import LastUsed
from engine.models.families.decoding import DecodingLoop
from engine.models.families.token_model import TokenModel
from engine.sampling.autoregressive import Decoding
from engine.sampling.draft_length import AdaptiveLength
from engine.sampling.speculation import speculation

MOST_LENGTHS = 8
"""Ways of drafting whose lengths continue adapting from their last state."""


def speculative(loop: DecodingLoop, tolerance: float, draft_length: int, adaptive: bool, block: bool) -> Decoding:
    """See :attr:`engine.setting.plan.LanguagePlan.decoding`. A draft is verified as a ``block``, or token by token with
    ``tolerance``; an ``adaptive`` length begins at ``draft_length``."""
    if loop.draft is None:
        raise SettingError("There is no draft model; choose one.")
    length = _adaptive(loop, loop.draft, draft_length, (tolerance, block)) if adaptive else draft_length
    return speculation(
        loop.target,
        loop.draft,
        loop.request,
        loop.sampler,
        loop.uniforms,
        tolerance,
        length,
        loop.check,
        loop.draft_request,
        block=block,
    )


def _adaptive(loop: DecodingLoop, draft: TokenModel, start: int, way: tuple) -> AdaptiveLength:
    """The length that adapts. It is used again: sentences are short, and measuring takes cycles."""
    lengths: LastUsed[AdaptiveLength] = loop.memory.setdefault(__name__, LastUsed(MOST_LENGTHS))
    # Weak references: dropped networks must not be kept alive.
    return lengths.of((ref(loop.target), ref(draft), start, way), lambda: AdaptiveLength(start))
