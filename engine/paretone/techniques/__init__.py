"""Techniques: their discovery, and the joint effect of a setting's techniques. Torch-free.

Each technique is one file or folder. To add one, add that and name it in ``pyproject.toml``, in the entry-point group
``paretone.techniques``; a researcher's own package does the same.
"""

from __future__ import annotations

from paretone.setting.setting import Difference
from paretone.techniques.base import Technique
from paretone.techniques.registry import applying_to, find, problems, technique, techniques
from paretone.techniques.resolving import (
    changed_options,
    compatibility_of,
    conflict,
    foreseen,
    knobs_of,
    options_in_force,
    problem,
    remarks,
    require_family,
    resolve,
)

__all__ = [
    "Technique",
    "applying_to",
    "changed_options",
    "compatibility_of",
    "conflict",
    "find",
    "foreseen",
    "knobs_of",
    "options_in_force",
    "problem",
    "problems",
    "remarks",
    "require_family",
    "resolve",
    "technique",
    "techniques",
    "wording",
]


def wording(difference: Difference) -> str:
    """Readable name of a difference, such as "DiTReducio, Threshold δ"."""
    name, _, knob = difference.what.partition(".")
    found = find(name) if difference.technique else None
    if found is None or not knob:
        return found.title if found else difference.what
    artefact = {"calibration": "strategy table", "training": "weights"}.get(found.prepared_by, knob)
    label = next((one.label for one in found.knobs if one.name == knob), artefact)
    return f"{found.title}, {label}"
