"""Autoregressive decoding, one pass of the model per token: the baseline of speculative decoding. Also stops runaway
speech, the commonest failure of speech language models, pruned ones above all: a model that repeats itself or continues
far beyond its text is stopped, and the speech until then is kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from paretone.observer import Check
from paretone.sampling.cache import KeyValueCache, TokenScorer
from paretone.sampling.tokens import TokenSampler, draw


class Frame(NamedTuple):
    """A token completed to a frame of several codes, of which it is the first."""

    codes: tuple[int, ...]
    """The token, and the other codes."""
    embedded: Tensor
    """(hidden,): read next, in place of the token's own embedding."""
    operations: float
    """Of choosing the other codes."""


Complete = Callable[[Tensor, int, int, Callable[[], float]], Frame]
"""Completes a token, given the hidden state (hidden,) after the final norm from which it was chosen, the token, its
number in the request, and the random numbers."""


@dataclass(frozen=True)
class Request:
    """Request to a decoding loop: the prompt and the limits of the length. ``embedded`` (1, prompt, hidden) is at
    ``positions`` (prompt,), the new tokens from ``first_position`` on. Stop ids are masked before ``minimum`` tokens;
    decoding ends at ``maximum``. With a known ``length``, only stop ids are allowed after that many tokens."""

    embedded: Tensor
    positions: Tensor
    first_position: int
    minimum: int
    maximum: int
    masked_stops: int | None = None
    """Number of stop ids, from the first, masked before ``minimum``; ``None``: all. CosyVoice's own code masks one."""
    shared: int = 0
    """Number of the prompt's first elements that all requests of a voice share; see :mod:`paretone.sampling.cache`."""
    length: int | None = None
    complete: Complete | None = None
    """Of models whose tokens are the first codes of frames; ``None``: a token is read by its own embedding."""


@dataclass(frozen=True)
class Cycle:
    """Tokens committed by one cycle of a decoding loop."""

    tokens: tuple[int, ...]
    """Codes, without the stop id."""
    drafted: tuple[int, ...] = ()
    """The draft's proposal, including a stop id."""
    accepted: int = 0
    outcome: str = "decoded"
    """Origin of the last token or of the stop id: ``decoded`` without a draft, ``resampled`` after a rejection,
    ``bonus`` after full acceptance, ``accepted`` if a drafted stop id ended speech."""
    acceptance: tuple[float, ...] = ()
    """Acceptance probability of each checked token."""
    stopped: bool = False
    """Whether a stop id ended speech."""
    draft_seconds: float = 0.0
    target_seconds: float = 0.0
    """Time of drafting and of the model's pass (s), including the prompt's in the first cycle."""
    frames: tuple[int, ...] = ()
    """All codes of the tokens, frame by frame, if a token is the first of several codes."""
    frame_operations: float = 0.0
    """See :attr:`Frame.operations`."""
    embedded: Tensor | None = None
    """Read in place of the tokens' own embeddings, (tokens, hidden)."""

    @property
    def codes(self) -> tuple[int, ...]:
        """What a decoder turns into audio."""
        return self.frames or self.tokens


Decoding = Generator[Cycle, None, None]


