"""Dual block cache: the caching of vLLM-Omni, SGLang, diffusers and TensorRT-LLM, with the names and the rule of
cache-dit.

``rule`` decides, ``cache`` evaluates. Decisions and outputs are those of the ``cache-dit`` package on the official F5
class, which a test holds it to.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.errors import SettingError
from paretone.figures.glyphs import Mark
from paretone.setting.knobs import Choice, Knob, Number, Text, Values
from paretone.setting.plan import FlowPlan, Part
from paretone.techniques.base import Context, Paper, Technique
from paretone.techniques.dual_block_cache.rule import POLICIES, STATIC, Rule

NAME = "dual_block_cache"


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    """Its cache makes the evaluations."""
    rule, layers = Rule.of(knobs), context.info.layers
    if layers and rule.always >= layers:
        raise SettingError(
            f"{context.info.title} has {layers} layers, of which Fn and Bn compute blocks have {rule.always} computed "
            "at every step: none is left to reuse. Choose fewer."
        )
    mask = rule.steps_computation_mask
    if mask and rule.steps_computation_policy == STATIC and not mask[0]:
        raise SettingError("The steps computation mask must begin with 1: nothing is cached at the first step.")
    cache = Part.of("paretone.techniques.dual_block_cache.cache:evaluators", rule=rule)
    plan = replace(plan, evaluator=cache)
    if mask and len(mask) < plan.options["steps"]:
        return plan.noted(
            f"The steps computation mask has {len(mask)} of {plan.options['steps']} steps; later ones may be reused."
        )
    return plan


def idle(knobs: Values, plan: FlowPlan) -> str:
    """Why every step was computed."""
    rule, steps = Rule.of(knobs), range(plan.evaluations)
    if all(rule.warms_up(step) for step in steps):
        return (
            f"its warm-up computes all {len(steps)} steps; lower Max warmup steps ({rule.max_warmup_steps}), or take "
            "more steps"
        )
    if all(rule.warms_up(step) or rule.must_compute(step) for step in steps):
        return "warm-up and steps computation mask compute all steps; put zeros into the mask"
    if not rule.max_cached_steps or not rule.max_continuous_cached_steps:
        return "a limit of 0 cached steps allows none; raise it"
    return (
        "at no step after the warm-up did the first blocks change by less than the threshold of "
        f"{rule.residual_diff_threshold:g}; raise it, or take more steps"
    )


def describe(knobs: Values) -> str:
    """The rule in cache-dit's own short form."""
    rule = Rule.of(knobs)
    words = [
        f"F{rule.Fn_compute_blocks}B{rule.Bn_compute_blocks}",
        f"threshold {rule.residual_diff_threshold:g}",
        f"warm-up {rule.max_warmup_steps}",
    ]
    if rule.max_continuous_cached_steps >= 0:
        words.append(f"continuous {rule.max_continuous_cached_steps}")
    if rule.steps_computation_mask:
        words.append(f"{rule.steps_computation_policy} mask")
    if rule.taylorseer_order:
        words.append(f"Taylor order {rule.taylorseer_order}")
    return ", ".join(words)


def _count(name: str, title: str, meaning: str, default: int, minimum: int, lowest: str = "") -> Number:
    return Number(name, title, meaning, default=default, minimum=minimum, maximum=1000, whole=True, lowest=lowest)


_DEFAULT = Rule()
NO_LIMIT = "no limit"
KNOBS: tuple[Knob, ...] = (
    _count(
        "Fn_compute_blocks",
        "Fn compute blocks",
        "Number of first blocks, computed at every step; what they add decides whether the middle blocks are reused.",
        _DEFAULT.Fn_compute_blocks,
        1,
    ),
    _count(
        "Bn_compute_blocks",
        "Bn compute blocks",
        "Number of last blocks, computed at every step after the middle blocks, reused or not.",
        _DEFAULT.Bn_compute_blocks,
        0,
    ),
    Number(
        "residual_diff_threshold",
        "Residual diff threshold",
        "Reuse while what the first blocks add differs by less than this share from the last "
        "computed step. 0 never reuses, 1 always.",
        default=_DEFAULT.residual_diff_threshold,
        symbol="r",
        minimum=0.0,
        maximum=1.0,
        step=0.01,
    ),
    _count(
        "max_warmup_steps",
        "Max warmup steps",
        "Number of first steps, which are computed.",
        _DEFAULT.max_warmup_steps,
        0,
    ),
    _count(
        "warmup_interval",
        "Warmup interval",
        "Of the warm-up, only every n-th step must be computed.",
        _DEFAULT.warmup_interval,
        1,
    ),
    _count(
        "max_cached_steps",
        "Max cached steps",
        "Reuse no more steps than this. −1: no limit.",
        _DEFAULT.max_cached_steps,
        -1,
        NO_LIMIT,
    ),
    _count(
        "max_continuous_cached_steps",
        "Max continuous cached steps",
        "Compute after this many reused steps. −1: no limit.",
        _DEFAULT.max_continuous_cached_steps,
        -1,
        NO_LIMIT,
    ),
    Number(
        "max_accumulated_residual_diff_threshold",
        "Max accumulated residual diff",
        "Reuse nothing more once all measured changes add up to this. 0: no limit.",
        default=_DEFAULT.max_accumulated_residual_diff_threshold,
        minimum=0.0,
        maximum=1000.0,
        step=0.1,
        lowest=NO_LIMIT,
    ),
    Text(
        "steps_computation_mask",
        "Steps computation mask",
        "One digit per step, 1 must compute, 0 may reuse. Leave empty for none.",
        default="",
        longest=1000,
    ),
    Choice(
        "steps_computation_policy",
        "Steps computation policy",
        "Steps at 0 in the mask are decided by the threshold (dynamic), or all reused (static).",
        default=_DEFAULT.steps_computation_policy,
        values=POLICIES,
        titles=("Decided by the threshold (dynamic)", "Always reused (static)"),
    ),
    Number(
        "taylorseer_order",
        "TaylorSeer order",
        "Extrapolate what the middle blocks add by a Taylor series of this order, as cache-dit's "
        "TaylorSeer calibrator does. 0 reuses the last value.",
        default=_DEFAULT.taylorseer_order,
        minimum=0,
        maximum=4,
        whole=True,
    ),
)

TECHNIQUE = Technique(
    name=NAME,
    title="Dual block cache (cache-dit)",
    summary="Reuses the middle blocks while the first ones hardly change; the cache of vLLM-Omni and SGLang.",
    benefit="The cache that serving engines use",
    paper=Paper("DBCache and TaylorSeer in cache-dit 1.5.3", "github.com/vipshop/cache-dit, arXiv 2503.06923"),
    families=("flow",),
    slot="skipping",
    place=75,
    mark=Mark("green", "square"),
    exports="paretone.techniques.dual_block_cache.exports",
    knobs=KNOBS,
    resolve=resolve,
    describe=describe,
    idle=idle,
)
