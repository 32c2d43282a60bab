"""Measures packed weights: the time of one-token passes, and how far predictions move."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import torch
from torch import Tensor

from paretone.measure.timing import paired_ratio
from paretone.models.families.token_model import TokenModel
from paretone.techniques.weight_only.record import Measured, current_machine, group_of

CONTEXT = 64
"""Tokens in the cache of a timed pass."""
PASSES, ROUNDS = 8, 15
"""Passes of a round, and rounds: a quarter of a second for a small model."""
READ = 48
"""Random tokens whose predictions are compared."""


@torch.inference_mode()
def measure(
    plain: TokenModel,
    packed: TokenModel,
    bits: str,
    group: int,
    checkpoint: str,
    on_round: Callable[[int], None] | None = None,
) -> Measured:
    """One-token passes of both networks in interleaved rounds, and their predictions after the same tokens.
    ``on_round`` may raise to cancel."""
    times = paired_ratio(
        {"usual": _passes(plain), "packed": _passes(packed)}, ROUNDS, device=plain.device.type, on_round=on_round
    )
    gain = times.speed_up["packed"]
    wanted, found = _scores(plain), _scores(packed)
    error = float((found - wanted).square().mean().sqrt() / wanted.std())
    both = wanted.log_softmax(-1), found.log_softmax(-1)
    divergence = float((both[0].exp() * (both[0] - both[1])).sum(-1).mean())
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Measured(
        current_machine(),
        checkpoint,
        bits,
        group_of(bits, group),
        gain.median,
        gain.low,
        gain.high,
        error,
        divergence,
        created,
    )


def _passes(tokens: TokenModel) -> Callable[[], None]:
    """Reads one token after the other behind the same context, and scores the next."""
    cache = tokens.cache(CONTEXT + 1)
    some = _random(tokens, CONTEXT)
    tokens.transformer(tokens.embed(some)[None], cache, torch.arange(CONTEXT, device=tokens.device))
    one, place = tokens.embed(some[:1])[None], torch.tensor([CONTEXT], device=tokens.device)

    @torch.inference_mode()
    def run() -> None:
        for _ in range(PASSES):
            tokens.logits(tokens.transformer(one, cache, place)[0])
            cache.crop(CONTEXT)

    return run


def _scores(tokens: TokenModel) -> Tensor:
    """Scores (n, ids) after each of some tokens, read one by one."""
    cache = tokens.cache(READ)
    found = []
    for place, one in enumerate(_random(tokens, READ).split(1)):
        hidden = tokens.transformer(tokens.embed(one)[None], cache, torch.tensor([place], device=tokens.device))
        found.append(tokens.logits(hidden[0]).float())
    return torch.cat(found)


def _random(tokens: TokenModel, count: int) -> Tensor:
    """The same random tokens every time."""
    return torch.randint(tokens.codes, (count,), generator=torch.Generator().manual_seed(0)).to(tokens.device)
