"""Exports of the dual block cache: see :mod:`paretone.export.targets`. Torch-free."""

from __future__ import annotations

from typing import Any

from paretone.export.accounts import CACHE_DIT, Carried, knob_lines
from paretone.export.targets import Target, lacking
from paretone.setting.setting import UsedTechnique
from paretone.techniques import knobs_of
from paretone.techniques.dual_block_cache.rule import Rule

USUAL = {
    "warmup_interval": 1,
    "max_accumulated_residual_diff_threshold": 0.0,
    "steps_computation_mask": (),
    "steps_computation_policy": Rule().steps_computation_policy,
    "taylorseer_order": 0,
}
"""What cache-dit does without being told, so that nothing has to be carried."""


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """The configuration that cache-dit reads, without the fields that the target does not pass on."""
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
    """The fields of ``cache_config`` that ``cache_dit.load_configs`` reads, as JSON values, by the knobs that they are
    of; without those that say what holds anyway."""
    found = {name: {name: value} for name, value in vars(rule).items() if USUAL.get(name, ...) != value}
    if "steps_computation_mask" in found:
        found["steps_computation_mask"] = {"steps_computation_mask": [int(one) for one in rule.steps_computation_mask]}
    else:
        found.pop("steps_computation_policy", None)  # It is about the mask.
    if "taylorseer_order" in found:
        found["taylorseer_order"] = {"enable_taylorseer": True, "taylorseer_order": rule.taylorseer_order}
    return found
