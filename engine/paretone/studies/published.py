"""Published results, as ratios to their own baselines, from ``resources/published.toml``. Torch-free."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from paretone.paths import resource

_METRICS = {
    "rtf": "real_time_factor",
    "first_audio_ms": "first_audio_seconds",
    "ops_ratio": "ops_ratio",
    "wer": "word_error_rate",
    "sim": "speaker_similarity",
    "mos": "mos",
    "utmos": "utmos",
}
"""The fields of a point by the names of :mod:`paretone.measure.metrics`; ``mos`` is in no study."""


@dataclass(frozen=True)
class PublishedPoint:
    """One row of a paper's table."""

    paper: str
    model: str
    label: str
    technique: str
    """The name of the technique that it is of, or ``""``."""
    baseline: bool
    """Whether the others of its series are measured against it."""
    ratios: Mapping[str, float]
    """Each metric over the baseline's; ``speed_up`` is the baseline's RTF over its own (without RTFs: of first
    audio)."""
    values: Mapping[str, float] = field(repr=False)
    """As published: word error rates in percent, first audio in milliseconds."""
    source: str = ""
    hardware: str = ""
    data: str = ""
    rtf: str = ""
    """Parts counted by the paper's real-time factor."""


@lru_cache(maxsize=1)
def published() -> tuple[PublishedPoint, ...]:
    """All of them, series by series, the baseline first."""
    data = tomllib.loads(resource("published.toml").read_text(encoding="utf-8"))
    found = []
    for series in data["series"]:
        more = {name: series[name] for name in ("paper", "model", "technique", "source", "hardware", "data", "rtf")}
        first = _values(series["points"][0])
        for index, point in enumerate(series["points"]):
            values = _values(point)
            ratios = {_METRICS[name]: value / first[name] for name, value in values.items()}
            ratios["speed_up"] = (
                1.0 / ratios["real_time_factor" if "real_time_factor" in ratios else "first_audio_seconds"]
            )
            found.append(
                PublishedPoint(label=point["label"], baseline=index == 0, ratios=ratios, values=values, **more)
            )
    return tuple(found)


def _values(point: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(point[name]) for name in _METRICS if name in point}