class Reader:
    """State of a model within one request: its cache and the position of each cache entry."""

    def __init__(
        self,
        model: TokenScorer,
        request: Request,
        places: Tensor,
        keeps: Sequence[int] | None = None,
        frames: list[Tensor] | None = None,
    ) -> None:
        """``keeps``: inner layers whose outputs :meth:`features` returns with the last one's; ``None``: none.
        ``frames``: what is read of each token, (hidden,), kept by the caller; ``None``: the tokens' own embeddings."""
        self.model, self._frames = model, frames
        self._request, self._places = request, places
        self.cache: KeyValueCache = model.cache(len(places))
        self._keeps = keeps
        self._features: Tensor | None = None
        """Of the prompt's last element and of every token that was read, one row each."""

    @torch.inference_mode()
    def prefill(self) -> None:
        """Read all of the prompt but its last element."""
        prompt = self._request.embedded[:, :-1]
        shared = min(self._request.shared, prompt.shape[1])
        prefixes = self.model.prefixes
        if shared and prefixes is not None:
            first, where = prompt[:, :shared], self._places[:shared]
            with prefixes.one:
                if not prefixes.restore(self.cache, first, where):
                    self._fill(first)
                    prefixes.remember(self.cache, first, where)
            prompt = prompt[:, shared:]
        if prompt.shape[1]:
            self._fill(prompt)

    def logits(self, tokens: Sequence[int], count: int) -> Tensor:
        """Read the unread part of ``tokens`` (all tokens so far) and return the scores (count, ids), float32, after the
        last ``count`` of them; the prompt's last element counts as the token before the first."""
        unread = self.cache.length - self._request.embedded.shape[1]
        following = (self._frames or [])[max(0, unread) :]
        embedded = (torch.stack(following) if following else self.model.embed(tokens[max(0, unread) :]))[None]
        if unread < 0:
            embedded = torch.cat([self._request.embedded[:, unread:], embedded], dim=1)
        first, places = self.cache.length + 1 - self._request.embedded.shape[1], self._next_places(embedded)
        scores, found = self.model.read(embedded, self.cache, places, count, self._keeps)
        if self._keeps is not None and found is not None:
            if self._features is None:
                self._features = found.new_empty(len(self._places), found.shape[1])
            self._features[max(first, 0) : first + len(found)] = found[max(-first, 0) :]
        return scores.float()

    def keep(self, tokens: int) -> None:
        """Drop everything after the first ``tokens`` tokens from the cache."""
        length = self._request.embedded.shape[1] + tokens
        if length < self.cache.length:
            self.cache.crop(length)

    def features(self, start: int, end: int) -> Tensor:
        """Rows ``start`` to ``end`` of the kept outputs: (rows, (kept + 1) · hidden). Row 0 ends the prompt."""
        end = min(end, self.cache.length + 1 - self._request.embedded.shape[1])
        if self._features is None:
            raise ValueError("Nothing was read whose outputs are kept.")
        return self._features[start:end]

    def _fill(self, embedded: Tensor) -> None:
        self.model.transformer.fill(embedded, self.cache, self._next_places(embedded))

    def _next_places(self, embedded: Tensor) -> Tensor:
        start = self.cache.length
        return self._places[start : start + embedded.shape[1]]


def places(request: Request, tokens: int) -> Tensor:
    """Positions of the prompt and of ``tokens`` tokens after it."""
    following = torch.arange(request.first_position, request.first_position + tokens, device=request.positions.device)
    return torch.cat([request.positions, following])


def after_prompt(
    model: TokenScorer,
    request: Request,
    tokens: int,
    keeps: Sequence[int] | None = None,
    frames: list[Tensor] | None = None,
) -> Reader:
    """Reader that has read the prompt, with room for ``tokens`` more; ``keeps``, ``frames`` as in :class:`Reader`."""
    reader = Reader(model, request, places(request, tokens), keeps, frames)
    reader.prefill()
    return reader


def within_length(logits: Tensor, model: TokenScorer, request: Request, tokens: int) -> Tensor:
    """Mask stop ids that are too early and codes that are too late with −∞, in place. ``logits`` (n, ids) are of
    consecutive places, the last one after ``tokens`` tokens."""
    first = tokens - len(logits) + 1
    early = request.minimum - first
    if early > 0:
        end = None if request.masked_stops is None else model.codes + request.masked_stops
        logits[:early, model.codes : end] = -math.inf
    if request.length is not None and request.length <= tokens:
        logits[max(request.length - first, 0) :, : model.codes] = -math.inf
    return logits


