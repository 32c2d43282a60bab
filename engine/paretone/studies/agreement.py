"""Whether judges agree with listeners: predictions for a study's settings compared with the results of
blind tests. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paretone.figures.svg import escape
from paretone.measure.metrics import HIGHER, JUDGED, LOWER, NEITHER, Metric, metric
from paretone.studies.results import Results, SettingResult
from paretone.studies.wording import figure_text, setting_title

FEWEST = 4
"""Settings that a rank correlation takes: of three, one in six orders agrees by chance."""
METHODS = {
    "mushra": ("MUSHRA (0 to 100)", HIGHER),
    "abx": ("ABX, share of right answers (0.5: no difference heard)", LOWER),
    "ccr": ("CMOS against the baseline (-3 to 3)", HIGHER),
    "preference": ("preference over the baseline (-1 to 1)", HIGHER),
}
"""Methods of listening tests: their titles, and which end is better."""


@dataclass(frozen=True)
class Listened:
    """What listeners made of one setting, with a 95 % interval."""

    setting: str
    """Its key in the study."""
    method: str
    """One of :data:`METHODS`."""
    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Agreement:
    """How a metric orders the settings that listeners heard, compared with how they order them."""

    metric: str
    method: str
    correlation: float
    """Spearman's rank correlation, signed so that 1 is full agreement."""
    settings: int


def agreements(results: Results, listened: Sequence[Listened]) -> tuple[Agreement, ...]:
    """The rank correlation of every judged metric with every method, if both know four settings or more that differ."""
    found = []
    for method, (_, better) in METHODS.items():
        heard = {one.setting: one.mean for one in listened if one.method == method}
        for one in _predicted(results):
            pairs = [
                (setting.figures[one.name].value, heard[setting.key])
                for setting in results.settings
                if one.name in setting.figures and setting.key in heard
            ]
            if len(pairs) < FEWEST:
                continue
            said, told = (np.array(column) for column in zip(*pairs, strict=True))
            value = rank_correlation(said, told)
            if value is not None:
                found.append(Agreement(one.name, method, value if one.better == better else -value, len(pairs)))
    return tuple(found)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float | None:
    """Spearman's rank correlation of two columns (n,), with mean ranks for ties; ``None`` if all of one are equal."""
    one, other = _ranks(first), _ranks(second)
    if not one.std() or not other.std():
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]


def _predicted(results: Results) -> list[Metric]:
    known = {name for one in results.settings for name in one.figures}
    return [one for one in JUDGED if one.name in known and one.better != NEITHER]


def agreement_page(results: Results, listened: Sequence[Listened]) -> list[str]:
    """The section of a report, as HTML; nothing if no setting of the study was listened to."""
    settings = {one.key: one for one in results.settings}
    shown = [one for one in listened if one.setting in settings and one.method in METHODS]
    if not shown:
        return []
    predicted = _predicted(results)
    parts = ["<h2>Predictions and listeners</h2>"]
    for method, (title, _) in METHODS.items():
        mine = [one for one in shown if one.method == method]
        if mine:
            heads = "".join(f"<th>{escape(one.label)}</th>" for one in predicted)
            rows = "".join(_row(settings[one.setting], one, predicted) for one in mine)
            head = f"<tr><th></th><th>Setting</th><th>{escape(title)}</th><th>Answers</th>{heads}</tr>"
            parts.append(f'<div class="wide"><table>{head}{rows}</table></div>')
    found = agreements(results, shown)
    lines = [
        f"{metric(one.metric).title} and {METHODS[one.method][0].partition(' (')[0]} order {one.settings} settings "
        f"with a rank correlation of {one.correlation:.2f} (1: alike; 0: unrelated)."
        for one in found
    ]
    if not lines:
        lines = [f"A rank correlation takes {FEWEST} settings or more that were both judged and listened to."]
    lines.append("With few settings this is uncertain; where listeners and a judge differ, believe the listeners.")
    return [*parts, *(f"<p>{escape(line)}</p>" for line in lines)]


def _row(setting: SettingResult, one: Listened, predicted: Sequence[Metric]) -> str:
    cells = "".join(f"<td>{escape(figure_text(setting.figures.get(each.name)))}</td>" for each in predicted)
    heard = f"{one.mean:.3g} ({one.low:.3g}–{one.high:.3g})"
    return f"<tr><td></td><td>{escape(setting_title(setting))}</td><td>{heard}</td><td>{one.n}</td>{cells}</tr>"
