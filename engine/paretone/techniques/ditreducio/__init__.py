"""DiTReducio: skip outputs of a diffusion transformer that repeat from step to step and from branch to branch.

``table`` is the artefact, ``record`` the measurements of a calibration, ``calibration`` the three passes that make one,
``end_calibration`` ours for the end of the trajectory; ``preparation`` runs them on a loaded model. Application of a
table inside a backbone: :mod:`paretone.sampling.skipping`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from paretone.errors import ProfileError
from paretone.export.accounts import TABLE, Carried, Line, whole_line
from paretone.export.targets import Target, lacking
from paretone.figures.glyphs import Mark
from paretone.models.base import ModelInfo, SpeechModel, Utterance, flow_model
from paretone.models.declaration import Model
from paretone.observer import Observer
from paretone.sampling.actions import SkipAction
from paretone.setting.knobs import Choice, Effect, Values, amount, defaults
from paretone.setting.plan import FlowPlan, NotPrepared, Part, imported
from paretone.setting.setting import Published, Setting, UsedTechnique
from paretone.techniques import compatibility_of
from paretone.techniques.base import (
    ArtefactFile,
    ArtefactType,
    Conflict,
    Context,
    Job,
    Paper,
    Technique,
    require_euler,
    to_type,
)
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.techniques.ditreducio.table import (
    BRANCH_SKIP_VARIANTS,
    TEMPORAL,
    StrategyTable,
    check_profile,
    fixed_knobs,
)
from paretone.wording import percent

NAME = "ditreducio"
UNITS = {"mae": "units of the model's output", "relative": "relative, clipped at 10"}
"""Unit of the threshold under each error metric. The output of F5-TTS is log mel per unit time; MegaTTS 3 is compared
before its last projection, whose units have no name."""
COMPARED = ("branches", "guided", "combined", "combined_first")
COMBINATIONS = ("worst", "mean")
"""Combination of the errors of sentences that are calibrated together."""
THRESHOLD = amount(
    "threshold",
    "Threshold",
    "Largest error of the model's output that a skip may cause; layer l of L may use l/L of it. The published values "
    "(F5-TTS 0.05 to 0.30, MegaTTS 3 0.2 to 1.2) belong to the official code's relative error, not to the mean "
    "absolute one.",
    default=0.10,
    between=(0.0, 2.0),
    symbol="δ",
    effect=Effect.AFTER_CALIBRATION,
    step=0.01,
)
CHECK_PHASE = Choice(
    "check_phase",
    "Check phase",
    "Attention compared with the diagonal: the conditional branch's, scaled by the root of the whole width, or that of "
    "the first half of the branches (two of MegaTTS 3's three), scaled by the root of a head's width, in float64.",
    default="conditional",
    effect=Effect.AFTER_CALIBRATION,
    values=("conditional", "first_half"),
    titles=("Conditional branch (official F5 code)", "First two branches (official MegaTTS 3 code)"),
    later=True,
)
PUBLISHED, END = "published", "end"
OBJECTIVE = Choice(
    "objective",
    "Skips chosen by",
    "The error of their own step's output, up to the threshold (the paper), or their effect on the last state, under a "
    "budget of operations; threshold, metric, compared output, check phase and cells tried first then do not matter.",
    default=PUBLISHED,
    effect=Effect.AFTER_CALIBRATION,
    values=(PUBLISHED, END),
    titles=("Error of the step (paper)", "End of the trajectory (ours)"),
    later=True,
)
OPERATIONS = amount(
    "operations",
    "Operations left",
    "Budget of a calibration for the end of the trajectory, as a share of the baseline's operations.",
    default=50.0,
    between=(10.0, 100.0),
    unit="%",
    effect=Effect.AFTER_CALIBRATION,
    step=5.0,
    later=True,
)


_MADE_BY = "calibrate --table table.json"
ONE_COLUMN = "DiTReducio's strategy table has one column per Euler step"


def resolve(context: Context, knobs: Values, plan: FlowPlan) -> FlowPlan:
    require_sampling(context, plan)
    if plan.options["steps"] <= 8:
        plan = plan.noted(
            f"At {plan.options['steps']} steps, neighbouring steps differ much: little can be skipped, and skips are "
            "more audible. Listen before you trust it."
        )
    table = context.artefact
    if not isinstance(table, StrategyTable):
        raise NotPrepared(
            f"{TECHNIQUE.title} has no strategy table yet; calibrate first, or import one.",
            plan,
            to_type(_MADE_BY, context.info),
        )
    mismatch = table.compatibility.mismatch(context.compatibility(plan))
    if mismatch:
        raise ProfileError(f"The strategy table cannot be used here: {mismatch}. Calibrate again.")
    if table.layers != context.info.layers:
        raise ProfileError(
            f"The strategy table has {table.layers} layers, but {context.info.title} has {context.info.layers}."
        )
    evaluator = Part.of(f"{__name__}.evaluating:evaluators", table=table)
    plan = replace(plan, evaluator=evaluator, evaluated_share=table.ops_ratio)
    unused = table.count(SkipAction.BS) if context.info.guidance.branches(plan.options) == 1 else 0
    if not unused:
        return plan
    return plan.noted(
        f"{unused} cells of the strategy table skip branches; with one branch there is none to skip, so they compute "
        "and only temporal skipping saves."
    )


def idle(knobs: Values, plan: FlowPlan) -> str:
    return "its strategy table computes every module at every step; raise δ, or take more steps"


def require_sampling(context: Context, plan: FlowPlan) -> None:
    """Raise :class:`SettingError` for sampling without support for strategy tables."""
    require_euler(plan.options, ONE_COLUMN)
    if plan.stepper is not None:
        raise Conflict(f"{ONE_COLUMN}; do without {context.title_in('solver')}.", "solver")
    if plan.times is not None:
        raise Conflict(
            "DiTReducio's strategy tables belong to grids that sampler options make; do without "
            f"{context.title_in('grid')}.",
            "grid",
        )
    if plan.combining is not None:
        raise Conflict(
            "DiTReducio's strategy tables are calibrated with the model's own combination of branches; do without "
            f"{context.title_in('guidance:combining') or 'the technique that changes it'}.",
            "guidance:combining",
        )
    if plan.guidance.steps is not None:
        raise Conflict(
            "DiTReducio's strategy tables are calibrated with guidance at all steps, and their branch skips need all "
            "branches at every step; do without one of the two.",
            "guidance",
        )


def calibrates_alike(knobs: Values, other: Values) -> bool:
    """Whether calibrations with these knobs differ at most in the threshold, which a record can vary. Knobs missing in
    an older record have their defaults."""
    deciding = []
    for each in (knobs, other):
        given = defaults(TECHNIQUE.knobs).replace(**each)
        passed = ("operations",) if given["objective"] == PUBLISHED else ("metric", "compare", "check_phase", "marked")
        deciding.append({name: value for name, value in given.items() if name not in (THRESHOLD.name, *passed)})
    return deciding[0] == deciding[1]


def _published(
    model: str, models: tuple[str, ...], step: float, options: Values, compare: str, check_phase: str
) -> tuple[Published, ...]:
    """Columns T0 to T6 of table 1 for a model, by its official code of 2025: T0 is the baseline, each further adds
    ``step``."""
    knobs = Values(metric="relative", compare=compare, check_phase=check_phase, marked=10.0, branch_skip="both")
    return tuple(
        Published(
            f"T{place}",
            f"table 1, {model}",
            models,
            knobs.replace(threshold=round(place * step, 2), temporal="reuse", objective=PUBLISHED),
            options.replace(steps=32, sway=-1.0),
            main=place == 4,  # The paper recommends it.
            remark="Its δ are of the official code's relative error; the paper's text has the mean absolute one.",
        )
        for place in range(7)
    )


def ops_ratio_of(model: Model | ModelInfo) -> str:
    """Whose operations the ops ratio of a table counts: the ``model``'s, or the ``flow``'s after a language model."""
    return "model" if model.mel_flow is None else "flow"


_F5 = Values(guidance=2.0, solver="euler")
_MEGATTS3 = Values(intelligibility=1.6, similarity=2.5, overshoot=3.0)
TECHNIQUE = Technique(
    name=NAME,
    title="DiTReducio",
    summary="Skips attention and feed-forward modules whose output repeats between steps or between branches.",
    benefit="Skips what repeats from step to step",
    paper=Paper(
        "DiTReducio: A Training-Free Acceleration for DiT-Based TTS via Progressive Calibration", "arXiv 2509.09748"
    ),
    families=("flow", "language"),
    of_mel_flow=True,
    slot="skipping",
    place=10,
    mark=Mark("blue", "circle"),
    exports=__name__,
    study=__name__,
    benches=tuple((name, f"{__name__}.{name}_bench") for name in ("skipping", "intelligibility", "rivals")),
    views=(
        f"{__name__}.redundancy_views:TEMPORAL_REDUNDANCY",
        f"{__name__}.redundancy_views:BRANCH_REDUNDANCY",
        f"{__name__}.redundancy_views:ATTENTION_SIMILARITY",
        f"{__name__}.redundancy_views:ATTENTION_MAPS",
        f"{__name__}.threshold_views:MODULE_LATENCIES",
        f"{__name__}.threshold_views:ABLATION",
        f"{__name__}.threshold_views:TABLES",
        f"{__name__}.threshold_views:OBJECTIVES",
    ),
    artefact_file=ArtefactFile(
        "table",
        "strategy table",
        "DiTReducio's strategy table, Paretone's or the official form",
        f"{__name__}.table_commands:with_table",
        ("branch_skip",),
        _MADE_BY,
    ),
    commands=(
        f"{__name__}.calibrate_command",
        f"{__name__}.table_commands:TRANSFER",
        f"{__name__}.table_commands:EXPORT",
        f"{__name__}.table_commands:IMPORT",
    ),
    jobs=(
        Job(
            "calibrate",
            "Calibrating",
            f"{__name__}.record:CalibrationRequest",
            f"{__name__}.preparation:carry_out_calibration",
        ),
        Job(
            "transfer",
            "Measuring the transfer",
            f"{__name__}.record:TransferRequest",
            f"{__name__}.preparation:carry_out_transfer",
        ),
    ),
    published=(
        *_published("F5-TTS", ("F5TTS_v1_Base", "F5TTS_Base"), 0.05, _F5, "branches", "conditional"),
        *_published("MegaTTS 3", ("MegaTTS3",), 0.2, _MEGATTS3, "combined", "first_half"),
    ),
    resolve=resolve,
    idle=idle,
    artefact=ArtefactType(
        "table", StrategyTable, StrategyTable.from_json, StrategyTable.to_json, check_profile, fixed_knobs
    ),
    knobs=(
        THRESHOLD,
        Choice(
            "metric",
            "Error metric",
            "Mean absolute error (the paper) or the official code's clipped relative error, to which the published δ "
            "belong.",
            default="mae",
            effect=Effect.AFTER_CALIBRATION,
            values=tuple(UNITS),
            titles=("Mean absolute error (paper)", "Relative (official code)"),
        ),
        Choice(
            "compare",
            "Compared output",
            "Output whose error counts: that of all branches (official for F5-TTS), the guided velocity (ours), or, as "
            "the official code does for MegaTTS 3, u + 2.5 (c − u) + 1.6 (c − c_txt) of its branches before the last "
            "projection: in both passes (2025), or in pre-calibration only, followed by all branches (2026).",
            default="branches",
            effect=Effect.AFTER_CALIBRATION,
            values=COMPARED,
            titles=(
                "All branches (official F5 code)",
                "Guided velocity (ours)",
                "Combined branches (official MegaTTS 3 code, 2025)",
                "Combined, then all branches (official MegaTTS 3 code, 2026)",
            ),
        ),
        amount(
            "marked",
            "Cells tried first",
            "Share of the layer-step cells that are tried first: those with the most diagonal attention (check phase).",
            default=10.0,
            between=(0.0, 100.0),
            symbol="q",
            unit="%",
            effect=Effect.AFTER_CALIBRATION,
            step=1.0,
        ),
        Choice(
            "branch_skip",
            "Branch skipping saves",
            "Modules that branch skipping computes only for the conditional branch. The official code of 2025 spares "
            "both, for MegaTTS 3 that of 2026 too; for F5-TTS that of 2026 computes every feed-forward.",
            default="both",
            effect=Effect.AFTER_CALIBRATION,
            values=BRANCH_SKIP_VARIANTS,
            titles=(
                "Attention and feed-forward (paper, official code of 2025)",
                "Attention only (official F5 code of 2026)",
            ),
        ),
        CHECK_PHASE,
        TEMPORAL,
        OBJECTIVE,
        OPERATIONS,
    ),
)


def preparer() -> Callable[[SpeechModel, Sequence[Utterance], Setting, Observer], StrategyTable]:
    """Calibrates, unless an earlier calibration gives exactly the same table at another threshold."""
    records: list[CalibrationRecord] = []

    def prepare(
        model: SpeechModel, sentences: Sequence[Utterance], setting: Setting, observer: Observer
    ) -> StrategyTable:
        flow, used = flow_model(model, "Calibrating"), setting.technique(NAME)
        assert used is not None
        compatibility = compatibility_of(flow.info, setting, of_flow=True)
        threshold = float(used.knobs["threshold"])
        for record in records:
            alike = record.knobs.replace(threshold=threshold) == used.knobs and record.seed == setting.seed
            if alike and not record.table.compatibility.mismatch(compatibility):
                derived = record.derive(threshold)
                if derived.exact:
                    return derived.table
        # Imported by name, because it imports torch.
        records.append(imported(f"{__name__}.preparation:calibrate_model")(flow, sentences, setting, observer))
        return records[-1].table

    return prepare


def carried(target: Target, entry: UsedTechnique, artefact: StrategyTable | None) -> Carried:
    """Carry the strategy table, unless it uses forecasts."""
    if TABLE not in target.takes or artefact is None:
        return lacking(target, entry)
    if artefact.temporal != TEMPORAL.default:
        reason = (
            f"the strategy table was calibrated with forecasts, which {target.program} cannot run; calibrate without "
            "them"
        )
        return Carried(drops=(whole_line(entry, reason),))
    said = f"{percent(artefact.skipped_share)} of the layers' work units skipped"
    actions = [[action.name for action in row] for row in artefact.actions]
    return Carried(
        (Line("Strategy table", said, "carried out block by block, step by step"),),
        given={"table": {"branch_skip": artefact.branch_skip, "actions": actions}},
    )
