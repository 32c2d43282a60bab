"""Figures are values: checked when made, the same after pickling, and readable as a table."""

from __future__ import annotations

import csv
import io
import json
import math
import pickle

import pytest

from paretone.models.base import Utterance
from paretone.setting.knobs import Values
from paretone.views.figure import COLUMNS, Axis, Bars, BarSeries, Curve, Figure, HeatMap, Lines, Provenance
from tests.engine.small_speech import VOICE, setting

STEP, LAYER = Axis("Step"), Axis("Layer")
MAP = HeatMap("Map", STEP, LAYER, Axis("Similarity"), (1.0, 2.0), (1.0, 2.0), ((0.5, math.nan), (0.25, 1.0)))
KINDS = HeatMap("Kinds", STEP, LAYER, Axis("Action"), (1.0, 2.0), (1.0,), ((0.0, 1.0),), ("compute", "skip"))
LINES = Lines("Curves", Axis("δ"), Axis("Rate", "%"), (Curve("a", (0.1, 0.2), (5.0, 6.0), (4.0, 5.0), (6.0, 7.0)),))
BARS = Bars(
    "Bars", Axis("Table"), Axis("Time", "ms"), ("none", "δ = 1"), (BarSeries("b", (2.0, 1.0), notes=("x", "y")),)
)


def figure(*panels: object) -> Figure:
    made = Provenance(
        "Small", "0" * 64, setting(), (Utterance("One,\ntwo.", VOICE),), Values(count=2), "CPU", "machine", "2026-11-21"
    )
    return Figure("name", "Title", "Question?", "Paper, figure 1", panels, "What is to be seen.", made)


def table(of: Figure) -> list[dict[str, str]]:
    lines = [line for line in of.to_csv().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(io.StringIO("\n".join(lines))))


def test_every_value_is_a_line_of_the_table() -> None:
    rows = table(figure(MAP, KINDS, LINES, BARS))
    assert len(rows) == 4 + 2 + 2 + 2
    assert tuple(rows[0]) == COLUMNS
    assert rows[1] == {
        "panel": "Map",
        "series": "",
        "x": "2.0",
        "y": "1.0",
        "value": "",
        "low": "",
        "high": "",
        "note": "",
    }
    assert [row["value"] for row in rows if row["panel"] == "Kinds"] == ["compute", "skip"]
    curve = [row for row in rows if row["panel"] == "Curves"]
    assert [(float(row["x"]), float(row["value"]), float(row["low"]), float(row["high"])) for row in curve] == [
        (0.1, 5.0, 4.0, 6.0),
        (0.2, 6.0, 5.0, 7.0),
    ]
    assert [(row["x"], row["value"], row["note"]) for row in rows if row["panel"] == "Bars"] == [
        ("none", "2.0", "x"),
        ("δ = 1", "1.0", "y"),
    ]


def test_the_table_says_what_it_is() -> None:
    head = [line for line in figure(MAP, LINES).to_csv().splitlines() if line.startswith("#")]
    text = "\n".join(head)
    for said in ("Title", "Question?", "Paper, figure 1", "What is to be seen.", "seed 0", "steps 4", "count 2"):
        assert said in text
    assert "# panel Curves: x: δ; y: Rate (%)" in head
    assert "“One, two.” by noise" in text, "a text of two lines stays one comment"


def test_figures_can_be_sent_and_compared() -> None:
    one = figure(KINDS, LINES, BARS)
    assert pickle.loads(pickle.dumps(one)) == one
    assert hash(one) == hash(figure(KINDS, LINES, BARS))


def test_json_has_no_infinities() -> None:
    data = json.loads(json.dumps(figure(MAP).to_json(), allow_nan=False))
    assert data["rows"][1][4] is None
    assert data["provenance"]["setting"]["options"]["steps"] == 4


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: HeatMap("m", STEP, LAYER, STEP, (1.0,), (1.0,), ((1.0, 2.0),)),
        lambda: Curve("c", (1.0,), (1.0, 2.0)),
        lambda: Curve("c", (1.0,), (1.0,), notes=("a", "b")),
        lambda: Bars("b", STEP, LAYER, ("one",), (BarSeries("s", (1.0, 2.0)),)),
    ],
)
def test_parts_that_do_not_fit_are_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"different lengths|are not|has not"):
        wrong()
