"""Speculative decoding: a small model drafts tokens one by one, the target checks all of them in one pass.

Sources: Leviathan et al., arXiv 2211.17192, algorithm 1; for speech Lin et al., arXiv 2505.15380 (SSD). A rule of
:mod:`paretone.sampling.verification` decides which tokens are accepted, and the distribution of the next one.

:func:`speculate` is the bare algorithm; :func:`speculation` adds prompts, times and draft lengths.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from paretone.observer import Check
from paretone.sampling.autoregressive import Cycle, Decoding, Reader, Request, after_prompt, within_length
from paretone.sampling.cache import FeatureScorer, KeyValueCache, Limits, TokenScorer
from paretone.sampling.draft_length import AdaptiveLength
from paretone.sampling.tokens import Nucleus, TokenSampler, Truncation, draw
from paretone.sampling.verification import Rule, Verification, by_token

BEGAN, DRAFTED = "began", "drafted"
"""Marks for observers: start of a cycle; end of its drafting."""
Mark = Callable[[str], None]


def speculate(
    target: Reader,
    draft: Reader | FeatureReader,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    rule: Rule,
    length: Callable[[], int],
    check: Check = lambda: None,
    mark: Mark = lambda part: None,
) -> Decoding:
    """Yield cycles of 1 to K + 1 tokens, with K from ``length``, until a stop id or the maximum. ``target`` and
    ``draft`` have read their prompts. Order of random numbers: one per token to draft, those of the rule, one for the
    target's token. ``mark`` is called at the start of each part of a cycle. Raises what ``check`` raises."""
    tokens: list[int] = []
    stopped = False
    while len(tokens) < request.maximum and not stopped:
        check()
        mark(BEGAN)
        # The target adds one token: leave room for it within the maximum.
        wanted = min(length(), request.maximum - len(tokens) - 1)
        # Draft x₁ … x_K, each from the draft's distribution p.
        drafted, p = _draft(draft, request, sampler, uniforms, tokens, wanted)
        mark(DRAFTED)
        # The target's distributions q at each of them and at the next place, in one pass.
        q = checked(target, request, sampler, tokens, drafted)
        # Accept the first n of them.
        verdict = rule(drafted, p, q, uniforms)
        # The next token: drawn again if x_{n+1} was rejected, else from q at the next place.
        cycle = resampled(drafted, verdict, target.model.codes, uniforms)
        tokens.extend(cycle.tokens)
        stopped = cycle.stopped
        for one in (target, draft):
            one.keep(len(tokens) - 1)  # The last token, or the stop, has not been read.
        yield cycle


@torch.inference_mode()
def _draft(
    drafter: Reader | FeatureReader,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    tokens: Sequence[int],
    wanted: int,
) -> tuple[tuple[int, ...], list[Tensor]]:
    """Draft up to ``wanted`` tokens after ``tokens``, up to a stop id; return them and their distributions (ids,)."""
    sampling = sampler.truncation if isinstance(sampler, Nucleus) else None
    if isinstance(drafter, FeatureReader) and sampling is not None and wanted > 0:
        # Drawn in advance either way, so that both ways draft the same tokens.
        numbers = [uniforms() for _ in range(wanted)]
        found = drafter.drafts(tokens, sampling, numbers) if drafter.model.drafts_at_once else None
        if found is not None:
            return tuple(found[0]), found[1]
        uniforms = iter(numbers).__next__
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
def checked(
    reader: Reader, request: Request, sampler: TokenSampler, tokens: Sequence[int], drafted: tuple[int, ...]
) -> Tensor:
    """The target's distributions (n, ids) at the drafted places and the next, unless the draft ends with a stop id."""
    ends = bool(drafted) and drafted[-1] >= reader.model.codes
    sequence = [*tokens, *(drafted[:-1] if ends else drafted)]
    rows = len(sequence) - len(tokens) + 1
    logits = within_length(reader.logits(sequence, rows), reader.model, request, len(sequence))
    return sampler.probabilities(logits, sequence)


