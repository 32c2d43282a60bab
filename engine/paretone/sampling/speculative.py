"""Speculative decoding: a small model drafts tokens one by one, the target checks all of them in one pass.

Sources: Leviathan et al., arXiv 2211.17192, algorithm 1; for speech Lin et al., arXiv 2505.15380 (SSD). A rule of
:mod:`paretone.sampling.verification` decides which tokens stay, and the distribution of the next one.

:func:`speculate` is the algorithm alone; :func:`speculation` runs it for models, with prompts, times and draft lengths.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from paretone.sampling.autoregressive import Check, Cycle, Decoding, Reader, Request, after_prompt, within_length
from paretone.sampling.cache import TokenScorer
from paretone.sampling.draft_length import AdaptiveLength
from paretone.sampling.tokens import TokenSampler, draw
from paretone.sampling.verification import Rule, Verification, by_token

BEGAN, DRAFTED = "began", "drafted"
"""Marks for observers: a cycle begins; its tokens are drafted."""
Mark = Callable[[str], None]


def speculate(
    target: Reader,
    draft: Reader,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    rule: Rule,
    length: Callable[[], int],
    check: Check = lambda: None,
    mark: Mark = lambda part: None,
) -> Decoding:
    """Cycles of one to K + 1 tokens, with K from ``length``, until a stop id or the greatest length.

    ``target`` and ``draft`` have read their prompts. Random numbers are used in this order: one for each drafted token,
    those of the rule, one for the token that the target adds. ``mark`` is called as each part of a cycle begins. Raises
    what ``check`` raises.
    """
    tokens: list[int] = []
    stopped = False
    while len(tokens) < request.maximum and not stopped:
        check()
        mark(BEGAN)
        # The target adds one token: never more tokens than requested.
        wanted = min(length(), request.maximum - len(tokens) - 1)
        # Draft x₁ … x_K, each from the draft's distribution p.
        drafted, p = _draft(draft, request, sampler, uniforms, tokens, wanted)
        mark(DRAFTED)
        # The target's distributions q at each of them and at the next place, in one pass.
        q = _check(target, request, sampler, tokens, drafted)
        # Accept the first n of them.
        verdict = rule(drafted, p, q, uniforms)
        # The next token: drawn again if x_{n+1} was rejected, else from q at the next place.
        cycle = _resampled(drafted, verdict, target.model.codes, uniforms)
        tokens.extend(cycle.tokens)
        stopped = cycle.stopped
        for one in (target, draft):
            one.keep(len(tokens) - 1)  # The last token, or the stop, has not been read.
        yield cycle


@torch.inference_mode()
def _draft(
    drafter: Reader,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    tokens: Sequence[int],
    wanted: int,
) -> tuple[tuple[int, ...], list[Tensor]]:
    """Up to ``wanted`` tokens after ``tokens``, a stop id being the last, and the distributions (ids,) they are
    from."""
    sequence = list(tokens)
    proposals: list[Tensor] = []
    while len(proposals) < wanted:
        logits = within_length(drafter.logits(sequence, 1), drafter.model, request, len(sequence))
        proposals.append(sampler.probabilities(logits, sequence)[0])
        sequence.append(draw(proposals[-1], uniforms()))
        if sequence[-1] >= drafter.model.codes:
            break
    return tuple(sequence[len(tokens) :]), proposals


@torch.inference_mode()
def _check(
    reader: Reader, request: Request, sampler: TokenSampler, tokens: Sequence[int], drafted: tuple[int, ...]
) -> Tensor:
    """The target's distributions (n, ids) at the drafted places and, unless the last of these ends speech, at the next
    one."""
    ends = bool(drafted) and drafted[-1] >= reader.model.codes
    sequence = [*tokens, *(drafted[:-1] if ends else drafted)]
    rows = len(sequence) - len(tokens) + 1
    logits = within_length(reader.logits(sequence, rows), reader.model, request, len(sequence))
    return sampler.probabilities(logits, sequence)


def _resampled(drafted: tuple[int, ...], verdict: Verification, codes: int, uniforms: Callable[[], float]) -> Cycle:
    """The cycle: the tokens that stay, and the one that the target adds."""
    accepted, ends = verdict.accepted, bool(drafted) and drafted[-1] >= codes
    stays = drafted[:accepted]
    if accepted == len(drafted) and ends:
        return Cycle(stays[:-1], drafted, accepted, "accepted", verdict.acceptance, stopped=True)
    if accepted < len(drafted):
        outcome = "resampled"
    else:
        outcome = "bonus" if drafted else "decoded"
    added = draw(verdict.rest, uniforms())
    stopped = added >= codes
    return Cycle(stays if stopped else (*stays, added), drafted, accepted, outcome, verdict.acceptance, stopped)


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
    """:func:`speculate` from the prompts on, with times. Without a ``rule``, a draft is
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
