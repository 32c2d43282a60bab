"""Speculative decoding as models run it: prompts, acceptance rule, draft length, timing. The algorithm itself is in
:mod:`paretone.sampling.speculative`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from paretone.sampling.autoregressive import Check, Decoding, Request, after_prompt
from paretone.sampling.draft_length import AdaptiveLength
from paretone.sampling.speculative import BEGAN, DRAFTED, Mark, speculate
from paretone.sampling.token_scorer import TokenScorer
from paretone.sampling.tokens import TokenSampler
from paretone.sampling.verification import Rule, by_token

PROMPT = "prompt"
"""Mark: the models begin to read their prompts."""


def speculation(
    target: TokenScorer,
    draft: TokenScorer,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    rule: Rule | None = None,
    draft_length: int | AdaptiveLength = 3,
    check: Check = lambda: None,
    draft_request: Request | None = None,
) -> Decoding:
    """:func:`paretone.sampling.speculative.speculate` from the prompts on, with times. Without a ``rule``, a draft is
    verified token by token, without tolerance. ``draft_request`` is the draft's request if its prompt differs; all else
    is from ``request``. Raises what ``check`` raises."""
    if (draft.codes, draft.rows) != (target.codes, target.rows):
        raise ValueError(f"A draft of {draft.rows} ids cannot draft for a target of {target.rows}.")
    accept = by_token(0.0, target.codes) if rule is None else rule
    adaptive = draft_length if isinstance(draft_length, AdaptiveLength) else None

    def length() -> int:
        return draft_length if isinstance(draft_length, int) else draft_length.choose()

    def decoding(mark: Mark) -> Decoding:
        check()
        mark(PROMPT)
        readers = (
            after_prompt(target, request, request.maximum),
            after_prompt(draft, draft_request or request, request.maximum),
        )
        return speculate(*readers, request, sampler, uniforms, accept, length, check, mark)

    return timed(decoding, adaptive)


def timed(decoding: Callable[[Mark], Decoding], length: AdaptiveLength | None = None) -> Decoding:
    """The cycles of ``decoding`` with the times of their parts, from which ``length`` learns. Reading the prompts
    counts as the model's own time in the first cycle, but nothing is learnt from it."""
    marks: dict[str, float] = {}

    def mark(part: str) -> None:
        marks[part] = time.perf_counter()

    first = True
    for cycle in decoding(mark):
        draft_seconds, target_seconds = marks[DRAFTED] - marks[BEGAN], time.perf_counter() - marks[DRAFTED]
        if length is not None:
            length.observe(
                drafted=len(cycle.drafted),
                checked=len(cycle.acceptance),
                accepted=cycle.accepted,
                draft_seconds=draft_seconds,
                target_seconds=target_seconds,
            )
        prompt_seconds, first = (marks[BEGAN] - marks[PROMPT] if first else 0.0), False
        yield replace(cycle, draft_seconds=draft_seconds, target_seconds=target_seconds + prompt_seconds)
