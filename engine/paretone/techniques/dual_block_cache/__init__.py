"""Dual block cache: the caching of vLLM-Omni, SGLang, diffusers and TensorRT-LLM, with cache-dit's names and rule.

A :class:`Rule` decides for each branch, ``cache`` evaluates. Source: cache-dit 1.5.3 (``caching/cache_contexts``). A
pass is reused if the residual of the first blocks has changed by less than a threshold since the branch was last
*computed*; unlike in TeaCache, changes are not summed over steps. A test compares decisions and outputs with the
``cache-dit`` package on the official F5 class. Torch-free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from paretone.errors import SettingError
from paretone.export.accounts import CACHE_DIT, Carried, knob_lines
from paretone.export.targets import Target, lacking
from paretone.figures.glyphs import Mark
from paretone.reading import shown
from paretone.setting.knobs import Choice, Knob, Number, Text, Values, amount, count
from paretone.setting.plan import FlowPlan, Part
from paretone.setting.setting import UsedTechnique
from paretone.techniques import knobs_of
from paretone.techniques.base import Context, Paper, Technique

DYNAMIC, STATIC = "dynamic", "static"


@dataclass(frozen=True)
class Rule:
    """``DBCacheConfig``, with its names; ``taylorseer_order`` is from ``TaylorSeerCalibratorConfig``."""

    Fn_compute_blocks: int = 1
    Bn_compute_blocks: int = 0
    residual_diff_threshold: float = 0.12
    max_warmup_steps: int = 4
    warmup_interval: int = 1
    max_cached_steps: int = -1
    max_continuous_cached_steps: int = 2
    max_accumulated_residual_diff_threshold: float = 0.0
    """0: no limit."""
    steps_computation_mask: tuple[bool, ...] = ()
    steps_computation_policy: str = DYNAMIC
    taylorseer_order: int = 0
    """0: reuse the last difference unchanged."""

    @classmethod
    def of(cls, knobs: Values) -> Rule:
        """Rule of the technique's knobs. Raises :class:`SettingError` for a mask with other characters."""
        return cls(**{**knobs, "steps_computation_mask": read_mask(str(knobs["steps_computation_mask"]))})

    @property
    def always(self) -> int:
        return self.Fn_compute_blocks + self.Bn_compute_blocks

    def must_compute(self, step: int) -> bool:
        return self.warms_up(step) or any(self.steps_computation_mask[step : step + 1])

    def warms_up(self, step: int) -> bool:
        """Whether ``step`` is computed for warm-up, which a mask limits to its leading ones."""
        steps, mask = self.max_warmup_steps, self.steps_computation_mask
        if mask:
            steps = min(steps, next((at for at, computes in enumerate(mask) if not computes), len(mask)))
        return step < steps and step % self.warmup_interval == 0


def read_mask(text: str) -> tuple[bool, ...]:
    """Parse a steps computation mask: ``1`` computes, ``0`` may reuse; commas, brackets and spaces are ignored. Raises
    :class:`SettingError` for other characters."""
    digits = [one for one in text if one not in ", []"]
    if set(digits) - {"0", "1"}:
        raise SettingError(
            f"The steps computation mask has one digit per step, 1 (compute) or 0 (may reuse), such as 11101010; "
            f"{shown(text)} has other characters."
        )
    return tuple(one == "1" for one in digits)


class Decisions:
    """Decisions of one branch, step by step."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.reused: list[int] = []
        self._continuous = 0
        self._accumulated = 0.0

    def reuses(self, step: int, change: Callable[[], float] | None) -> bool:
        """Decide whether to reuse at ``step``. ``change``: relative, since the last computed step, if any."""
        found = change is not None and self._reuses(step, change)
        if found:
            self.reused.append(step)
        self._continuous = self._continuous + 1 if found else 0
        return found

    def _reuses(self, step: int, change: Callable[[], float]) -> bool:
        rule = self._rule
        if rule.must_compute(step):
            return False
        if rule.steps_computation_mask and rule.steps_computation_policy == STATIC:
            return True
        if 0 <= rule.max_cached_steps <= len(self.reused):
            return False
        if 0 <= rule.max_continuous_cached_steps <= self._continuous:
            return False
        if 0 < rule.max_accumulated_residual_diff_threshold <= self._accumulated:
            return False
        if not 0 < rule.residual_diff_threshold < 1:
            return rule.residual_diff_threshold >= 1
        # Every measured change counts, including that of a step which is then computed.
        found = change()
        self._accumulated += found
        return found < rule.residual_diff_threshold


USUAL = {
    "warmup_interval": 1,
    "max_accumulated_residual_diff_threshold": 0.0,
    "steps_computation_mask": (),
    "steps_computation_policy": Rule.steps_computation_policy,
    "taylorseer_order": 0,
}
"""cache-dit's defaults, which exports omit."""


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """Carry cache-dit's configuration, without fields that the target does not pass on."""
    if CACHE_DIT not in target.takes:
        return lacking(target, entry)
    fields = configuration(Rule.of(knobs_of(entry)))
    honoured = [name for name in fields if name in target.takes]
    dropped = [name for name in fields if name not in target.takes]
    passed = {name: value for name in honoured for name, value in fields[name].items()}
    return Carried(
        knob_lines(entry, "in the configuration of cache-dit", honoured),
        knob_lines(entry, f"{target.program} does not pass it on to cache-dit", dropped),
        {"cache_dit": passed},
    )


