"""The bench of DiTReducio's rivals searches knobs and compares distances."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from paretone import bench
from paretone.bench import bundled
from paretone.measure.verdicts import Way
from paretone.models import load_model
from paretone.models.catalogue import entry, voices
from paretone.setting.knobs import checked
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.techniques import technique
from paretone.techniques.ditreducio.rivals_bench import (
    COUNTED_RIVALS,
    FOR_END,
    SEARCHED,
    TABLES,
    Contender,
    Rival,
    _threshold_for,
    compared,
)
from paretone.techniques.ditreducio.skipping_bench import sample
from tests.prompts import short_prompts  # noqa: F401
from tests.workload import workload

pytestmark = pytest.mark.usefixtures("short_prompts")

WAY = Setting("f5-mini")


def contender(technique: str, target: float = 0.5) -> Contender:
    return Contender(technique, target, "", Way(f"{technique} at {target:g}", WAY))


def test_the_best_rival_at_half_counts() -> None:
    contenders = [
        contender(TABLES["reuse"]),
        contender("one"),
        contender("two"),
        contender("three"),
        contender("one", 0.7),
    ]
    shares = {one.way.title: one.target for one in contenders} | {"three at 0.5": 0.6}
    distances = {
        "DiTReducio at 0.5": np.array([0.2, 0.4]),
        "one at 0.5": np.array([0.2, 0.2]),
        "two at 0.5": np.array([0.05, 0.1]),
        "three at 0.5": np.array([0.01, 0.01]),
        "one at 0.7": np.array([0.01, 0.01]),
    }
    found = compared(contenders, shares, distances)
    assert found is not None
    low, middle, high = found
    assert low == pytest.approx(4) and middle == pytest.approx(4) and high == pytest.approx(4)


def test_other_forms_of_ditreducio_are_no_rivals() -> None:
    names = (TABLES["reuse"], TABLES["forecast"], FOR_END, "one")
    contenders = [contender(name) for name in names]
    shares = {one.way.title: one.target for one in contenders}
    distances = {f"{name} at 0.5": np.array([at + 1.0]) for at, name in enumerate(names)}
    for at, name in enumerate(names[:-1]):
        found = compared(contenders, shares, distances, name)
        assert found is not None and found[1] == pytest.approx((at + 1) / len(names))


def test_nothing_is_compared_that_missed_its_share() -> None:
    contenders = [contender(TABLES["reuse"]), contender("one")]
    distances = {one.way.title: np.array([0.1]) for one in contenders}
    for missed in contenders:
        shares = {one.way.title: 0.5 for one in contenders} | {missed.way.title: 0.8}
        assert compared(contenders, shares, distances) is None


def test_the_threshold_is_the_nearest_on_the_way() -> None:
    asked: list[float] = []

    def share(threshold: float) -> float:
        asked.append(threshold)
        return 1 - round(threshold, 1) / 2

    found = _threshold_for(0.7, share, 0.0, 2.0, trials=8)
    assert share(found) == min((share(one) for one in asked[:8]), key=lambda one: abs(one - 0.7)) == 0.7
    assert len(asked[:8]) == 8


@pytest.mark.parametrize("rival", [*SEARCHED, *COUNTED_RIVALS], ids=lambda one: one.title)
def test_a_rival_is_its_technique_with_the_knob_at_a_value(rival: Rival) -> None:
    value = 5 if rival in COUNTED_RIVALS else 0.3
    used = rival.setting(WAY, value).technique(rival.technique)
    assert used.knobs[rival.knob] == value
    assert checked(technique(rival.technique).knobs, used.knobs, rival.title)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f5-mini", "megatts3-mini"])
def test_what_is_timed_is_what_the_model_samples(name: str) -> None:
    model = load_model(name, device="cpu")
    setting = Setting(name, entry(name).options_with(steps=2), seed=5)
    voice = voices(name)[0]
    with torch.inference_mode():
        script = scripted(model, "A short sentence.", voice, setting)
        timed = sample(model.calibration_target(script), None)
    torch.testing.assert_close(timed, model.sampling(script)(), atol=1e-5, rtol=0)


@pytest.mark.slow
def test_the_whole_bench(capsys: pytest.CaptureFixture[str]) -> None:
    steps, text = workload("4", "3"), workload(bundled.SENTENCE, "Rice.")
    command = ["skipping", "--text", text, "--steps", steps, "--rounds", "2", "--thresholds", "0.5", "--json"]
    assert bench.main(command) == 0
    data = json.loads(capsys.readouterr().out)
    skipping, same = data["rows"]
    assert skipping["TS"] + skipping["BS"] > 0
    assert skipping["log-mel distance"] > 0
    assert 0 < skipping["ops ratio"] < 0.9
    assert same["threshold"] == "A/A"
