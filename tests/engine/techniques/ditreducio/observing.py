"""The published order of trials over errors that depend on every earlier decision, and an observer that keeps all.

That dependence is what makes tables at other thresholds uncertain, so it must be there when exactness is tested.
"""

import hashlib

import numpy as np

from paretone.errors import Cancelled
from paretone.observer import Observer, StepReport
from paretone.sampling.actions import SkipAction
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio import TECHNIQUE, record
from paretone.techniques.ditreducio.table import StrategyTable


class Recorder(Observer):
    """Remembers every report. With ``cancel_after`` it raises :class:`Cancelled` at that many checks."""

    def __init__(self, cancel_after: int | None = None) -> None:
        self.cancel_after = cancel_after
        self.checks = 0
        self.trials: list[record.Trial] = []
        self.steps: list[StepReport] = []
        self.statuses: list[str] = []
        self.progressed: list[tuple[int, int]] = []
        self.last_similarities: np.ndarray | None = None

    def check(self) -> None:
        self.checks += 1
        if self.cancel_after is not None and self.checks >= self.cancel_after:
            raise Cancelled

    def step(self, report: StepReport) -> None:
        self.steps.append(report)

    def status(self, text: str) -> None:
        self.statuses.append(text)

    def report(self, name: str, value: object) -> None:
        if isinstance(value, record.Similarities):
            self.last_similarities = value.values
        elif isinstance(value, record.Trial):
            self.trials.append(value)

    def progress(self, done: int, total: int) -> None:
        self.progressed.append((done, total))


LAYERS, STEPS = 5, 6


def compatibility(steps: int = STEPS, **other: object) -> Compatibility:
    """Compatibility of a table with this number of steps; ``other`` replaces single fields."""
    values = {"model": "f5-mini", "fingerprint": "0123456789abcdef" * 4, "variant": "v1"}
    sampling = {"solver": "euler", "steps": steps, "spacing": "uniform", "sway": -1.0, "guidance": 2.0}
    values |= {name: other.pop(name) for name in values if name in other}
    return Compatibility(**values, sampling=Values(sampling | other))


def calibrate(threshold: float, seed: int = 0, layers: int = LAYERS, steps: int = STEPS) -> record.CalibrationRecord:
    """Record of a calibration at ``threshold`` with errors drawn from ``seed``. An error has a part that only the cell
    decides and a part that changes with every skip accepted before."""
    world = np.random.default_rng(seed)
    similarities = world.uniform(0, 1, (layers, steps))
    base = world.lognormal(np.log(0.1), 0.8, (layers, steps, 3))
    cut = float(np.percentile(similarities, 80))
    rows = [[SkipAction.NONE] * steps for _ in range(layers)]
    trials: list[record.Trial] = []

    def try_cell(phase: str, step: int, layer: int, action: SkipAction) -> bool:
        history = hashlib.sha256(repr((seed, phase, step, layer, action, rows)).encode()).digest()
        error = float(base[layer, step, action] * (layer + 1) / layers * (0.7 + 0.6 * history[0] / 255))
        accepted = error < (layer + 1) / layers * threshold
        trials.append(record.Trial(phase, step, layer, action, error, accepted))
        if accepted:
            rows[layer][step] = action
        return accepted

    for step in range(1, steps):
        for layer in range(layers):
            if similarities[layer, step] >= cut:
                try_cell(record.PRE_CALIBRATION, step, layer, SkipAction.TS)
    for step in range(1, steps):
        for layer in range(layers):
            if rows[layer][step] is SkipAction.NONE and not try_cell(record.CALIBRATION, step, layer, SkipAction.TS):
                try_cell(record.CALIBRATION, step, layer, SkipAction.BS)
    words = f"calibrated at threshold {threshold:g}"
    table = StrategyTable(compatibility(steps), tuple(map(tuple, rows)), "both", words)
    knobs = Values({knob.name: knob.default for knob in TECHNIQUE.knobs}).replace(threshold=threshold)
    sentences = (record.Sentence("A sentence.", "anna"),)
    return record.CalibrationRecord(table, knobs, cut, tuple(trials), similarities, sentences, seed=seed)