def decode(
    model: TokenScorer,
    request: Request,
    sampler: TokenSampler,
    uniforms: Callable[[], float],
    check: Check = lambda: None,
) -> Decoding:
    """Yield cycles of one token each, until a stop id or the maximum. One random number per token, and those that
    completing it takes. Raises what ``check`` raises."""
    tokens: list[int] = []
    frames: list[Tensor] = []
    reader = None
    while len(tokens) < request.maximum:
        check()
        started = time.perf_counter()
        frame = None
        with torch.inference_mode():
            if reader is None:
                keeps = None if request.complete is None else ()
                reader = after_prompt(model, request, request.maximum, keeps, frames)
            logits = within_length(reader.logits(tokens, 1), model, request, len(tokens))
            token = draw(sampler.probabilities(logits, tokens)[0], uniforms())
            stopped = token >= model.codes
            if request.complete is not None and not stopped:
                state = reader.features(len(tokens), len(tokens) + 1)[0]
                frame = request.complete(state, token, len(tokens), uniforms)
                frames.append(frame.embedded)
        if not stopped:
            tokens.append(token)
        yield Cycle(
            tokens=() if stopped else (token,),
            stopped=stopped,
            target_seconds=time.perf_counter() - started,
            frames=() if frame is None else frame.codes,
            frame_operations=0.0 if frame is None else frame.operations,
            embedded=None if frame is None else frame.embedded[None],
        )
        if stopped:
            return


REPEATED_SECONDS = 3.0
"""Longest allowed repetition; silence, one token repeated, is seldom longer."""
LONGEST_PERIOD_SECONDS = 1.0
"""Longest period of a repetition that is detected."""
LENGTH_RATIO = 3.0
"""Longest speech as a multiple of the expected length …"""
SHORTEST_EXCESS_SECONDS = 2.0
"""… but at least this much longer than expected."""


def longest_speech(expected: int, token_rate: float) -> float:
    """Maximum number of tokens of a passage of ``expected`` ones; speech beyond it has run away."""
    return max(LENGTH_RATIO * expected, expected + SHORTEST_EXCESS_SECONDS * token_rate)


@dataclass(frozen=True)
class Runaway:
    kind: str
    """``repetition`` or ``length``."""
    seconds: float
    """Time since the first token."""

    def __str__(self) -> str:
        why = "repeated itself" if self.kind == "repetition" else "was far longer than its text"
        return f"Speech {why} and was stopped after {self.seconds:.1f} s; what was spoken until then was kept."


class RunawayGuard:
    """Detect runaway speech in tokens of ``token_rate`` per second, with ``expected`` tokens expected if known."""

    def __init__(self, token_rate: float, expected: int | None = None) -> None:
        self.found: Runaway | None = None
        self._rate = token_rate
        self._longest = max(1, round(LONGEST_PERIOD_SECONDS * token_rate))
        self._repeated = max(self._longest + 1, round(REPEATED_SECONDS * token_rate))
        self._limit = math.inf if expected is None else longest_speech(expected, token_rate)
        self._recent: list[int] = []
        """Last tokens, newest first."""
        self._equal = [0] * self._longest
        """For each period from 1 on: number of last tokens in a row that equal the token one period before."""
        self._count = 0

    def observe(self, tokens: Sequence[int]) -> Runaway | None:
        """Add ``tokens``; return the runaway found so far, if any."""
        for token in tokens:
            for period, before in enumerate(self._recent):
                self._equal[period] = self._equal[period] + 1 if token == before else 0
            self._recent = [token, *self._recent[: self._longest - 1]]
            self._count += 1
            # The first period counts towards the repetition, and a long period must have come back twice.
            periods = enumerate(self._equal, start=1)
            repeats = any(equal + period >= self._repeated and equal >= 2 * period for period, equal in periods)
            if self.found is None and (repeats or self._count > self._limit):
                self.found = Runaway("repetition" if repeats else "length", self._count / self._rate)
        return self.found


def guarded(decoding: Decoding, guard: RunawayGuard) -> Generator[Cycle, None, None]:
    """Yield cycles of ``decoding`` until ``guard`` finds runaway speech."""
    for cycle in decoding:
        yield cycle
        if guard.observe(cycle.tokens):
            decoding.close()
            return
