"""A small calibration, as the engine would have recorded it."""

import numpy as np

from paretone.models.catalogue import entry
from paretone.sampling.actions import SkipAction
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values, defaults
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio.record import CALIBRATION, CalibrationRecord, Sentence, Trial
from paretone.techniques.ditreducio.table import StrategyTable

LAYERS, STEPS = 3, 4


def compatibility(steps: int = STEPS, model: str = "f5-mini") -> Compatibility:
    """Compatibility of the small model's tables at the application's default options."""
    guidance = entry("f5-mini").options_with()["guidance"]
    sampling = Values(solver="euler", steps=steps, spacing="epss", sway=-1.0, guidance=guidance)
    return Compatibility(model, "0" * 64, "small", sampling)


def record(
    threshold: float = 0.1, created: str = "2026-11-21T10:00:00+00:00", steps: int = STEPS, model: str = "f5-mini"
) -> CalibrationRecord:
    """One trial on every cell; errors grow with step and layer, and those under the bound were accepted."""
    trials, rows = [], []
    for layer in range(LAYERS):
        row = [SkipAction.NONE]
        for step in range(1, steps):
            error = 0.02 * step * (layer + 1)
            accepted = error < (layer + 1) / LAYERS * threshold
            trials.append(Trial(CALIBRATION, step, layer, SkipAction.TS, error, accepted))
            row.append(SkipAction.TS if accepted else SkipAction.NONE)
        rows.append(tuple(row))
    similarities = np.full((LAYERS, steps), 0.5)
    similarities[0, 0] = np.nan
    knobs = Values({**defaults(ditreducio.TECHNIQUE.knobs), "threshold": threshold})
    table = StrategyTable(compatibility(steps, model), tuple(rows), "both", f"calibrated at threshold {threshold:g}")
    return CalibrationRecord(
        table,
        knobs,
        0.9,
        tuple(trials),
        similarities,
        (Sentence("A text.", "anna", 100, 50),),
        seed=7,
        created=created,
        machine="a machine",
    )
