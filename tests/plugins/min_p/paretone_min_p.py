"""Min-p sampling: tokens that are much less likely than the likeliest one never come."""

from dataclasses import dataclass, replace
from typing import Any

from paretone.setting.knobs import Number
from paretone.setting.plan import Part
from paretone.techniques.base import Paper, Technique


def resolve(context, knobs, plan):
    """Put the sampler into the plan."""
    return replace(plan, sampler=Part.of("paretone_min_p:MinP", share=float(knobs["share"])))


@dataclass(frozen=True)
class MinP:
    """The model's own sampler, less what is below ``share`` of the likeliest."""

    own: Any
    share: float

    def probabilities(self, logits, history):
        """As :class:`paretone.sampling.tokens.TokenSampler` says."""
        found = self.own.probabilities(logits, history)
        kept = found.where(found >= self.share * found.amax(-1, keepdim=True), 0.0)
        return kept / kept.sum(-1, keepdim=True)


TECHNIQUE = Technique(
    name="min_p",
    title="Min-p sampling",
    summary="Leaves out tokens that are much less likely than the likeliest one.",
    paper=Paper("Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM Outputs", "arXiv 2407.01082"),
    families=("language",),
    slot="sampling",
    knobs=(
        Number(
            "share",
            "Least share",
            "Of the likeliest token's probability, below which a token never comes.",
            default=0.1,
            symbol="p",
            minimum=0.0,
            maximum=1.0,
            step=0.05,
        ),
    ),
    resolve=resolve,
    describe=lambda knobs: f"tokens from {knobs['share']:.0%} of the likeliest one's probability on",
)
