"""What a setting means on a loaded model of the flow family; see :mod:`engine.techniques.engagement`. Torch-free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engine.errors import ProfileError, SettingError
from engine.models.base import FLOW, ModelInfo, OperationCounts, WeightSet
from engine.sampling.actions import SkipAction
from engine.sampling.guidance import needed_branches
from engine.setting.compatibility import Compatibility
from engine.setting.knobs import Values, checked
from engine.setting.setting import Setting
from engine.techniques import (
    ditreducio,
    error_curve,
    first_block,
    guidance_free,
    guidance_interval,
    in_force,
    knobs_of,
    precision,
    remarks,
    require_family,
)
from engine.techniques.ditreducio.table import StrategyTable
from engine.techniques.launching import PLAIN, Launching, launching

SMALLEST_GUIDANCE = 1e-5
"""Below this strength one branch runs; see :mod:`engine.sampling.guidance`."""
UNEQUAL_GUIDANCE = 0.1
"""Strengths that differ by no more are taken for equal: the names of weights have two digits."""
NO_GUIDANCE = (
    "No guidance: without it the CFG-free paper finds a word error rate of 8–9 % instead of 2 %. This is not CFG-free, "
    "which takes weights trained for it."
)


@dataclass(frozen=True)
class Engagement:
    """What one synthesis is carried out with."""

    options: Values
    """The sampler options in force."""
    reference: Values
    """Those of the same setting without techniques: what savings are counted against."""
    compatibility: Compatibility
    """What a strategy table must belong to here."""
    precision: str = "float32"
    weights: WeightSet | None = None
    """What takes the place of the model's own weights."""
    table: StrategyTable | None = None
    notes: tuple[str, ...] = ()
    """What belongs on a take: sentences about where the result is not what it may be taken for."""
    branches: int = 1
    reference_branches: int = 1
    guided_steps: int | None = None
    """How many steps are guided, where not all are."""
    error_threshold: float | None = None
    """Threshold of the error-curve cache."""
    first_block_threshold: float | None = None
    """Threshold of the first-block cache."""
    launching: Launching = PLAIN
    """How evaluations are launched."""

    def ops_ratio(self, operations: OperationCounts) -> float | None:
        """Backbone operations over those of the same setting without techniques, foreseen from what one evaluation
        costs, whatever branches that was counted for; ``None`` if only running it tells."""
        if self.error_threshold is not None or self.first_block_threshold is not None:
            return None
        spent = replace(operations, branches=self.branches)
        full = replace(operations, branches=self.reference_branches)
        ratio = self.table.ops_ratio(spent) if self.table else 1.0
        if self.guided_steps is not None and self.guided_steps < self.options["steps"]:
            guided = self.guided_steps / self.options["steps"]
            ratio *= guided + (1 - guided) * replace(operations, branches=1).evaluation / spent.evaluation
        return ratio * _evaluations(self.options) * spent.evaluation / (_evaluations(self.reference) * full.evaluation)


def engage(info: ModelInfo, setting: Setting, artefacts: Sequence[StrategyTable] = ()) -> Engagement:
    """Resolve ``setting`` on the loaded model that ``info`` describes; ``artefacts`` hold what it names by fingerprint.

    Raises :class:`SettingError` and :class:`ProfileError` that say why it cannot be used.
    """
    require_family(info, setting)
    if info.family != FLOW:
        raise SettingError(f"{info.title} does not go from noise to speech; strategy tables are not for it.")
    reference = _one_branch_where_trained(info, checked(info.knobs, setting.options, info.title))
    weights = _weights(info, setting)
    options = in_force(info, setting, reference)
    fingerprint = weights.fingerprint if weights else info.fingerprint
    compatibility = Compatibility.of(info.id, fingerprint, info.variant, info.knobs, options)
    table = _table(info, setting, artefacts, compatibility)
    computed_in, fallen_back = precision.computed_in(info, setting)
    notes = (*remarks(setting, options), *fallen_back, *_notes(info, setting, reference, options, weights, table))
    return Engagement(
        options,
        reference,
        compatibility,
        computed_in,
        weights,
        table,
        notes,
        _branches(info, options),
        _branches(info, reference),
        _knob(setting, guidance_interval.NAME, "steps"),
        _knob(setting, error_curve.NAME, "threshold"),
        _knob(setting, first_block.NAME, "threshold"),
        launching(info, setting),
    )


