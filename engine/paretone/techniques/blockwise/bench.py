"""Gain of a masked model's blocks: full latency over time to first audio, and the loss of quality.

All ways speak the same two sentences as one utterance, in the same rounds. The full latency is that of the same engine,
exact savings included, on the whole canvas; what is heard first in blocks is final and as loud as the rest. Reported
with it: waits of a playback that begins with the first piece, and word errors and timbre of single sentences
(:mod:`paretone.bench.masked`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from paretone.bench import bundled, masked
from paretone.bench.bundled import used
from paretone.bench.masked import judged
from paretone.bench.report import Report
from paretone.measure.timing import interval
from paretone.measure.verdicts import ORIGINAL
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements
from paretone.techniques.blockwise import TECHNIQUE

NAME = "omnivoice-first-audio"
WHOLE, SENTENCES, BLOCKS = "whole canvas", "sentence by sentence", "blockwise"
"""The second equals the first on single sentences, on which the judges listen."""
TEXT_COMPUTED = "blockwise, text and reference at every step"
WORD_ERRORS = 0.03
"""Allowed increase of the word error rate."""
DEFINITION = (
    "Seconds until all of an utterance of two sentences is there on the whole canvas, over the seconds until the first "
    "audio is there in blocks; wall time, median of paired, interleaved rounds."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    masked.add_arguments(parser, rounds=20)
    bundled.add_listening_arguments(parser, sentences=10)
    for knob in TECHNIQUE.knobs:
        if knob.name != "adaptive":
            parser.add_argument(f"--{knob.name.replace('_', '-')}", type=int, help=f"{knob.title}; else the usual")


def run(arguments: argparse.Namespace) -> Report:
    model = masked.loaded(arguments)
    ways = _ways(arguments)
    heard = masked.taken(model, ways, arguments)
    listened = {name: way for name, way in ways.items() if name != SENTENCES}
    said = judged(model, listened, bundled.heard_sentences(arguments), bundled.heard_voices(arguments))
    pairs = zip(heard[WHOLE], heard[BLOCKS], strict=True)
    top = interval([whole.seconds / blocks.first_audio_seconds for whole, blocks in pairs])
    rows = [_row(name, found) for name, found in heard.items()]
    if said:
        said[SENTENCES] = said[WHOLE]
        for row in rows:
            spoken = said[str(row["way"])]
            within = spoken["word error rate"] - said[WHOLE]["word error rate"] <= WORD_ERRORS
            row |= {**spoken, "within 3 points": "yes" if within else "no"}
        rows.insert(0, {"way": ORIGINAL, **said[ORIGINAL]})
    return Report.of(NAME, top, DEFINITION, rows)


def _ways(arguments: argparse.Namespace) -> dict[str, Setting]:
    plain = bundled.setting(arguments)
    names = (knob.name for knob in TECHNIQUE.knobs if knob.name != "adaptive")
    knobs = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    return {
        WHOLE: plain,
        SENTENCES: plain.with_technique(used("sentencewise")),
        BLOCKS: plain.with_technique(UsedTechnique(TECHNIQUE.name, Values(knobs))),
        TEXT_COMPUTED: plain.with_technique(UsedTechnique(TECHNIQUE.name, Values(knobs, text_every=1))),
    }


def _row(name: str, found: Sequence[Measurements]) -> dict[str, object]:
    row: dict[str, object] = {"way": name}
    first, whole = [one.first_audio_seconds for one in found], [one.seconds for one in found]
    for what, values in (("first audio", first), ("whole", whole)):
        row |= {f"{what} p50 (s)": _share(values, 50), f"{what} p90 (s)": _share(values, 90)}
    pauses = [one.pause_seconds or 0.0 for one in found]
    return row | {
        "playback waits p50 (s)": _share(pauses, 50),
        "longest (s)": max(pauses),
        "takes that wait": f"{sum(one > 0 for one in pauses)} of {len(pauses)}",
        "longest gap (s)": max(one.largest_gap_seconds for one in found),
        "real-time factor": _share([one.real_time_factor for one in found], 50),
        "forwards per second": sum(one.evaluations for one in found) / sum(whole),
    }


def _share(values: list[float], percent: float) -> float:
    return float(np.percentile(values, percent))
