"""Speculative decoding: a small model drafts tokens one by one, the target checks all of them in one pass.

A drafted token x stays with probability min(1, q(x) / p(x)) + β, where p and q are the distributions that draft and
target really draw from. The first that does not is drawn anew from what q has more than p; when all stay, one more
comes from q. With the tolerance β = 0 the tokens are distributed exactly as the target's own (Leviathan et al.,
arXiv 2211.17192); β > 0 is speech speculative decoding (SSD, Lin et al., arXiv 2505.15380, algorithm 1). Ids that end
speech, and ids that the target would not draw at all, never profit from β: the paper leaves this open, and a tolerated
stop id would cut speech short.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.models.token_model import TokenModel
from engine.sampling.autoregressive import Check, Cycle, Decoding, Reader, Request, mask_stops, places
from engine.sampling.draft_length import AdaptiveLength
from engine.sampling.tokens import TokenSampler, draw


def acceptance(draft: Tensor, target: Tensor, tolerance: float, exempt: Tensor | None = None) -> Tensor:
    """With which probability an id is accepted, min(1, q / p) + β; may exceed 1. ``exempt`` marks ids without β.

    ``draft`` holds p and ``target`` q, both (…, ids); 0 / 0 counts as 0.
    """
    ratio = torch.where(target > 0, target / draft, 0.0).clamp(max=1.0)
    return ratio + tolerance if exempt is None else ratio + tolerance * ~exempt


def residual(draft: Tensor, target: Tensor) -> Tensor:
    """Where a rejected token's place is filled from: max(0, q − p), up to its sum; q where there is nothing left."""
    more = (target - draft).clamp_(min=0.0)
    return more if more.sum() > 0 else target


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
) -> Decoding:
    """Cycles of one to ``draft_length`` + 1 tokens, until a stop id or the greatest length. ``draft_request`` is what
    the draft reads, where it has tables of its own that its prompt is embedded with, or reads less of it; everything
    but prompt and positions is taken from ``request``.

    Random numbers are used in this order: one for each drafted token, one for each checked token, one for the token
    that the target adds. Raises what ``check`` raises.
    """
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
            cycle = _verified(reader, request, sampler, uniforms, tokens, drafted, proposals, tolerance)
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
    tolerance: float,
) -> Cycle:
    """What the target makes of ``drafted``; times are left out."""
    codes = reader.model.codes
    ends = bool(drafted) and drafted[-1] >= codes
    sequence = [*tokens, *(drafted[:-1] if ends else drafted)]
    rows = len(sequence) - len(tokens) + 1
    logits = mask_stops(reader.logits(sequence, rows), reader.model, request, len(sequence))
    checks = sampler.probabilities(logits, sequence)
    probabilities: list[float] = []
    accepted = 0
    for token, proposal, checked in zip(drafted, proposals, checks, strict=False):
        p, q = float(proposal[token]), float(checked[token])
        tolerated = tolerance if token < codes and q > 0 else 0.0
        probabilities.append(min(1.0, min(1.0, q / p) + tolerated))
        if uniforms() >= probabilities[-1]:
            break
        accepted += 1
    stays = drafted[:accepted]
    if accepted == len(drafted) and ends:
        return Cycle(stays[:-1], drafted, accepted, "accepted", tuple(probabilities), stopped=True)
    if accepted < len(drafted):
        fate, rest = "resampled", residual(proposals[accepted], checks[accepted])
    else:
        fate, rest = ("bonus" if drafted else "decoded"), checks[accepted]
    added = draw(rest, uniforms())
    stopped = added >= codes
    return Cycle(stays if stopped else (*stays, added), drafted, accepted, fate, tuple(probabilities), stopped)
