"""Speculative decoding: a small model drafts tokens one by one, the target checks all of them in one pass.

Which of them stay, and what the next token is drawn from, says a rule of :mod:`engine.sampling.verification`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.models.families.token_model import TokenModel
from engine.sampling.autoregressive import Check, Cycle, Decoding, Reader, Request, mask_stops, places
from engine.sampling.draft_length import AdaptiveLength
from engine.sampling.tokens import TokenSampler, draw
from engine.sampling.verification import Rule, by_block, by_token


def speculate(
    target: TokenModel,
    draft: TokenModel,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    tolerance: float = 0.0,
    draft_length: int | AdaptiveLength = 3,
    check: Check = lambda: None,
    draft_request: Request | None = None,
    *,
    block: bool = False,
) -> Decoding:
    """Cycles of one to ``draft_length`` + 1 tokens, until a stop id or the greatest length. ``draft_request`` is what
    the draft reads, where it has tables of its own that its prompt is embedded with, or reads less of it; everything
    but prompt and positions is taken from ``request``. A draft is verified token by token with ``tolerance``, or as a
    ``block``, which has none.

    Random numbers are used in this order: one for each drafted token, those of the rule, one for the token that the
    target adds. Raises what ``check`` raises.
    """
    if block and tolerance:
        raise ValueError(f"Drafts that are verified as a whole have no tolerance, so not one of {tolerance:g}.")
    rule = by_block if block else by_token(tolerance, target.codes)
    if (draft.codes, draft.rows) != (target.codes, target.rows):
        raise ValueError(f"A draft of {draft.rows} ids cannot draft for a target of {target.rows}.")
    tokens: list[int] = []
    readers: tuple[Reader, Reader] | None = None
    stopped = False
    while len(tokens) < request.maximum and not stopped:
        check()
        wanted = draft_length if isinstance(draft_length, int) else draft_length.choose()
        # The target adds one: no more than what is still asked for is ever decided.
        wanted = min(wanted, request.maximum - len(tokens) - 1)
        begun = time.perf_counter()
        with torch.inference_mode():
            first = readers is None
            if readers is None:
                draft_request = draft_request or request
                readers = (
                    Reader(target, request, places(request, request.maximum)),
                    Reader(draft, draft_request, places(draft_request, request.maximum)),
                )
                for one in readers:
                    one.prefill()
            reader, drafter = readers
            read = time.perf_counter()
            drafted, proposals = _drafted(drafter, request, sampler, uniforms, tokens, wanted)
            proposed = time.perf_counter()
            cycle = _verified(reader, request, sampler, uniforms, tokens, drafted, proposals, rule)
        finished = time.perf_counter()
        tokens.extend(cycle.tokens)
        stopped = cycle.stopped
        # The last token, or the stop, is never read yet.
        for one in readers:
            one.keep(len(tokens) - 1)
        if isinstance(draft_length, AdaptiveLength):
            draft_length.observe(
                drafted=len(drafted),
                checked=len(cycle.acceptance),
                accepted=cycle.accepted,
                draft_seconds=proposed - read,
                target_seconds=finished - proposed,
            )
        prefill_seconds = read - begun if first else 0.0
        yield Cycle(
            cycle.tokens,
            drafted,
            cycle.accepted,
            cycle.fate,
            cycle.acceptance,
            cycle.stopped,
            draft_seconds=proposed - read,
            target_seconds=finished - proposed + prefill_seconds,
        )


def _drafted(
    drafter: Reader,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    tokens: Sequence[int],
    wanted: int,
) -> tuple[tuple[int, ...], list[Tensor]]:
    """Up to ``wanted`` tokens behind ``tokens``, a stop id being the last, and the distributions (ids,) they are
    from."""
    sequence, proposals = list(tokens), []
    while len(proposals) < wanted:
        logits = mask_stops(drafter.logits(sequence, 1), drafter.model, request, len(sequence))
        proposals.append(sampler.probabilities(logits, sequence)[0])
        sequence.append(draw(proposals[-1], uniforms()))
        if sequence[-1] >= drafter.model.codes:
            break
    return tuple(sequence[len(tokens) :]), proposals


def _verified(
    reader: Reader,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    tokens: Sequence[int],
    drafted: tuple[int, ...],
    proposals: Sequence[Tensor],
    rule: Rule,
) -> Cycle:
    """What the target makes of ``drafted``; times are left out."""
    codes = reader.model.codes
    ends = bool(drafted) and drafted[-1] >= codes
    sequence = [*tokens, *(drafted[:-1] if ends else drafted)]
    rows = len(sequence) - len(tokens) + 1
    logits = mask_stops(reader.logits(sequence, rows), reader.model, request, len(sequence))
    checks = sampler.probabilities(logits, sequence)
    verdict = rule(drafted, proposals, checks, uniforms)
    accepted = verdict.accepted
    stays = drafted[:accepted]
    if accepted == len(drafted) and ends:
        return Cycle(stays[:-1], drafted, accepted, "accepted", verdict.acceptance, stopped=True)
    if accepted < len(drafted):
        fate = "resampled"
    else:
        fate = "bonus" if drafted else "decoded"
    added = draw(verdict.rest, uniforms())
    stopped = added >= codes
    return Cycle(stays if stopped else (*stays, added), drafted, accepted, fate, verdict.acceptance, stopped)
