"""Weights of 8 or 4 bits for passes of few tokens (language models): packed once, used where that is faster.

``record`` keeps what was measured on each device, ``measuring`` measures it, ``packing`` packs. The products themselves
are in :mod:`paretone.models.kernels.few_rows`. Torch-free.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.errors import SettingError
from paretone.figures.glyphs import Mark
from paretone.models.base import ModelInfo
from paretone.setting.knobs import Choice, Switch, Values
from paretone.setting.plan import LanguagePlan, Part
from paretone.techniques.base import Context, Job, Paper, Technique
from paretone.techniques.weight_only.record import INT4, INT8, Record, current_machine, refusal

NAME = "weight_only"
GROUPS = ("32", "64", "128", "256")


def resolve(context: Context, knobs: Values, plan: LanguagePlan) -> LanguagePlan:
    """Products with packed weights, unless it was measured here that they gain nothing."""
    info, bits, group = context.info, str(knobs["bits"]), int(str(knobs["group"]))
    if info.device_type not in ("", "cpu"):
        raise SettingError(
            f"{TECHNIQUE.title} uses torch's operators for processors, and {info.title} runs on {info.device}; load it "
            "on the processor, or do without."
        )
    anyway = bool(knobs["anyway"])
    part = Part.of(
        "paretone.techniques.weight_only.measuring:packed",
        bits=bits,
        group=group,
        anyway=anyway,
        model=info.id,
        checkpoint=plan.fingerprint,
    )
    if not context.loaded:
        return replace(plan, products=part)
    known = Record.of(info.id).find(current_machine(), plan.fingerprint, bits, group)
    if known is not None and not known.gains and not anyway:
        raise SettingError(refusal(known, info.title))
    rounded = f" by {known.divergence:.2g} nats" if known is not None else ""
    return replace(plan, products=part).noted(
        f"Weights are rounded to {bits.removeprefix('int')} bits for passes of few tokens, which moves the model's "
        f"predictions{rounded}."
    )


def little(info: ModelInfo) -> str:
    """That nothing was gained here, or ``""``."""
    if not info.fingerprint:
        return ""
    found = Record.of(info.id).all_of(current_machine(), info.fingerprint)
    best = max(found, key=lambda one: one.speed_up, default=None)
    return "" if best is None or best.gains else refusal(best, info.title)


def describe(knobs: Values) -> str:
    """Number of bits, in words."""
    if knobs["bits"] == INT8:
        return "weights of 8 bits with one scale per output, for passes of few tokens"
    return f"weights of 4 bits in groups of {knobs['group']} inputs, for passes of few tokens"


TECHNIQUE = Technique(
    name=NAME,
    title="Weight-only int8/int4",
    summary="Packs the weights into 8 or 4 bits for passes of few tokens, where reading them takes most of the time.",
    benefit="Smaller weights, where measured to be faster",
    paper=Paper("LLM.int8() and GPTQ: weights of language models in 8 and 4 bits", "arXiv 2208.07339, 2210.17323"),
    families=("language",),
    slot="precision",
    place=45,
    mark=Mark("purple", "square"),
    little=little,
    commands=("paretone.techniques.weight_only.command",),
    jobs=(
        Job(
            "measure",
            "Measuring packed weights",
            "paretone.techniques.weight_only.record:MeasureWeights",
            "paretone.techniques.weight_only.measuring:carry_out_measuring",
        ),
    ),
    resolve=resolve,
    describe=describe,
    knobs=(
        Choice(
            "bits",
            "Weights",
            "Eight bits keep predictions nearly as they are; four halve what is read once more, and are heard sooner. "
            "Activations are bfloat16 in these products.",
            default=INT8,
            values=(INT8, INT4),
            titles=("8 bits", "4 bits"),
        ),
        Choice(
            "group",
            "Group of 4-bit weights",
            "Inputs that share a scale and a zero point: fewer are more exact and larger.",
            default=GROUPS[0],
            values=GROUPS,
            titles=tuple(f"{one} inputs" for one in GROUPS),
        ),
        Switch(
            "anyway",
            "Even without a gain",
            "Use packed weights even where they were measured to gain nothing, for example to hear them.",
            default=False,
        ),
    ),
)