def resampled(drafted: tuple[int, ...], verdict: Verification, codes: int, uniforms: Callable[[], float]) -> Cycle:
    """Build the cycle: the accepted tokens and the target's own."""
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
    """Run :func:`speculate` including the prompts, with times. Without a ``rule``, drafts are verified token by token
    without tolerance. ``draft_request``: the draft's prompt, if another; limits are those of ``request``."""
    if (draft.codes, draft.rows) != (target.codes, target.rows):
        raise ValueError(f"A draft of {draft.rows} ids cannot draft for a target of {target.rows}.")
    accept = by_token(0.0, target.codes) if rule is None else rule
    adaptive = draft_length if isinstance(draft_length, AdaptiveLength) else None

    def length() -> int:
        return draft_length if isinstance(draft_length, int) else draft_length.choose()

    def decoding(mark: Mark) -> Decoding:
        check()
        mark(PROMPT)
        return speculate(
            *_readers(target, draft, request, draft_request), request, sampler, uniforms, accept, length, check, mark
        )

    return timed(decoding, adaptive)


class FeatureReader:
    """State of a draft that reads hidden states of ``target``. Row 0 is the prompt's last element, row i + 1 token
    i."""

    def __init__(self, model: FeatureScorer, request: Request, target: Reader) -> None:
        self.model = model
        self._request, self._target = request, target
        self._places = torch.arange(request.maximum + 1, device=request.positions.device)
        self._cache = model.cache(len(self._places))
        self._verified = 0
        """Rows read with the target's states."""
        self._own: Tensor | None = None
        """Output of the last row."""

    def logits(self, tokens: Sequence[int], count: int) -> Tensor:
        """As :meth:`Reader.logits`. The target's states stand for the tokens that it has read, and the draft's own
        output for the one before the last otherwise."""
        outputs, scores = self.model.draft(*self._unread(tokens), count)
        self._own = outputs[-1:]
        return scores.float()

    def drafts(
        self, tokens: Sequence[int], sampling: Truncation, uniforms: list[float]
    ) -> tuple[list[int], list[Tensor]] | None:
        """The tokens after ``tokens``, all of which the target has read but the last, in one call; see
        :meth:`FeatureScorer.drafts`."""
        request, model = self._request, self.model
        whole = -1 if request.length is None else request.length
        stops = model.rows - model.codes if request.masked_stops is None else request.masked_stops
        limits = Limits(len(tokens), request.minimum, whole, model.codes, stops)
        return model.drafts(*self._unread(tokens), uniforms, limits, sampling)

    def _unread(self, tokens: Sequence[int]) -> tuple[Tensor, Tensor, KeyValueCache, Tensor]:
        """States, embedded tokens, cache and positions for the unread part of ``tokens``."""
        model, start, end = self.model, self._cache.length, len(tokens) + 1
        embedded = model.embed(tokens[max(start - 1, 0) :])
        if not start:
            embedded = torch.cat([self._request.embedded[0, -1:], embedded])
        if self._own is None:
            states = model.mix(self._target.features(max(start - 1, 0), end - 1)) if end > 1 else embedded[:0]
            if not start:
                states = torch.cat([torch.zeros_like(embedded[:1]), states])
            self._verified = end
        else:
            states = self._own
        return states, embedded, self._cache, self._places[start:end]

    def keep(self, tokens: int) -> None:
        """Forget everything after the first ``tokens`` tokens, and the rows that it read with its own states."""
        self._cache.crop(min(self._verified, tokens + 1, self._cache.length))
        self._own = None


def _readers(
    target: TokenScorer, draft: TokenScorer | FeatureScorer, request: Request, draft_request: Request | None
) -> tuple[Reader, Reader | FeatureReader]:
    """Readers of both models, after their prompts."""
    reads = getattr(draft, "reads", None)
    first = after_prompt(target, request, request.maximum, reads)
    if reads is None:
        return first, after_prompt(draft, draft_request or request, request.maximum)
    return first, FeatureReader(cast("FeatureScorer", draft), request, first)


def timed(decoding: Callable[[Mark], Decoding], length: AdaptiveLength | None = None) -> Decoding:
    """Add times to the cycles of ``decoding`` and pass them to ``length``. Reading the prompts counts as target time of
    the first cycle but is not passed on."""
    marks: dict[str, float] = {}

    def mark(part: str) -> None:
        marks[part] = time.perf_counter()

    first = True
    for cycle in decoding(mark):
        draft_seconds, target_seconds = marks[DRAFTED] - marks[BEGAN], time.perf_counter() - marks[DRAFTED]
        if length is not None:
            length.observe(len(cycle.drafted), cycle.accepted, draft_seconds + target_seconds)
        prompt_seconds, first = (marks[BEGAN] - marks[PROMPT] if first else 0.0), False
        yield replace(cycle, draft_seconds=draft_seconds, target_seconds=target_seconds + prompt_seconds)
