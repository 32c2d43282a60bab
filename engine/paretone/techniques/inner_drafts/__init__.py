"""Drafts within frames: the first layers of the network that completes a frame draft its codes, and one pass of the
other layers checks several of them. Torch-free.

For models whose tokens are the first codes of frames: the other codes come from a small network, which runs once per
code and may read more weights than the large one. Every code is drawn with its own random number from the scores of all
layers, so that speech is the same as without drafts, up to rounding; layers whose drafts are seldom right make it
slower. As an option, the large network's first layers draft whole frames ahead, whose first codes one pass of all its
layers checks: an approximation, see :mod:`paretone.sampling.frame_speculation`. Early exits that verify themselves:
LayerSkip, Elhoushi et al., arXiv 2404.16710.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.errors import SettingError
from paretone.figures.glyphs import Mark
from paretone.setting.knobs import Values, count
from paretone.setting.plan import InnerDrafts, LanguagePlan, Part
from paretone.techniques.base import Context, Paper, Technique


def resolve(context: Context, knobs: Values, plan: LanguagePlan) -> LanguagePlan:
    plan = replace(plan, drafts_in_frames=InnerDrafts(int(knobs["layers"]), int(knobs["most"])))
    ahead, layers = int(knobs["ahead"]), int(knobs["ahead_layers"])
    if not ahead:
        return plan
    there = len(plan.layers or range(context.info.layers))
    if context.loaded and layers >= there:
        raise SettingError(f"{context.info.title} runs {there} layers, of which fewer draft frames; set ahead_layers.")
    part = Part.of(f"{__name__}.decoding:ahead", layers=layers, most=ahead)
    return replace(plan, decoding=part).noted(
        f"Approximate: frames that the first {layers} layers drafted keep the codes after the first that were chosen "
        "from these layers alone."
    )


def describe(knobs: Values) -> str:
    layers = int(knobs["layers"])
    by = f"the first {layers} layers" if layers > 1 else "the first layer"
    within = f"codes of a frame drafted by {by}, up to {knobs['most']} at a time"
    if not knobs["ahead"]:
        return f"{within}; the same speech"
    return f"{within}; up to {knobs['ahead']} frames drafted ahead by {knobs['ahead_layers']} layers (approximate)"


TECHNIQUE = Technique(
    name="inner_drafts",
    title="Drafts within frames (experiment)",
    summary="The first layers of the network that completes a frame draft its codes; the others check several at once. "
    "The speech is the same, unless frames are drafted ahead.",
    benefit="Codes of a frame checked several at once",
    paper=Paper("LayerSkip: Enabling Early Exit Inference and Self-Speculative Decoding", "arXiv 2404.16710"),
    families=("language",),
    options=("inner_temperature",),
    slot="draft",
    place=167,
    mark=Mark("blue", "down"),
    experimental=True,
    knobs=(
        count(
            "layers",
            "Drafting layers",
            "Layers that draft; the others check. Fewer draft faster and are right less often.",
            default=1,
            between=(1, 16),
        ),
        count(
            "most",
            "Codes drafted at a time",
            "After the first code that the check replaces, the others are drafted again.",
            default=5,
            between=(1, 64),
        ),
        count(
            "ahead",
            "Frames drafted ahead (approximate)",
            "Frames that the large network's first layers draft at a time; all its layers check their first codes. The "
            "speech differs. 0: none, and the speech is the same.",
            default=0,
            between=(0, 16),
        ),
        count(
            "ahead_layers",
            "Layers that draft ahead",
            "First layers of the large network that draft frames, with its own head.",
            default=8,
            between=(1, 64),
        ),
    ),
    resolve=resolve,
    describe=describe,
)
