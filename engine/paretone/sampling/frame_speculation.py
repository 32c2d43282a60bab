"""Speculative decoding of tokens that are completed to frames, approximately: lower layers of the model draft frames
one by one, and one pass of the whole model checks their first codes.

Exact speculation needs what the model reads next before it has chosen a token. Here that is a frame, whose other codes
depend on the model's own hidden state, which a draft has not. So an accepted frame keeps the other codes that were
chosen from the draft's state, and later frames are checked after those: the first codes follow a rule of
:mod:`paretone.sampling.verification` given these, and speech is not distributed as the model's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from paretone.observer import Check
from paretone.sampling.autoregressive import Decoding, Frame, Reader, Request, after_prompt, within_length
from paretone.sampling.cache import TokenScorer
from paretone.sampling.speculative import BEGAN, DRAFTED, PROMPT, Mark, checked, resampled, timed
from paretone.sampling.tokens import TokenSampler, draw
from paretone.sampling.verification import Rule


def speculate_frames(
    target: TokenScorer,
    draft: TokenScorer,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    rule: Rule,
    most: int,
    check: Check = lambda: None,
) -> Decoding:
    """Yield cycles of 1 to ``most`` + 1 frames, until a stop id or the maximum. ``draft`` shares the tables of
    ``target``; ``request`` completes tokens. Raises what ``check`` raises."""

    def decoding(mark: Mark) -> Decoding:
        read: list[Tensor] = []
        mark(PROMPT)
        whole, lower = (after_prompt(one, request, request.maximum, (), read) for one in (target, draft))
        tokens: list[int] = []
        stopped = False
        while len(tokens) < request.maximum and not stopped:
            check()
            mark(BEGAN)
            first = len(tokens)
            wanted = min(most, request.maximum - first - 1)
            drafted, proposals, frames = _drafted(lower, request, sampler, uniforms, tokens, read, wanted, check)
            mark(DRAFTED)
            with torch.inference_mode():
                found = checked(whole, request, sampler, tokens, drafted)
                cycle = resampled(drafted, rule(drafted, proposals, found, uniforms), target.codes, uniforms)
                operations = sum(one.operations for one in frames)
                del frames[min(cycle.accepted, len(cycle.tokens)) :]
                del read[first + len(frames) :]
                if len(cycle.tokens) > len(frames):
                    state = whole.features(first + len(frames), first + len(frames) + 1)[0]
                    frames.append(_completed(request, state, cycle.tokens[-1], first + len(frames), uniforms))
                    operations += frames[-1].operations
                    read.append(frames[-1].embedded)
            tokens += cycle.tokens
            stopped = cycle.stopped
            for one in (whole, lower):
                one.keep(len(tokens) - 1)
            yield replace(
                cycle,
                frames=tuple(code for one in frames for code in one.codes),
                frame_operations=operations,
                embedded=torch.stack(read[first:]) if frames else None,
            )

    return timed(decoding)


@torch.inference_mode()
def _drafted(
    lower: Reader,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    tokens: Sequence[int],
    read: list[Tensor],
    wanted: int,
    check: Check,
) -> tuple[tuple[int, ...], list[Tensor], list[Frame]]:
    """Up to ``wanted`` tokens after ``tokens``, up to a stop id, their distributions (ids,), and the frames of all but
    a stop, which are added to ``read``. Their operations include the draft's."""
    sequence, frames = list(tokens), []
    proposals: list[Tensor] = []
    while len(proposals) < wanted:
        check()
        number, unread = len(sequence), lower.cache.length
        logits = within_length(lower.logits(sequence, 1), lower.model, request, number)
        spent = lower.model.operations(lower.cache.length - unread, unread, 1)
        proposals.append(sampler.probabilities(logits, sequence)[0])
        sequence.append(draw(proposals[-1], uniforms()))
        if sequence[-1] >= lower.model.codes:
            break
        frame = _completed(request, lower.features(number, number + 1)[0], sequence[-1], number, uniforms)
        frames.append(frame._replace(operations=frame.operations + spent))
        read.append(frame.embedded)
    return tuple(sequence[len(tokens) :]), proposals, frames


def _completed(request: Request, state: Tensor, token: int, number: int, uniforms: Callable[[], float]) -> Frame:
    assert request.complete is not None
    return request.complete(state, token, number, uniforms)
