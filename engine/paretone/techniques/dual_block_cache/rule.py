"""When cache-dit reuses: its ``DBCacheConfig`` as a rule, decided for each branch. Torch-free.

Source: cache-dit 1.5.3 (``caching/cache_contexts``). A pass is reused if what the first blocks add has changed by less
than a threshold since the branch was last *computed*; changes are not summed over steps, as TeaCache does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paretone.errors import SettingError
from paretone.reading import shown
from paretone.setting.knobs import Values

DYNAMIC, STATIC = "dynamic", "static"
POLICIES = (DYNAMIC, STATIC)


@dataclass(frozen=True)
class Rule:
    """``DBCacheConfig``, with its names; ``taylorseer_order`` is that of ``TaylorSeerCalibratorConfig``."""

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
    """0: the last difference is reused as it is."""

    @classmethod
    def of(cls, knobs: Values) -> Rule:
        """The rule that the technique's knobs describe. Raises :class:`SettingError` for a mask of other characters."""
        mask = read_mask(str(knobs["steps_computation_mask"]))
        return cls(**{**knobs, "steps_computation_mask": mask})

    @property
    def always(self) -> int:
        """Number of blocks that every pass computes."""
        return self.Fn_compute_blocks + self.Bn_compute_blocks

    def warms_up(self, step: int) -> bool:
        """Whether ``step`` is computed because it belongs to the warm-up, which a mask shortens to its leading ones."""
        steps, mask = self.max_warmup_steps, self.steps_computation_mask
        if mask:
            steps = min(steps, next((at for at, computes in enumerate(mask) if not computes), len(mask)))
        return step < steps and step % self.warmup_interval == 0

    def must_compute(self, step: int) -> bool:
        """Whether the mask has ``step`` computed."""
        return step < len(self.steps_computation_mask) and self.steps_computation_mask[step]


def read_mask(text: str) -> tuple[bool, ...]:
    """A steps computation mask: ``1`` computes, ``0`` may reuse; commas, brackets and spaces do not matter. Raises
    :class:`SettingError` for other characters."""
    digits = [one for one in text if one not in ", []"]
    if set(digits) - {"0", "1"}:
        raise SettingError(
            f"The steps computation mask has one digit per step, 1 (compute) or 0 (may reuse), such as 11101010; "
            f"{shown(text)} has other characters."
        )
    return tuple(one == "1" for one in digits)


class Decisions:
    """One branch's decisions, step after step."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.reused: list[int] = []
        """Steps that were reused."""
        self._continuous = 0
        self._accumulated = 0.0

    def reuses(self, step: int, change: Callable[[], float] | None) -> bool:
        """Decide about ``step``. ``change`` measures the relative change since the last computed step; ``None`` if
        nothing has been computed."""
        found = change is not None and self._reuses(step, change)
        if found:
            self.reused.append(step)
        self._continuous = self._continuous + 1 if found else 0
        return found

    def _reuses(self, step: int, change: Callable[[], float]) -> bool:
        rule = self._rule
        if rule.warms_up(step) or rule.must_compute(step):
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
        # Every measured change adds up, that of a step which is then computed as well.
        found = change()
        self._accumulated += found
        return found < rule.residual_diff_threshold
