"""Speech sentence by sentence: earlier audio from masked models, with unchanged filling-in of each sentence.

Each sentence is a separate canvas, filled in as upstream fills in a text, and plays while the next one is made. The
only loss is the context between sentences.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.figures.glyphs import Mark
from paretone.setting.knobs import Values
from paretone.setting.plan import MaskedPlan
from paretone.techniques.base import Context, Paper, Technique


def resolve(context: Context, knobs: Values, plan: MaskedPlan) -> MaskedPlan:
    return replace(plan, options=plan.options.replace(by_sentence=True))


TECHNIQUE = Technique(
    name="sentencewise",
    title="Sentence by sentence",
    summary="Speaks every sentence separately, so that the first plays while the others are made.",
    benefit="The first sentence plays while others are made",
    improves="first_audio_seconds",
    paper=Paper("Advice of OmniVoice's authors", "github.com/k2-fsa/OmniVoice, issue 77"),
    families=("masked",),
    slot="passages",
    place=110,
    mark=Mark("yellow", "circle"),
    knobs=(),
    resolve=resolve,
    describe=lambda knobs: "one canvas per sentence",
)
