"""Packs the weights of a network, and measures the time of one-token passes and the change of predictions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import torch
from torch import Tensor

from paretone.errors import PlainError, SettingError
from paretone.measure.timing import paired_ratio
from paretone.models.families.language import LanguageSpeech
from paretone.models.families.language_network import TokenModel
from paretone.models.kernels import few_rows
from paretone.techniques import resolve, weight_only
from paretone.techniques.base import JobTask


def packed(tokens: TokenModel, bits: str, group: int, anyway: bool, model: str, checkpoint: str) -> TokenModel:
    """See :attr:`paretone.setting.plan.LanguagePlan.products`. Measures and stores the gain the first time on a device.
    Raises :class:`SettingError` without a gain, unless ``anyway``."""
    require_available()
    made = narrowed(tokens, bits, group)
    record = weight_only.Record.of(model)
    known = record.find(weight_only.current_machine(), checkpoint, bits, group)
    if known is None:
        known = measure(tokens, made, bits, group, checkpoint)
        with suppress(PlainError):  # If it cannot be kept, it is measured again next time.
            record.with_measured(known)
    if not known.gains and not anyway:
        raise SettingError(weight_only.refusal(known, model))
    return made


def narrowed(tokens: TokenModel, bits: str, group: int) -> TokenModel:
    return tokens.with_products(
        lambda product, inputs: few_rows.packed_product(product, inputs, 8 if bits == weight_only.INT8 else 4, group)
    )


def require_available() -> None:
    """Raise :class:`SettingError` if this build of torch lacks the operators."""
    if not few_rows.can_read_packed():
        raise SettingError(
            "This build of torch has no products with packed whole-number weights for processors; do without them."
        )


CONTEXT = 64
"""Number of tokens in the cache of a timed pass."""
PASSES, ROUNDS = 8, 15
"""Passes per round, and rounds: a quarter of a second for a small model."""
READ = 48
"""Number of random tokens whose predictions are compared."""


@torch.inference_mode()
def measure(
    plain: TokenModel,
    packed: TokenModel,
    bits: str,
    group: int,
    checkpoint: str,
    on_round: Callable[[int], None] | None = None,
) -> weight_only.Measured:
    """Time one-token passes of both networks in interleaved rounds, and compare their predictions after the same
    tokens. ``on_round`` may raise to cancel."""
    times = paired_ratio(
        {"usual": _passes(plain), "packed": _passes(packed)}, ROUNDS, device=plain.device.type, on_round=on_round
    )
    gain = times.speed_up["packed"]
    wanted, found = _scores(plain), _scores(packed)
    error = float((found - wanted).square().mean().sqrt() / wanted.std())
    both = wanted.log_softmax(-1), found.log_softmax(-1)
    divergence = float((both[0].exp() * (both[0] - both[1])).sum(-1).mean())
    created = datetime.now(UTC).isoformat(timespec="seconds")
    key = weight_only.current_machine(), checkpoint, bits, weight_only.group_of(bits, group)
    return weight_only.Measured(*key, gain.median, gain.low, gain.high, error, divergence, created)


def _passes(tokens: TokenModel) -> Callable[[], None]:
    """Function that reads one token after the same context repeatedly, and scores the next."""
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
    """Scores (n, ids) after each of several tokens, read one by one."""
    cache = tokens.cache(READ)
    found = []
    for place, one in enumerate(_random(tokens, READ).split(1)):
        hidden = tokens.transformer(tokens.embed(one)[None], cache, torch.tensor([place], device=tokens.device))
        found.append(tokens.logits(hidden[0]).float())
    return torch.cat(found)


def _random(tokens: TokenModel, count: int) -> Tensor:
    """Random tokens, the same every time."""
    return torch.randint(tokens.codes, (count,), generator=torch.Generator().manual_seed(0)).to(tokens.device)


def carry_out(task: JobTask) -> weight_only.WeightsMeasured:
    model, request = task.loaded, task.request
    if not isinstance(model, LanguageSpeech) or model.info.device_type not in ("", "cpu"):
        raise SettingError(
            f"{model.info.title} on {model.info.device} has no passes of packed weights; load a speech language model "
            "on the processor."
        )
    require_available()
    plan = resolve(model.info, request.setting.without(weight_only.NAME), prepared=False)
    tokens = model.networks(plan).target.tokens
    record, found = weight_only.Record.of(model.info.id), []
    ways = [(weight_only.INT8, 0), *((weight_only.INT4, group) for group in request.groups)]
    for number, (bits, group) in enumerate(ways):
        task.observer.status(f"Measuring {bits}{f' in groups of {group}' if group else ''} …")

        def tell(done: int, before: int = number) -> None:
            task.observer.check()
            task.observer.progress(before * ROUNDS + done, len(ways) * ROUNDS)

        one = measure(tokens, narrowed(tokens, bits, group), bits, group, plan.fingerprint, tell)
        record = record.with_measured(one)
        found.append(one)
    return weight_only.WeightsMeasured(tuple(found), str(record.path))
