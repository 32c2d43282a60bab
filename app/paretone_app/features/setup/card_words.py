"""What a technique's card says: whether it applies, and what it gained. No widgets."""

from __future__ import annotations

from paretone.measure.metrics import metric
from paretone.studies.gains import Gain
from paretone.techniques import find
from paretone.techniques.base import Technique
from paretone.wording import listed
from paretone_app.numbers import fixed
from paretone_app.state.availability import Applicability, Fit
from paretone_app.state.differences import first_value

NOT_MEASURED = "not measured here yet"
_FIRST = {"calibration": "Switch it on, then calibrate", "training": "Train it first"}


def fit_words(technique: Technique, found: Applicability, little: str) -> str:
    """Whether the technique applies here, or why not, in a few words or a sentence without its full stop; ``little``:
    why it gains little, if it does."""
    if found.fit is Fit.APPLIES:
        words = little.rstrip(".") or "Applies here"
    elif found.fit is Fit.EXCLUDED and found.others:
        words = f"Not with {listed(one.partition(' (')[0] for one in found.others)}"
    elif found.fit is Fit.UNPREPARED and technique.prepared_by:
        words = _FIRST[technique.prepared_by]
    else:
        words = found.why.rstrip(".")
    return words


def gain_words(gain: Gain | None) -> str:
    """The last measured gain, such as ``1.85× as fast (δ = 0.1)``."""
    if gain is None:
        return NOT_MEASURED
    value = first_value(gain.entry)
    return f"{_ratio_words(gain)}{f' ({value})' if value else ''}"


def _ratio_words(gain: Gain) -> str:
    """The ratio in words."""
    declared = find(gain.entry.technique)
    sooner = declared is not None and metric(declared.improves).name == "first_audio_seconds"
    if gain.ratio >= 1:
        return f"first audio {fixed(gain.ratio, 2)}× sooner" if sooner else f"{fixed(gain.ratio, 2)}× as fast"
    return f"first audio {fixed(1 / gain.ratio, 2)}× later" if sooner else f"{fixed(1 / gain.ratio, 2)}× slower"


def gain_details(gain: Gain | None) -> str:
    """Where the gain is from, in sentences."""
    if gain is None:
        return "Make a baseline and a take with this technique to measure what it gains on this machine."
    value = first_value(gain.entry)
    others = ", ".join(found.title for name in gain.others if (found := find(name)) is not None)
    pairs = "1 pair of takes" if gain.pairs == 1 else f"{gain.pairs} pairs of takes"
    parts = (
        f"{_ratio_words(gain)[0].upper()}{_ratio_words(gain)[1:]}",
        f" (95 % interval {fixed(gain.interval[0], 2)} to {fixed(gain.interval[1], 2)})" if gain.interval else "",
        f" with {value}" if value else "",
        f", on top of {others}" if others else "",
        f": the median of the study “{gain.study}”, {pairs}" if gain.study else f": {pairs} of the same text",
        f", on this machine, {gain.created[:10]}.",
    )
    return "".join(parts)
