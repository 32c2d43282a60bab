"""Reports: shares, bounds, launches, and their files."""

import json
import pickle
from dataclasses import replace

import pytest

from paretone.measure.roofline.ceilings import COMPUTE, LAUNCH
from paretone.measure.roofline.counts import Work
from paretone.measure.roofline.report import ATTENTION, HEAD, NORMS, REST, Component, Phase, RooflineReport, shares
from paretone.setting.setting import Setting
from tests.engine.measure.roofline.known import ceilings


def report() -> RooflineReport:
    components = (
        Component(ATTENTION, 8, Work(1e9, 1e3), "float32", 1, 0.02),
        Component(NORMS, 8, Work(1e3, 1e7), "float32", 2, 0.001),
    )
    phases = (
        Phase("evaluation", "Evaluations", 4, components, 0.05, 7, (3, 3)),
        Phase("decoder", "Decoder", 1, (Component(HEAD, 1, Work(1e3, 1e3), "float32", 50, 0.004),), None, 50),
    )
    return RooflineReport("small", "Small", Setting("small"), ceilings(), phases, "Text.", "voice")


def test_what_follows_from_a_measurement():
    made = report()
    assert made.measured == pytest.approx(4 * 0.05 + 0.004)
    assert made.floor == pytest.approx(8 * 0.01 + 8 * 0.001 + 1e-7)
    assert made.launches == 4 * 7 + 50
    assert made.by_component() == pytest.approx({ATTENTION: 0.16, NORMS: 0.008, HEAD: 0.004, REST: 0.032})
    bound = shares(made)
    assert sum(bound.values()) == pytest.approx(1)
    assert bound[COMPUTE] == pytest.approx(0.16 / 0.204) and bound[LAUNCH] == pytest.approx(0.004 / 0.204)
    rest = made.phases[0].rest
    assert rest.seconds == pytest.approx(0.05 - (0.16 + 0.008) / 4)
    assert rest.launches == pytest.approx(7 - 2 * 3)
    assert rest.bound(made.ceilings) == "" and rest.ratio(made.ceilings) is None


def test_launches_by_layer_are_said_of_every_layer():
    said = {(): "", (14, 14, 14): "14 per layer", (12, 14, 14, 14, 15): "12, 3 × 14, 15 by layer"}
    for layers, words in (said | {(9, 8): "9, 8 by layer"}).items():
        assert Phase("evaluation", "Evaluations", 1, (), layer_launches=layers).launches_by_layer == words


def test_a_rest_that_is_no_time_bounds_nothing():
    made = report()
    noise = replace(made, phases=(replace(made.phases[0], rest_range=(-0.01, 0.02)), made.phases[1]))
    rest = replace(made.phases[0], whole_seconds=0.04, rest_range=(-0.003, -0.001))
    saved = replace(made, phases=(rest, made.phases[1]))
    assert noise.rest_is_noise and not saved.rest_is_noise and not made.rest_is_noise
    for one in (noise, saved):
        bound = shares(one)
        assert bound["uncounted"] == 0 and sum(bound.values()) == pytest.approx(1)
        assert bound[COMPUTE] == pytest.approx(0.16 / 0.172)
    assert saved.by_component()[REST] == pytest.approx(-0.008), "it is shown all the same"
    assert noise.to_json()["phases"][0]["rest_seconds_range"] == [-0.01, 0.02]
    assert "within noise: between -40 and 80 ms" in noise.to_csv()


def test_a_report_crosses_to_a_front_end_and_to_files():
    made = report()
    assert pickle.loads(pickle.dumps(made)) == made
    data = json.loads(json.dumps(made.to_json(), allow_nan=False))
    assert [one["component"] for one in data["components"]] == [ATTENTION, NORMS, REST, HEAD]
    rows = [line for line in made.to_csv().splitlines() if not line.startswith("#")]
    assert len(rows) == 1 + 4 and rows[1].startswith("evaluation,attention,float32,8,")
