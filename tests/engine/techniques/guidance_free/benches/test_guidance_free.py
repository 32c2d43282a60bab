from __future__ import annotations

import json

import pytest

from paretone import bench
from paretone.bench import bundled
from paretone.errors import PlainError
from paretone.measure.intelligibility import WordErrors
from paretone.models.base import WeightSet
from paretone.models.catalogue import entry
from paretone.setting.setting import Setting
from paretone.techniques.guidance_free.bench import guidance_free, guided, paired_difference
from tests.judges import only_words  # noqa: F401
from tests.prompts import short_prompts  # noqa: F401
from tests.workload import workload

pytestmark = pytest.mark.usefixtures("short_prompts", "only_words")

MODEL = "f5-mini"


def _errors(*edits: int) -> WordErrors:
    return WordErrors(edits, (8,) * len(edits), ("",) * len(edits))


def test_the_difference_is_paired_by_sentence():
    one, other = [_errors(0, 1, 0), _errors(2, 0)], [_errors(1, 1, 0), _errors(2, 1)]
    more, low, high = paired_difference(one, other)
    assert more == pytest.approx(2 / 40)
    assert 0 <= low <= more <= high
    assert paired_difference(one, one) == (0, 0, 0)


def test_both_settings_start_from_the_same_noise_and_differ_in_their_branches():
    baseline = Setting(MODEL, entry(MODEL).options_with(steps=7), seed=3)
    weights = WeightSet("w-0.67.safetensors", "f" * 64, 0.666667, "model-guidance")
    two = guided(baseline, weights.equivalent_guidance)
    assert two.options["guidance"] == pytest.approx(2, abs=1e-4)
    one = guidance_free(baseline, weights)
    assert (one.seed, one.options) == (two.seed, two.options)
    (used,) = one.techniques
    assert used.artefact == weights.fingerprint
    assert used.knobs["weight"] == 0.67


def test_weights_that_are_not_there_are_said():
    with pytest.raises(PlainError, match=r"has CFG-free weights for these w: .*paretone train cfg-free"):
        bench.main(["guidance-free", "--weights", "0.11"])


@pytest.mark.slow
def test_one_branch_is_faster_and_is_understood(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("pocketsphinx")
    pytest.importorskip("jiwer")
    command = [
        "guidance-free",
        "--sentences",
        "1",
        "--voices",
        workload("5", "2"),
        "--rounds",
        "2",
        "--steps",
        workload("5", "4"),
        "--weights",
        "0.5",
        "--text",
        workload(bundled.SENTENCE, "Rice."),
        "--json",
    ]
    assert bench.main(command) == 0
    data = json.loads(capsys.readouterr().out)
    rows = {row["speech"]: row for row in data["rows"]}
    assert rows["CFG-free, w = 0.50"]["branches"] == 1
    assert rows["guidance 1"]["branches"] == 2
    assert rows["CFG-free, w = 0.50"]["word error rate"] < 0.3
    same_noise, other_noise = rows["CFG-free, w = 0.50"], rows["guidance 1, other noise"]
    assert 0 < same_noise["log-mel distance, warped"] <= same_noise["log-mel distance"] < 1
    assert "log-mel distance" not in other_noise, "another seed speaks at another pace"
    assert other_noise["log-mel distance, warped"] > same_noise["log-mel distance, warped"]
    assert data["headline"] == rows["CFG-free, w = 0.50"]["backbone speed-up"]
    assert 0 < rows["CFG-free, w = 0.50"]["distance to the original"] < 2
    further = [rows["CFG-free, w = 0.50"][name] for name in ("further, low", "further", "further, high")]
    assert further == sorted(further)
    # Left to itself a model says something else than the original does.
    assert rows["no guidance"]["distance to the original"] > 0.1
