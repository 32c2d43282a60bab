"""Speculative decoding of a language model's passages: which rule, which length, and what a model remembers of it."""

from __future__ import annotations

from weakref import ref

from paretone.errors import SettingError
from paretone.last_used import LastUsed
from paretone.models.families.language_network import DecodingLoop, TokenModel
from paretone.sampling.autoregressive import Decoding
from paretone.sampling.draft_length import AdaptiveLength
from paretone.sampling.speculative import speculation
from paretone.sampling.verification import Rule, by_block, by_token

MOST_LENGTHS = 8
"""Ways of drafting whose lengths continue adapting from their last state."""


def speculative(
    loop: DecodingLoop, tolerance: float, draft_length: int, adaptive: bool, block: bool, guarded: bool = True
) -> Decoding:
    """See :attr:`paretone.setting.plan.LanguagePlan.decoding`. A draft is verified by the loop's own rule, if it has
    one, else as :func:`rule_of` says; an ``adaptive`` length begins at ``draft_length``."""
    if loop.draft is None:
        raise SettingError("There is no draft model; choose one.")
    way = (tolerance, block, guarded, loop.acceptance)
    length = _adaptive(loop, loop.draft, draft_length, way) if adaptive else draft_length
    rule = loop.rule or rule_of(loop.target.codes, tolerance, block=block, guarded=guarded)
    return speculation(
        loop.target, loop.draft, loop.request, loop.sampler, loop.uniforms, rule, length, loop.check, loop.draft_request
    )


def rule_of(codes: int, tolerance: float, *, block: bool, guarded: bool = True) -> Rule:
    """As a ``block``, which has no tolerance, or token by token with ``tolerance``, ``guarded`` or as published."""
    return by_block if block else by_token(tolerance, codes, guarded=guarded)


def _adaptive(loop: DecodingLoop, draft: TokenModel, start: int, way: tuple) -> AdaptiveLength:
    """The length that adapts. It is used again: sentences are short, and measuring takes cycles."""
    lengths: LastUsed[AdaptiveLength] = loop.memory.setdefault(__name__, LastUsed(MOST_LENGTHS))
    # Weak references: dropped networks must not be kept alive.
    return lengths.of((ref(loop.target), ref(draft), start, way), lambda: AdaptiveLength(start))
