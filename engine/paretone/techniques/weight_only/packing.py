"""Packs the weights of a network, and refuses where that was measured to gain nothing."""

from __future__ import annotations

from paretone.errors import SettingError
from paretone.models.families.token_model import TokenModel
from paretone.models.kernels import few_rows
from paretone.techniques.weight_only.measuring import measure
from paretone.techniques.weight_only.record import INT8, Record, current_machine, refusal


def packed(tokens: TokenModel, bits: str, group: int, anyway: bool, model: str, checkpoint: str) -> TokenModel:
    """See :attr:`paretone.setting.plan.LanguagePlan.products`. The first time on a device, the gain is measured and
    kept. Raises :class:`SettingError` where there is none, unless it is wanted ``anyway``."""
    require_available()
    made = narrowed(tokens, bits, group)
    record = Record.of(model)
    known = record.find(current_machine(), checkpoint, bits, group)
    if known is None:
        known = measure(tokens, made, bits, group, checkpoint)
        record.with_measured(known)
    if not known.gains and not anyway:
        raise SettingError(refusal(known, model))
    return made


def narrowed(tokens: TokenModel, bits: str, group: int) -> TokenModel:
    """``tokens`` with packed weights."""
    return tokens.with_products(
        lambda product, inputs: few_rows.packed_product(product, inputs, 8 if bits == INT8 else 4, group)
    )


def require_available() -> None:
    """Raise :class:`SettingError` if this build of torch lacks the operators."""
    if not few_rows.can_read_packed():
        raise SettingError(
            "This build of torch has no products with packed whole-number weights for processors; do without them."
        )
