from __future__ import annotations

import json

import pytest
import torch

from paretone import bench
from paretone.bench import bundled
from paretone.models import load_model
from paretone.models.catalogue import entry, voices
from paretone.setting.setting import Setting
from paretone.speaking import scripted
from paretone.techniques.ditreducio.skipping_bench import sample
from tests.prompts import short_prompts  # noqa: F401
from tests.workload import workload

pytestmark = pytest.mark.usefixtures("short_prompts")


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
