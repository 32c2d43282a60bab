"""The bench of DiTReducio's rivals searches knobs and compares distances."""

import json

import numpy as np
import pytest
import torch

from paretone import bench
from paretone.measure.verdicts import Way
from paretone.models import load_model
from paretone.models.catalogue import entry, voices
from paretone.setting.knobs import checked
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.techniques import technique
from paretone.techniques.ditreducio.rivals_bench import GUIDED_FIRST, SEARCHED, TABLES, Contender, Rival, compared
from paretone.techniques.ditreducio.skipping_bench import sample
from tests.workload import only_in_full, workload

pytestmark = pytest.mark.usefixtures("short_prompts")

WAY = Setting("f5-mini")


def contender(technique: str, target: float = 0.5) -> Contender:
    return Contender(technique, target, "", Way(f"{technique} at {target:g}", WAY))


def test_the_best_rival_at_half_counts() -> None:
    contenders = [*map(contender, (TABLES["reuse"], "one", "two", "three")), contender("one", 0.7)]
    shares = {one.way.title: one.target for one in contenders} | {"three at 0.5": 0.6}
    apart = {"DiTReducio": (0.2, 0.4), "one": (0.2, 0.2), "two": (0.05, 0.1), "three": (0.01, 0.01)}
    distances = {f"{name} at 0.5": np.array(one) for name, one in apart.items()} | {"one at 0.7": np.full(2, 0.01)}
    assert compared(contenders, shares, distances) == pytest.approx((4, 4, 4))
    for missed in ("DiTReducio at 0.5", "one at 0.5"):
        assert compared(contenders[:2], shares | {missed: 0.8}, distances) is None


@pytest.mark.parametrize("rival", [*SEARCHED, GUIDED_FIRST], ids=lambda one: one.title)
def test_a_rival_is_its_technique_with_the_knob_at_a_value(rival: Rival) -> None:
    value = 5 if rival is GUIDED_FIRST else 0.3
    used = rival.setting(WAY, value).technique(rival.technique)
    assert used.knobs[rival.knob] == value and checked(technique(rival.technique).knobs, used.knobs, rival.title)


@pytest.mark.parametrize("name", workload(["f5-mini", "megatts3-mini"], ["f5-mini"]))
def test_what_is_timed_is_what_the_model_samples(name: str) -> None:
    model = load_model(name, device="cpu")
    setting = Setting(name, entry(name).options_with(steps=2), seed=5)
    voice = voices(name)[0]
    with torch.inference_mode():
        script = scripted(model, "A short sentence.", voice, setting)
        timed = sample(model.calibration_target(script), None)
    torch.testing.assert_close(timed, model.sampling(script)(), atol=1e-5, rtol=0)


@only_in_full("speech")
def test_the_whole_bench(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["skipping", "--text", "Rice.", "--steps", "4", "--rounds", "2", "--thresholds", "0.5", "--json"]
    assert bench.main(command) == 0
    skipping, same = json.loads(capsys.readouterr().out)["rows"]
    assert skipping["TS"] + skipping["BS"] > 0 and skipping["log-mel distance"] > 0 and 0 < skipping["ops ratio"] < 0.9
    assert same["threshold"] == "A/A"
