"""Samplers of the next speech token: its final distribution, and the draw.

Samplers give final distributions in closed form, after temperature, truncation, penalties and redraws. Decoding draws
from them and speculative decoding compares them; nothing else is random. No sampler reads a number back from the
device; only the chosen token leaves it.

Sources: repetition-aware sampling (RAS), VALL-E 2, Chen et al., arXiv 2406.05370, as in ``ras_sampling`` of CosyVoice
(``cosyvoice/utils/common.py``, f2ddcbe and before); temperature, top-k, top-p and repetition penalty as in the logits
processors of transformers, in their order.
"""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from paretone.reading import first_line

_log = logging.getLogger(__name__)
Code = TypeVar("Code")

Truncation = tuple[float, int, float]
"""Temperature, k and p of :func:`truncated`."""


class TokenSampler(Protocol):
    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        """Map logits (n, ids), −∞ at forbidden ids, to the final probabilities (n, ids). ``history`` holds the
        request's tokens before the last row; row ``i`` sees the first ``len(history) − (n − 1 − i)`` of them."""


def histories(history: Sequence[int], rows: int) -> Iterator[Sequence[int]]:
    """Histories of ``rows`` consecutive rows; see :meth:`TokenSampler.probabilities`."""
    first = len(history) - rows + 1
    return (history[: first + row] for row in range(rows))


@dataclass(frozen=True)
class Greedy:
    """The most likely id; the first among ties."""

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)


@dataclass(frozen=True)
class Nucleus:
    """Repetition penalty, temperature, the ``top_k`` most likely ids (0: all), then the most likely of these up to
    ``top_p``. The penalty also counts the tokens of the ``prompt``."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    prompt: tuple[int, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any], prompt: tuple[int, ...] = (), prefix: str = "") -> Nucleus:
        """From a model's options, named from ``prefix`` on; the penalty may be missing. At temperature 0, the likeliest
        id is left."""
        temperature, top_k = float(options[f"{prefix}temperature"]), int(options[f"{prefix}top_k"])
        if not temperature:
            temperature, top_k = 1.0, 1
        penalty = float(options.get(f"{prefix}repetition_penalty", 1.0))
        return cls(temperature, top_k, float(options[f"{prefix}top_p"]), penalty, prompt)

    @property
    def truncation(self) -> Truncation | None:
        """The truncation, if there is no penalty."""
        return (self.temperature, self.top_k, self.top_p) if self.repetition_penalty == 1 else None

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        if self.repetition_penalty != 1:
            rows = [{*self.prompt, *before} for before in histories(history, len(logits))]
            seen = _marked(rows, logits)
            penalised = torch.where(logits < 0, logits * self.repetition_penalty, logits / self.repetition_penalty)
            logits = torch.where(seen, penalised, logits)
        return truncated(logits, self.temperature, self.top_k, self.top_p)


@dataclass(frozen=True)
class RepetitionAware:
    """Nucleus sampling; an id seen ``threshold · window`` times in the last ``window`` tokens is redrawn from all ids.
    Variant "2026" (CosyVoice from f2ddcbe on) excludes the id from the redraw, "2025" does not."""

    variant: str = "2026"
    top_p: float = 0.8
    top_k: int = 25
    window: int = 10
    threshold: float = 0.1

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        whole = logits.softmax(-1)
        likeliest, ids = whole.topk(min(self.top_k, whole.shape[-1]), dim=-1)
        shares = _nucleus(likeliest, self.top_p)
        shares /= shares.sum(-1, keepdim=True)
        nucleus = torch.zeros_like(whole).scatter_(-1, ids, shares)
        rows = [self._repeated(before) for before in histories(history, len(logits))]
        if not any(rows):
            return nucleus
        repeated = _marked(rows, logits)
        again = torch.where(repeated, nucleus, 0.0)
        drawn = torch.where(repeated, 0.0, nucleus)
        if self.variant == "2025":
            return drawn + again.sum(-1, keepdim=True) * whole
        # The probability of all other ids, summed for the greatest: there, 1 − p would cancel.
        greatest = whole.argmax(-1, keepdim=True)
        others = whole.scatter(-1, greatest, 0.0).sum(-1, keepdim=True)
        rest = (1.0 - whole).scatter_(-1, greatest, others)
        # A token with probability 1 has no replacement.
        certain = rest <= 0
        anew = torch.where(certain, 0.0, again / rest)
        drawn = drawn + torch.where(certain, again, 0.0)
        return drawn + whole * (anew.sum(-1, keepdim=True) - anew)

    def _repeated(self, before: Sequence[int]) -> set[int]:
        recent = before[-self.window :] if self.window else ()
        return {one for one in recent if recent.count(one) >= self.window * self.threshold}


def truncated(logits: Tensor, temperature: float, top_k: int, top_p: float) -> Tensor:
    """Probabilities (n, ids) of :class:`Nucleus` without penalty."""
    rows = logits.size(-1)
    kept = top_k if 0 < top_k < rows else rows
    if kept == rows and top_p >= 1:
        return (logits / temperature).softmax(-1)
    code = _machine_code_for(logits) if kept < rows else None
    if code is not None:
        found = torch.empty_like(logits)
        code.truncate_rows(logits.contiguous().numpy(), temperature, kept, top_p, found.numpy())
        return found
    likeliest, ids = logits.topk(kept, -1)
    shares = (likeliest / temperature).softmax(-1)
    if top_p < 1:
        shares = _nucleus(shares, top_p)
        shares /= shares.sum(-1, True)
    return torch.zeros_like(logits).scatter_(-1, ids, shares)


def _machine_code_for(numbers: Tensor) -> ModuleType | None:
    """What computes with ``numbers`` in a fraction of the time that calls of torch's operators take, if anything."""
    plain = numbers.device.type == "cpu" and numbers.dtype == torch.float32 and not numbers.requires_grad
    return machine_code() if plain else None


