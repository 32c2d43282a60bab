"""Guidance rescale: guided velocities are scaled back towards the spread of the conditional one.

Lin et al. (arXiv 2305.08891, section 3.4): guidance makes predictions too large. The guided one is scaled so that its
standard deviation is the conditional one's, and a share φ of that is mixed with what was guided.
"""

from dataclasses import replace

from paretone.errors import SettingError
from paretone.setting.knobs import Number
from paretone.setting.plan import Part
from paretone.techniques.base import Paper, Technique


def resolve(context, knobs, plan):
    """Put the combination of branches into the plan."""
    if plan.guidance.branches(context.info.guidance.branches(plan.options)) == 1:
        weights = context.title_in("weights")
        why = f"{weights} weights run one branch from the start" if weights else "Guidance is off"
        raise SettingError(f"{why}: there is nothing to rescale. Do without one of the two, or set a strength.")
    return replace(plan, combining=Part.of("paretone_guidance_rescale:combining", share=float(knobs["share"])))


def combining(combine, share):
    """The model's own combination of the branches, rescaled. The first branch knows voice and text."""

    def rescaled(velocities, evaluation):
        guided = combine(velocities, evaluation)
        ratio = velocities[:1].std() / guided.std()
        return guided * (1 + share * (ratio - 1))

    return rescaled


TECHNIQUE = Technique(
    name="guidance_rescale",
    title="Guidance rescale",
    summary="Scales guided velocities back to the spread of the conditional ones, against over-saturated speech.",
    benefit="Strong guidance without its excess",
    improves="word_error_rate",
    paper=Paper("Common Diffusion Noise Schedules and Sample Steps are Flawed", "arXiv 2305.08891"),
    families=("flow",),
    slot="guidance:combining",
    knobs=(
        Number(
            "share",
            "Share",
            "Share of the rescaled velocity; 0 is plain guidance.",
            default=0.7,
            symbol="φ",
            minimum=0.0,
            maximum=1.0,
            step=0.05,
        ),
    ),
    resolve=resolve,
    describe=lambda knobs: f"{knobs['share']:.0%} rescaled",
)
