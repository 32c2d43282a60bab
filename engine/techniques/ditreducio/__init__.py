"""DiTReducio: skip what a diffusion transformer repeats from step to step and from branch to branch.

``table`` is the artefact, ``record`` what a calibration measured, ``calibration`` the three passes that make one, on
what ``calibration_target`` describes; ``transfer`` measures how well a table serves other sentences. How a table acts
inside a backbone: :mod:`engine.sampling.skipping`.
"""

from __future__ import annotations

from engine.setting.knobs import Choice, Effect, Number, Values
from engine.setting.setting import Setting
from engine.techniques.base import ArtefactFile, Job, Paper, Technique
from engine.techniques.ditreducio.table import BRANCH_SKIP_VARIANTS
from engine.techniques.forecast import TEMPORAL

METRICS = ("mae", "relative")
UNITS = {"mae": "units of the model's output", "relative": "relative, clipped at 10"}
"""Unit of the threshold under each error metric. The output of F5-TTS is log mel per unit time; MegaTTS 3 is compared
before its last projection, where units have no name."""
COMBINATIONS = ("worst", "mean")
"""Which error of several sentences decides a skip, where they are calibrated together."""


def conflict(setting: Setting) -> str | None:
    """Why DiTReducio cannot take part in ``setting``, or ``None``."""
    if setting.options.get("solver", "euler") != "euler":
        return "DiTReducio's strategy table has one column per Euler step; choose the Euler solver."
    return None


FEW_STEPS = 8
"""So many steps or fewer lie far apart."""


def remarks(options: Values, knobs: Values) -> tuple[str, ...]:
    """What makes it a risk."""
    if options["steps"] > FEW_STEPS:
        return ()
    return (
        f"At {options['steps']} steps neighbouring steps differ much: there is little to skip, and what is skipped is "
        "heard sooner. Listen before you trust it.",
    )


TECHNIQUE = Technique(
    name="ditreducio",
    title="DiTReducio",
    summary="Skips attention and feed-forward modules whose output repeats between steps or between branches.",
    paper=Paper(
        "DiTReducio: A Training-Free Acceleration for DiT-Based TTS via Progressive Calibration",
        "arXiv 2509.09748",
    ),
    families=("flow",),
    place=10,
    benches=(
        ("calibration", "engine.techniques.ditreducio.benches.calibration"),
        ("skipping", "engine.techniques.ditreducio.benches.skipping"),
        ("intelligibility", "engine.techniques.ditreducio.benches.intelligibility"),
    ),
    views=(
        "engine.techniques.ditreducio.views.temporal_redundancy",
        "engine.techniques.ditreducio.views.branch_redundancy",
        "engine.techniques.ditreducio.views.attention_similarity",
        "engine.techniques.ditreducio.views.module_latencies",
        "engine.techniques.ditreducio.views.ablation",
        "engine.techniques.ditreducio.views.tables",
    ),
    artefact_file=ArtefactFile(
        "table",
        "strategy table",
        "DiTReducio's strategy table, Paretone's or the official form",
        "engine.techniques.ditreducio.commands.table_file:with_table",
        ("branch_skip",),
    ),
    commands=tuple(
        f"engine.techniques.ditreducio.commands.{name}"
        for name in ("calibrate", "transfer", "export_table", "import_table")
    ),
    jobs=(
        Job(
            "calibrate",
            "Calibrating",
            "engine.techniques.ditreducio.requests:CalibrationRequest",
            "engine.techniques.ditreducio.jobs:calibrate",
        ),
        Job(
            "transfer",
            "Measuring the transfer",
            "engine.techniques.ditreducio.requests:TransferRequest",
            "engine.techniques.ditreducio.jobs:transfer",
        ),
    ),
    prepared_by="calibration",
    conflict=conflict,
    remarks=remarks,
    knobs=(
        Number(
            "threshold",
            "Threshold",
            "Largest error that a skip may cause in the model's output; layer l of L may use l/L of it.",
            default=0.10,
            symbol="δ",
            effect=Effect.AFTER_CALIBRATION,
            minimum=0.0,
            maximum=2.0,
            step=0.01,
        ),
        Choice(
            "metric",
            "Error metric",
            "How the error is measured: mean absolute error (the paper) or the official code's clipped relative error.",
            default="mae",
            effect=Effect.AFTER_CALIBRATION,
            values=METRICS,
            titles=("Mean absolute error (paper)", "Relative (official code)"),
        ),
        Choice(
            "compare",
            "Compared output",
            "What the error is measured on: the raw output of all branches (official) or the guided velocity.",
            default="branches",
            effect=Effect.AFTER_CALIBRATION,
            values=("branches", "guided"),
            titles=("All branches (official)", "Guided velocity"),
        ),
        Number(
            "marked",
            "Marked cells",
            "Share of layer-step cells with the most diagonal attention that are tried first (the check phase).",
            default=10.0,
            symbol="q",
            unit="%",
            effect=Effect.AFTER_CALIBRATION,
            minimum=0.0,
            maximum=100.0,
            step=1.0,
        ),
        Choice(
            "branch_skip",
            "Branch skipping saves",
            "Modules that branch skipping computes for the conditional branch only.",
            default="both",
            effect=Effect.AFTER_CALIBRATION,
            values=BRANCH_SKIP_VARIANTS,
            titles=(
                "Attention and feed-forward (paper)",
                "Attention only (official F5 code)",
            ),
        ),
        TEMPORAL,
    ),
)
