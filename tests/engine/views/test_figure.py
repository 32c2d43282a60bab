"""Figures are values: checked when made, the same after pickling, and readable as a table."""

import csv
import json
import math
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.errors import Cancelled, SettingError
from paretone.models.base import Utterance
from paretone.models.catalogue import harvard_sentences, voice
from paretone.models.f5.adapter import F5Speech
from paretone.observer import Observer
from paretone.setting.knobs import Values, checked, defaults
from paretone.views import compute_view, views
from paretone.views.figure import COLUMNS, Axis, Bars, BarSeries, Curve, Figure, HeatMap, Lines, Provenance
from paretone.views.quality import judged_utterances
from tests.engine.small_speech import LAYERS, VOICE, setting
from tests.engine.views.viewing import QUICK, STEPS, computed, load, task, write_weights
from tests.workload import is_thorough

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


def test_every_value_is_a_line_of_the_table() -> None:
    lines = figure(MAP, KINDS, LINES, BARS).to_csv().splitlines()
    rows = list(csv.DictReader([line for line in lines if not line.startswith("#")]))
    assert len(rows) == 4 + 2 + 2 + 2
    assert tuple(rows[0]) == COLUMNS
    assert list(rows[1].values()) == ["Map", "", "2.0", "1.0", "", "", "", ""]
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
    data = json.loads(json.dumps(figure(MAP).to_json(), allow_nan=False))
    assert data["rows"][1][4] is None and data["provenance"]["setting"]["options"]["steps"] == 4
    one = figure(KINDS, LINES, BARS)
    assert pickle.loads(pickle.dumps(one)) == one and hash(one) == hash(figure(KINDS, LINES, BARS))


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


EVERY = [one.name for one in views() if "flow" in one.families and (is_thorough() or one.name != "ablation")]


@pytest.fixture
def model(tmp_path: Path) -> F5Speech:
    return load(write_weights(tmp_path))


class Interrupted(Observer):
    """Cancelled after so many reports of progress; counts the layers that are computed afterwards."""

    def __init__(self, model: F5Speech, after: int) -> None:
        self.left, self.layers_since = after, 0
        self.reported: list[tuple[int, int]] = []
        for index in range(LAYERS):
            model.backbone.block(index).attention.register_forward_hook(self.count)

    def count(self, *call: object) -> None:
        self.layers_since += self.left <= 0

    def check(self) -> None:
        if self.left <= 0:
            raise Cancelled

    def progress(self, done: int, total: int) -> None:
        self.check()
        self.reported.append((done, total))
        self.left -= 1


@pytest.mark.parametrize("name", EVERY)
def test_progress_rises_to_the_whole_and_a_view_is_cancelled_within_a_step(model: F5Speech, name: str) -> None:
    knobs = Values(QUICK.get(name, {}))
    stopped = Interrupted(model, 7 if name in QUICK else 1)
    with pytest.raises(Cancelled):
        compute_view(name, replace(task(model, stopped), knobs=knobs))
    assert stopped.layers_since <= LAYERS
    observer = Interrupted(model, 10**9)
    compute_view(name, replace(task(model, observer), knobs=knobs))
    done = [one for one, _ in observer.reported]
    assert done == sorted(done)
    assert len({total for _, total in observer.reported}) == 1
    assert 0.9 * observer.reported[-1][1] <= done[-1] <= observer.reported[-1][1]


def test_views_declare_knobs_that_pass_their_own_check() -> None:
    names = [one.name for one in views()]
    assert len(set(names)) == len(names)
    for one in views():
        knobs = one.knobs(22)
        assert checked(knobs, {}, one.title) == defaults(knobs)


def test_unknown_views_and_knobs_and_other_families_are_refused(model: F5Speech) -> None:
    with pytest.raises(SettingError, match="known views: temporal-redundancy"):
        compute_view("beauty", task(model))
    with pytest.raises(SettingError, match="First layer must lie between 1 and 3"):
        computed(model, "temporal-redundancy", first_layer=4)
    with pytest.raises(SettingError, match="one column per Euler step"):
        compute_view("temporal-redundancy", replace(task(model), setting=setting(STEPS, solver="midpoint")))
    model.info = replace(model.info, family="speech-lm")
    with pytest.raises(SettingError, match="load another model"):
        computed(model, "tables")


def test_the_selected_sentence_is_not_judged_for_something_may_be_calibrated_on_it() -> None:
    first, second, third = harvard_sentences()[:3]
    assert [one.text for one in judged_utterances(Utterance("Another sentence.", voice()), 2)] == [first, second]
    found = judged_utterances(Utterance(f" {first}", voice("bella")), 30)
    assert [one.text for one in found[:2]] == [second, third] and len(found) == 30
    assert {one.voice.id for one in found} == {"bella"}
