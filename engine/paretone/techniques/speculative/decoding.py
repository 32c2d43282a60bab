"""Speculative decoding of a language model's passages: choice of the rule, and draft lengths kept between passages."""

from __future__ import annotations

from weakref import ref

from paretone.errors import SettingError
from paretone.last_used import LastUsed
from paretone.models.families.language_network import DecodingLoop
from paretone.sampling.autoregressive import Decoding
from paretone.sampling.draft_length import AdaptiveLength
from paretone.sampling.speculative import speculation
from paretone.sampling.verification import Rule, by_block, by_token


def speculative(
    loop: DecodingLoop, tolerance: float, draft_length: int, adaptive: bool, block: bool, guarded: bool = True
) -> Decoding:
    """See :attr:`paretone.setting.plan.LanguagePlan.decoding`. Drafts are verified by the loop's rule, if any, else by
    :func:`rule_of`; an ``adaptive`` length starts at ``draft_length``."""
    if loop.draft is None:
        raise SettingError("There is no draft model; choose one.")
    length: int | AdaptiveLength = draft_length
    if adaptive:
        # One length for each of the last configurations: sentences are short, and measuring takes cycles. Weak
        # references, so that dropped networks are freed.
        lengths: LastUsed[AdaptiveLength] = loop.memory.setdefault(__name__, LastUsed(8))
        way = ref(loop.target), ref(loop.draft), draft_length, tolerance, block, guarded, loop.acceptance
        length = lengths.of(way, lambda: AdaptiveLength(draft_length))
    rule = loop.rule or rule_of(loop.target.codes, tolerance, block=block, guarded=guarded)
    return speculation(
        loop.target, loop.draft, loop.request, loop.sampler, loop.uniforms, rule, length, loop.check, loop.draft_request
    )


def rule_of(codes: int, tolerance: float, *, block: bool, guarded: bool = True) -> Rule:
    """Rule by ``block``, without tolerance, or token by token with ``tolerance``, ``guarded`` or as published."""
    return by_block if block else by_token(tolerance, codes, guarded=guarded)
