"""Separate guidance strengths for text and voice on models with one strength for both, each for a part of the time.

F5-TTS is trained with the voice dropped, and with voice and text dropped, so a branch with the text alone can run as
well. As in MegaTTS 3 (Jiang et al., arXiv 2502.18924), guidance then has two effects: of the text over nothing, and of
the voice over the text. Each has its strength and its interval of time, after Selective CFG (arXiv 2509.19668). Equal
strengths over the same interval are plain guidance, in two branches, bit for bit.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.errors import SettingError
from paretone.figures.glyphs import Mark
from paretone.sampling.guidance import Strength, StrengthGuidance
from paretone.setting.knobs import Number, Values, amount
from paretone.setting.plan import FlowPlan
from paretone.techniques.base import Conflict, Context, Paper, Technique, require_guidance


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    info = context.info
    if not isinstance(info.guidance, StrengthGuidance):
        raise SettingError(
            f"{info.title} has a weight for the text and one for the voice among its own options; set these."
        )
    branches = info.guidance.branches(plan.options)
    require_guidance(context, branches, "have their guidance in them: there is none to divide")
    if "skipping" in context.taken:
        raise Conflict(
            f"{context.title_in('skipping')} is made for the branches of plain guidance; do without one of the two.",
            "skipping",
        )
    text, voice = (
        Strength(*(float(knobs[f"{name}{part}"]) for part in ("", "_from", "_until"))) for name in ("text", "voice")
    )
    for name, one in (("text", text), ("voice", voice)):
        if one.first >= one.last:
            raise SettingError(
                f"Guidance by the {name} begins at {one.first:g} and ends at {one.last:g}; let it end later, or set "
                "its strength to 0."
            )
    plan = replace(plan, guidance=replace(plan.guidance, strengths=(voice, text)))
    equal = ("Equal strengths for text and voice are plain guidance of that strength.",) if voice == text else ()
    return plan.noted(*equal)


def describe(knobs: Values) -> str:
    said = []
    for name in ("text", "voice"):
        first, last = knobs[f"{name}_from"], knobs[f"{name}_until"]
        when = "" if (first, last) == (0, 1) else f" from {first:g} to {last:g}"
        said.append(f"{name} {knobs[name]:g}{when}")
    return ", ".join(said)


def _strength(name: str, title: str, meaning: str) -> Number:
    return amount(name, title, meaning, default=2.0, between=(0.0, 10.0), step=0.1)


def _time(name: str, title: str, meaning: str, default: float) -> Number:
    return amount(name, title, meaning, default=default, between=(0.0, 1.0), step=0.05)


TECHNIQUE = Technique(
    name="separate_guidance",
    title="Separate guidance for text and voice",
    summary="Guides by the text and by the voice with separate strengths, each for a part of the time.",
    benefit="Strengths for clear words and for likeness, set apart",
    paper=Paper("MegaTTS 3: Sparse Alignment Enhanced Latent Diffusion Transformer", "arXiv 2502.18924"),
    families=("flow",),
    slot="guidance",
    place=92,
    mark=Mark("yellow", "diamond"),
    knobs=(
        _strength("text", "Text", "Strength of what the text makes of no text: clear words."),
        _strength("voice", "Voice", "Strength of what the voice adds to the text alone: likeness."),
        _time("text_from", "Text from", "Time from which the text guides; 0 is noise, 1 is speech.", 0.0),
        _time("text_until", "Text until", "Time until which the text guides.", 1.0),
        _time("voice_from", "Voice from", "Time from which the voice guides.", 0.0),
        _time("voice_until", "Voice until", "Time until which the voice guides.", 1.0),
    ),
    resolve=resolve,
    describe=describe,
)