def unless_numba_fails(consequence: str) -> Callable[[Callable[[], Code]], Callable[[], Code | None]]:
    """Decorates a function that imports and tries machine code, and gives its module: it is called once, and gives
    ``None`` if that fails; the log says so, and the ``consequence``."""

    def decorated(tried: Callable[[], Code]) -> Callable[[], Code | None]:
        @functools.cache
        def found() -> Code | None:
            try:
                return tried()
            except Exception as error:  # Numba and LLVM raise errors of many kinds.
                _log.warning("%s: numba failed (%s).", consequence, first_line(error))
                return None

        return functools.wraps(tried)(found)

    return decorated


@unless_numba_fails("Tokens are drawn by torch, slower")
def machine_code() -> ModuleType:
    """:mod:`paretone.sampling.compiled_tokens`, if numba compiles here."""
    from paretone.sampling import compiled_tokens

    compiled_tokens.draw_from(torch.ones(1).numpy(), 0.0)
    return compiled_tokens


def _nucleus(shares: Tensor, top_p: float) -> Tensor:
    """Set ``shares`` (n, k), in falling order, to zero after their sum reaches ``top_p``."""
    before = shares.cumsum(-1) - shares
    return torch.where(before < top_p, shares, 0.0)


def _marked(rows: Sequence[set[int]], like: Tensor) -> Tensor:
    """Boolean tensor of ``like``'s shape, true at the ids of each row."""
    width = like.shape[-1]
    places = [row * width + one for row, ids in enumerate(rows) for one in ids]
    marks = torch.zeros(like.numel(), dtype=torch.bool, device=like.device)
    # Does not wait for the device.
    marks[torch.tensor(places, dtype=torch.long).to(like.device, non_blocking=True)] = True
    return marks.view_as(like)


class Uniforms:
    """Random numbers of one request: uniform in [0, 1), multiples of 2⁻²⁴, which float32 holds exactly."""

    def __init__(self, seed: int) -> None:
        self._bits = random.Random(seed).getrandbits

    def __call__(self) -> float:
        return self._bits(24) * 2.0**-24


def draw(probabilities: Tensor, uniform: float) -> int:
    """The first id whose cumulative sum of ``probabilities`` (ids,) exceeds ``uniform`` times the total."""
    code = _machine_code_for(probabilities)
    if code is not None:
        return int(code.draw_from(probabilities.contiguous().numpy(), uniform))
    sums = probabilities.cumsum(-1)
    return int(torch.searchsorted(sums, sums[-1:] * uniform, right=True))