def configuration(rule: Rule) -> dict[str, dict[str, Any]]:
    """Fields of ``cache_config`` for ``cache_dit.load_configs``, as JSON values by knob, without defaults."""
    found = {name: {name: value} for name, value in vars(rule).items() if USUAL.get(name, ...) != value}
    if "steps_computation_mask" in found:
        found["steps_computation_mask"] = {"steps_computation_mask": [int(one) for one in rule.steps_computation_mask]}
    else:
        found.pop("steps_computation_policy", None)  # Applies to the mask only.
    if "taylorseer_order" in found:
        found["taylorseer_order"] = {"enable_taylorseer": True, "taylorseer_order": rule.taylorseer_order}
    return found


NAME = "dual_block_cache"


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    rule, layers = Rule.of(knobs), context.info.layers
    if layers and rule.always >= layers:
        raise SettingError(
            f"{context.info.title} has {layers} layers, of which Fn and Bn compute blocks have {rule.always} computed "
            "at every step: none is left to reuse. Choose fewer."
        )
    mask = rule.steps_computation_mask
    if mask and rule.steps_computation_policy == STATIC and not mask[0]:
        raise SettingError("The steps computation mask must begin with 1: nothing is cached at the first step.")
    plan = replace(plan, evaluator=Part.of(f"{__name__}.cache:evaluators", rule=rule))
    if mask and len(mask) < plan.options["steps"]:
        return plan.noted(
            f"The steps computation mask has {len(mask)} of {plan.options['steps']} steps; later ones may be reused."
        )
    return plan


def idle(knobs: Values, plan: FlowPlan) -> str:
    rule, steps = Rule.of(knobs), range(plan.evaluations)
    if all(rule.warms_up(step) for step in steps):
        return (
            f"its warm-up computes all {len(steps)} steps; lower Max warmup steps ({rule.max_warmup_steps}), or take "
            "more steps"
        )
    if all(rule.must_compute(step) for step in steps):
        return "warm-up and steps computation mask compute all steps; put zeros into the mask"
    if not rule.max_cached_steps or not rule.max_continuous_cached_steps:
        return "a limit of 0 cached steps allows none; raise it"
    return (
        "at no step after the warm-up did the first blocks change by less than the threshold of "
        f"{rule.residual_diff_threshold:g}; raise it, or take more steps"
    )


def describe(knobs: Values) -> str:
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


def _count(name: str, title: str, meaning: str, minimum: int, lowest: str = "") -> Number:
    return count(name, title, meaning, getattr(Rule, name), between=(minimum, 1000), lowest=lowest)


NO_LIMIT = "no limit"
KNOBS: tuple[Knob, ...] = (
    _count(
        "Fn_compute_blocks",
        "Fn compute blocks",
        "Number of first blocks, computed at every step; what they add decides whether the middle blocks are reused.",
        1,
    ),
    _count(
        "Bn_compute_blocks",
        "Bn compute blocks",
        "Number of last blocks, computed at every step after the middle blocks, reused or not.",
        0,
    ),
    amount(
        "residual_diff_threshold",
        "Residual diff threshold",
        "Reuse while what the first blocks add differs by less than this share from the last "
        "computed step. 0 never reuses, 1 always.",
        default=Rule.residual_diff_threshold,
        between=(0.0, 1.0),
        symbol="r",
        step=0.01,
    ),
    _count("max_warmup_steps", "Max warmup steps", "Number of first steps, which are computed.", 0),
    _count("warmup_interval", "Warmup interval", "Of the warm-up, only every n-th step must be computed.", 1),
    _count("max_cached_steps", "Max cached steps", "Reuse no more steps than this. −1: no limit.", -1, NO_LIMIT),
    _count(
        "max_continuous_cached_steps",
        "Max continuous cached steps",
        "Compute after this many reused steps. −1: no limit.",
        -1,
        NO_LIMIT,
    ),
    amount(
        "max_accumulated_residual_diff_threshold",
        "Max accumulated residual diff",
        "Reuse nothing more once all measured changes add up to this. 0: no limit.",
        default=Rule.max_accumulated_residual_diff_threshold,
        between=(0.0, 1000.0),
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
        default=Rule.steps_computation_policy,
        values=(DYNAMIC, STATIC),
        titles=("Decided by the threshold (dynamic)", "Always reused (static)"),
    ),
    count(
        "taylorseer_order",
        "TaylorSeer order",
        "Extrapolate what the middle blocks add by a Taylor series of this order, as cache-dit's "
        "TaylorSeer calibrator does. 0 reuses the last value.",
        default=Rule.taylorseer_order,
        between=(0, 4),
    ),
)

TECHNIQUE = Technique(
    name=NAME,
    title="Dual block cache (cache-dit)",
    summary="Reuses the middle blocks while the first ones hardly change; the cache of vLLM-Omni and SGLang.",
    benefit="The cache that serving engines use",
    paper=Paper("DBCache and TaylorSeer in cache-dit 1.5.3", "github.com/vipshop/cache-dit, arXiv 2503.06923"),
    families=("flow", "language"),
    of_mel_flow=True,
    slot="skipping",
    place=75,
    mark=Mark("green", "square"),
    exports=__name__,
    knobs=KNOBS,
    resolve=resolve,
    describe=describe,
    idle=idle,
)
