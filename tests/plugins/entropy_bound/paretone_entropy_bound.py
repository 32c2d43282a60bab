"""Entropy-bound unmasking: each step commits as many codes as its network is sure enough of together.

Ben-Hamu et al. (arXiv 2505.24857): of the cells in the order in which they would be committed, the largest number whose
entropies, all but the greatest, add up to at most γ. So easy parts take few steps, and hard ones more.
"""

from dataclasses import replace

from paretone.setting.knobs import Number
from paretone.setting.plan import Part
from paretone.techniques.base import Paper, Technique


def resolve(context, knobs, plan):
    """Put the schedule into the plan."""
    return replace(plan, schedule=Part.of("paretone_entropy_bound:schedule", bound=float(knobs["bound"])))


def schedule(cells, steps, bound):
    """How many codes a step commits."""
    import torch

    def count(there):
        entropy = torch.special.entr(there.log_probabilities.exp()).sum(-1)
        spent = entropy.cumsum(0) - entropy.cummax(0).values
        return int((spent <= bound).sum())

    return count


TECHNIQUE = Technique(
    name="entropy_bound",
    title="Entropy-bound unmasking",
    summary="Commits as many codes per step as keep their summed entropy below a bound: fewer steps where it is easy.",
    benefit="Fewer steps where the codes are certain",
    paper=Paper("Accelerated Sampling from Masked Diffusion Models via Entropy Bounded Unmasking", "arXiv 2505.24857"),
    families=("masked",),
    slot="grid",
    knobs=(
        Number(
            "bound",
            "Entropy bound",
            "Sum of the entropies of the codes that one step commits, without the greatest.",
            default=100.0,
            symbol="γ",
            unit="nats",
            minimum=0.0,
            maximum=10000.0,
            step=10.0,
        ),
    ),
    resolve=resolve,
    describe=lambda knobs: f"up to {knobs['bound']:g} nats per step",
)