def before_calibration(info: ModelInfo, setting: Setting) -> Engagement:
    """What ``setting`` comes to before it has a strategy table: what one would be calibrated for."""
    return engage(info, setting.without(ditreducio.TECHNIQUE.name))


def _evaluations(options: Values) -> int:
    return options["steps"] * (2 if options.get("solver") == "midpoint" else 1)


def _branches(info: ModelInfo, options: Values) -> int:
    if "intelligibility" in options:
        return len(needed_branches(options["intelligibility"], options["similarity"]))
    return 1 if _is_unguided(options) else info.branches


def _is_unguided(options: Values) -> bool:
    return "guidance" in options and options["guidance"] < SMALLEST_GUIDANCE


def _one_branch_where_trained(info: ModelInfo, options: Values) -> Values:
    """A CFG-free checkpoint takes no guidance: on top of what is in its weights it would be far too much."""
    return options if info.cfg_free_weight is None else options.replace(guidance=0.0)


def _weights(info: ModelInfo, setting: Setting) -> WeightSet | None:
    entry = setting.engaged(guidance_free.NAME)
    return None if entry is None else guidance_free.chosen(info, entry, float(knobs_of(entry)["weight"]))


def _table(
    info: ModelInfo, setting: Setting, artefacts: Sequence[StrategyTable], compatibility: Compatibility
) -> StrategyTable | None:
    """The strategy table that the setting names, checked against what is loaded."""
    entry = setting.engaged(ditreducio.TECHNIQUE.name)
    if entry is None:
        return None
    table = next((one for one in artefacts if one.fingerprint == entry.artefact), None)
    if table is None:
        raise SettingError(f"{ditreducio.TECHNIQUE.title} has no strategy table yet; calibrate first, or import one.")
    mismatch = table.compatibility.mismatch(compatibility)
    if mismatch:
        raise ProfileError(f"The strategy table cannot be used here: {mismatch}. Calibrate again.")
    if table.layers != info.layers:
        raise ProfileError(f"The strategy table has {table.layers} layers, but {info.title} has {info.layers}.")
    return table


def _knob(setting: Setting, name: str, knob: str) -> int | float | None:
    """A knob's value where its technique is engaged."""
    entry = setting.engaged(name)
    return None if entry is None else knobs_of(entry)[knob]


def _notes(
    info: ModelInfo,
    setting: Setting,
    reference: Values,
    options: Values,
    weights: WeightSet | None,
    table: StrategyTable | None,
) -> Iterator[str]:
    trained = info.cfg_free_weight
    if weights is not None and abs(reference["guidance"] - weights.equivalent_guidance) > UNEQUAL_GUIDANCE:
        strength = f"{weights.equivalent_guidance:.3g}"
        yield (
            f"The CFG-free weights stand for guidance {strength}, but the baseline is guided by "
            f"{reference['guidance']:.3g}: their takes differ by that, too. A fair baseline has guidance "
            f"{strength}."
        )
    if trained is not None and setting.options.get("guidance", 0.0) > 0:
        yield (
            f"Guidance is left out: {info.title} is CFG-free (w = {trained:.2f}) and speaks as if guided by "
            f"{trained / (1 - trained):.2g} already; more on top would be too much."
        )
    if _is_unguided(options) and weights is None and trained is None:
        yield NO_GUIDANCE
    if _branches(info, options) == 1 and table is not None and table.count(SkipAction.BS):
        yield (
            f"{table.count(SkipAction.BS)} cells of the strategy table skip branches; with one branch there is none to "
            "skip, so they compute and only temporal skipping saves."
        )
