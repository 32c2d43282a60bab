"""Strategy tables over a row of thresholds, as several views show them. Torch-free at import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from paretone.setting.knobs import Choice, Effect, Knob, Number, Values
from paretone.techniques import compatibility_of
from paretone.techniques.ditreducio.record import CalibrationRecord
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.views.view import ProgressStage, Stages, Task

CALIBRATED, PREDICTED = "calibrated", "predicted"


def threshold_knobs(count: int = 6, tables: str = PREDICTED) -> tuple[Knob, ...]:
    """Which thresholds; ``count`` and ``tables`` are their defaults. The paper has six up to 0.3 for F5-TTS, in the
    unit of its relative error."""
    return (
        Number(
            "largest",
            "Largest threshold",
            "Thresholds are spaced evenly up to this one.",
            default=0.30,
            symbol="δ",
            minimum=0.01,
            maximum=2.0,
            effect=Effect.NEXT_VIEW,
            step=0.05,
        ),
        Number(
            "count",
            "Thresholds",
            "Number of thresholds.",
            default=count,
            effect=Effect.NEXT_VIEW,
            minimum=1,
            maximum=12,
            whole=True,
        ),
        Choice(
            "tables",
            "Tables",
            "Calibrate at every threshold, or once at the smallest and predict the others: faster, less exact.",
            default=tables,
            effect=Effect.NEXT_VIEW,
            values=(CALIBRATED, PREDICTED),
            titles=("Calibrated", "Predicted"),
        ),
    )


def thresholds(knobs: Values) -> tuple[float, ...]:
    """The thresholds, ascending."""
    count = int(knobs["count"])
    return tuple(round(float(knobs["largest"]) * (index + 1) / count, 6) for index in range(count))


@dataclass(frozen=True)
class Calibrations:
    """Tables by threshold, and how they came about."""

    tables: dict[float, StrategyTable]
    exact: int
    """Number of tables that equal a calibration at their threshold."""

    @property
    def words(self) -> str:
        """Sentence on the exactness of the tables."""
        if self.exact == len(self.tables):
            return "Every table is calibrated at its threshold."
        return f"{len(self.tables) - self.exact} of the {len(self.tables)} tables are predicted from one calibration."


def calibration_units(layers: int, steps: int) -> int:
    """Layer evaluations of one calibration, about."""
    return 3 * steps * layers + (steps - 1) * layers * (layers + 1) // 2


def calibrations_needed(task: Task) -> int:
    """Number of calibrations that :func:`calibrate_all` runs."""
    if task.knobs["tables"] == CALIBRATED:
        return int(task.knobs["count"])
    return 0 if record_at_hand(task) is not None else 1


def record_at_hand(task: Task) -> CalibrationRecord | None:
    """The task's calibration, if it was made for this model, sampling and knobs, whatever its threshold."""
    from paretone.techniques import ditreducio
    from paretone.techniques.ditreducio.preparation import knobs_of

    record = next((one for one in task.records if isinstance(one, CalibrationRecord)), None)
    if record is None or record.table.compatibility.mismatch(compatibility_of(task.flow.info, task.setting)):
        return None
    wanted = knobs_of(task.setting).replace(objective=ditreducio.PUBLISHED)
    return record if ditreducio.calibrates_alike(record.knobs, wanted) else None


def calibrate_all(
    task: Task,
    work: Stages,
    units: int,
    calibrate: Callable[[float, ProgressStage], CalibrationRecord],
    title: str = "",
    record: CalibrationRecord | None = None,
) -> Calibrations:
    """Tables at all thresholds of the task's knobs. ``calibrate`` makes one calibration, of ``units``; ``record`` is
    one that spares it where tables are predicted."""
    wanted = thresholds(task.knobs)

    def made(threshold: float) -> CalibrationRecord:
        return calibrate(threshold, work.part(units, f"{title}Calibrating at threshold {threshold:g}"))

    if task.knobs["tables"] == CALIBRATED:
        return Calibrations({one: made(one).table for one in wanted}, len(wanted))
    record = record or made(wanted[0])
    derived = {one: record.derive(one) for one in wanted}
    return Calibrations(
        {one: each.table for one, each in derived.items()}, sum(each.exact for each in derived.values())
    )


def calibrate_on_task(task: Task) -> Callable[[float, ProgressStage], CalibrationRecord]:
    """Calibrates as published on the task's sentence under DiTReducio's knobs in its setting, but for the threshold."""
    from paretone.setting.setting import UsedTechnique
    from paretone.techniques import ditreducio
    from paretone.techniques.ditreducio.preparation import calibrate_model, knobs_of

    knobs = knobs_of(task.setting).replace(objective=ditreducio.PUBLISHED)

    def calibrate(threshold: float, observer: ProgressStage) -> CalibrationRecord:
        used = UsedTechnique(ditreducio.TECHNIQUE.name, knobs.replace(threshold=threshold))
        return calibrate_model(task.model, [task.utterance], task.setting.with_technique(used), observer)

    return calibrate


def with_table(task: Task, threshold: float, table: StrategyTable) -> Task:
    """The task with DiTReducio used under ``table``."""
    from paretone.setting.setting import UsedTechnique
    from paretone.techniques import ditreducio
    from paretone.techniques.ditreducio.preparation import knobs_of

    knobs = knobs_of(task.setting).replace(threshold=threshold)
    used = UsedTechnique(ditreducio.TECHNIQUE.name, knobs, table.fingerprint)
    return replace(task, setting=task.setting.with_technique(used))
