"""The second-order Adams–Bashforth step: the last two velocities instead of one, with one evaluation per step."""

from dataclasses import replace

from paretone.errors import SettingError
from paretone.setting.knobs import Number
from paretone.setting.plan import Part
from paretone.techniques.base import Paper, Technique


def resolve(context, knobs, plan):
    """Put the step into the plan."""
    if plan.options.get("solver", "euler") != "euler":
        raise SettingError("Adams–Bashforth takes one evaluation per step; choose the Euler solver.")
    return replace(plan, stepper=Part.of("paretone_adams_bashforth:steps", weight=float(knobs["weight"])))


def steps(times, follow, weight):
    """The model's own step ``follow`` along ``times``, with the velocity extrapolated to the middle of the step."""
    last = {}

    def step_on(state, velocity, step):
        ahead = velocity
        if step:
            ratio = float((times[step + 1] - times[step]) / (times[step] - times[step - 1]))
            ahead = velocity + weight * ratio / 2 * (velocity - last["velocity"])
        last["velocity"] = velocity
        return follow(state, ahead, step)

    return step_on


TECHNIQUE = Technique(
    name="adams_bashforth",
    title="Adams–Bashforth step",
    summary="Follows the last two velocities instead of one: second order with one evaluation per step.",
    benefit="Second-order steps at Euler's cost",
    paper=Paper("Adams–Bashforth methods", "Hairer, Nørsett, Wanner: Solving Ordinary Differential Equations I, III.1"),
    families=("flow",),
    slot="solver",
    knobs=(
        Number(
            "weight",
            "Second-order share",
            "1 is Adams–Bashforth, 0 is Euler.",
            default=1.0,
            minimum=0.0,
            maximum=1.5,
            step=0.1,
        ),
    ),
    resolve=resolve,
    describe=lambda knobs: f"{knobs['weight']:.0%} of the second-order term",
)
