"""Speculative decoding: a small model drafts tokens one by one, the target checks all of them in one pass.

Sources: Leviathan et al., arXiv 2211.17192, algorithm 1; for speech Lin et al., arXiv 2505.15380 (SSD). A rule of
:mod:`paretone.sampling.verification` decides which tokens stay, and the distribution of the next one. Prompts are read,
cycles timed and draft lengths adapted outside, by :mod:`paretone.sampling.speculation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from paretone.sampling.autoregressive import Check, Cycle, Decoding, Reader, Request, within_length
from paretone.sampling.tokens import TokenSampler, draw
from paretone.sampling.verification import Rule, Verification

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
