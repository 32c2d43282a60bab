"""The bench of stacked savings: really timed, spoken and judged, on a bundled model."""

import argparse
import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from paretone.bench import bundled, stacked
from paretone.bench.stacked import LADDERS, Climb, climb
from paretone.errors import PlainError
from paretone.measure.evaluation.judges import judge_named
from paretone.models.f5.adapter import F5Speech
from paretone.models.files.trained_weights import find_interval_weights
from paretone.speaking import make_ready, scripted
from paretone.techniques import compatibility_of
from tests.engine import small_speech
from tests.engine.command_line import Console
from tests.engine.small_speech import FINGERPRINT, VOICE, save_cfg_free, save_intervals
from tests.workload import only_in_full


@only_in_full("speech")
@pytest.mark.slow
@pytest.mark.usefixtures("short_prompts")
def test_rungs_are_timed_and_judged_against_the_foot(console: Console) -> None:
    if problem := judge_named("naturalness").problem() or judge_named("voice").problem():
        pytest.skip(problem)
    given = "--steps 8 --rounds 2 --sentences 2 --precision float32 --evaluations 2 --json"
    report = console.data("bench", "stacked", "--model", "megatts3-mini", *given.split())
    foot, few, top, again = report["rows"]
    assert {row["ladder"] for row in report["rows"]} == {"average-velocity"}, "there are no other weights"
    assert [row["rung"] for row in report["rows"]] == [
        "8 steps, intelligibility 1.4, similarity 1.2",
        "+ average velocity, N = 2",
        "+ DiTReducio, δ = 0.1",
        "first, again (A/A)",
    ]
    assert foot["backbone"] == foot["whole take"] == 1 and "verdict" not in foot
    assert few["backbone"] > few["whole take"] > 1, "the vocoder is not faster"
    assert few["ops ratio"] < 0.2 and top["ops ratio"] <= few["ops ratio"]
    assert set(again) == {"ladder", "rung", "backbone", "whole take"}
    assert {row["takes"] for row in (foot, few, top)} == {8}
    assert "heard 2 sentences in 2 voices in turn, 4 takes of each." in report["definition"]
    for row in (foot, few, top):
        assert 1 <= row["naturalness"] <= 5 and row["spread over seeds"] > 0
    assert report["headline"] in (few["backbone"], top["backbone"]), "the ratio is there in any case"
    assert few["verdict"] != "passes" and not report["verdict"].startswith("passes"), "two sentences prove nothing"
    assert all(row["by"] for row in (few, top))


FEW, PRUNED = (one.name for one in LADDERS)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> F5Speech:
    (tmp_path / "weights").touch()
    save_cfg_free(tmp_path / "half.safetensors", 0.5)
    save_cfg_free(tmp_path / "third.safetensors", 1 / 3)
    monkeypatch.setattr(bundled, "speaker", lambda arguments: VOICE)
    return small_speech.load("f5-mini", str(tmp_path), "", "cpu", lambda text: None, lambda: None)


def with_intervals(model: F5Speech, folder: Path, **guidance: float) -> F5Speech:
    folder.mkdir()
    save_intervals(folder / "own.safetensors", **guidance)
    model.info = replace(model.info, interval_weights=find_interval_weights([folder], FINGERPRINT))
    return model


def options(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    stacked.add_arguments(parser)
    return parser.parse_args(given)


def climbed(model: F5Speech, name: str, *given: str) -> Climb:
    return climb(next(one for one in LADDERS if one.name == name), model, options(*given))


def test_every_rung_adds_one_technique_to_the_last(model: F5Speech, capsys: pytest.CaptureFixture[str]) -> None:
    found = climbed(model, PRUNED)
    foot, *rungs = [one.title for one in found.ways]
    assert foot == "32 steps, guidance 1"
    assert rungs == ["+ 7 steps", "+ CFG-free, w = 0.50", "+ bfloat16", "+ DiTReducio, δ = 0.1"]
    assert found.baseline is found.ways[0]
    assert [len(one.setting.techniques) for one in found.ways] == [0, 1, 2, 3, 4]
    for below, above in itertools.pairwise(found.ways):
        assert set(below.setting.techniques) < set(above.setting.techniques)
    assert capsys.readouterr().err.count("calibrating at threshold 0.1") == 1


def test_average_velocity_takes_the_place_of_steps_and_guidance(model: F5Speech, tmp_path: Path) -> None:
    found = climbed(with_intervals(model, tmp_path / "own", guidance=0.7), FEW, "--evaluations", "2")
    foot, *rungs = [one.title for one in found.ways]
    assert foot == "32 steps, guidance 0.7"
    assert rungs == ["+ average velocity, N = 2", "+ bfloat16", "+ DiTReducio, δ = 0.1"]
    assert found.baseline is found.ways[0], "the guidance that the weights include, not the strongest CFG-free weights'"
    assert [len(one.setting.techniques) for one in found.ways] == [0, 1, 2, 3]
    assert model.info.interval_weights[0].fingerprint in {one.artefact for one in found.ways[1].setting.techniques}
    for rung in found.ways:
        make_ready(model, rung.setting, VOICE)
        sample = model.sampling(scripted(model, "One.", VOICE, rung.setting, rung.artefacts))
        assert sample().equal(sample())


def test_nothing_skips_a_single_evaluation(model: F5Speech, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = climbed(with_intervals(model, tmp_path / "own"), FEW)
    assert [one.title for one in found.ways][1:] == ["+ average velocity, N = 1", "+ bfloat16"]
    assert "DiTReducio, δ = 0.1 is left out: With one evaluation there is no earlier one" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "threshold"), [((), "0.2"), (("--threshold", "0.3"), "0.3")])
def test_the_error_curve_cache_can_be_on_top_instead(model: F5Speech, given: tuple[str, ...], threshold: str) -> None:
    *_, below, top = climbed(model, PRUNED, "--cache", "error_curve", *given).ways
    assert top.title == f"+ error-curve cache, α = {threshold}"
    assert set(below.setting.techniques) < set(top.setting.techniques) and top.artefacts == ()


def test_the_table_on_top_is_of_what_runs(model: F5Speech) -> None:
    *_, below, top = climbed(model, PRUNED, "--threshold", "0.5", "--pruned", "5").ways
    (table,) = top.artefacts
    assert table.compatibility == compatibility_of(model.info, below.setting) and table.steps == 5
    assert model.sampling(scripted(model, "One.", VOICE, top.setting, top.artefacts))().shape[0] == 1


def test_ladders_are_climbed_that_there_are_weights_for(model: F5Speech, tmp_path: Path) -> None:
    def chosen(name: str) -> list[str]:
        return [one.name for one in stacked.climbable(model, name)]

    assert chosen(stacked.EVERY) == chosen(options().ladder) == [PRUNED]
    with_intervals(model, tmp_path / "own")
    assert chosen(stacked.EVERY) == [FEW, PRUNED]
    assert chosen(options().ladder) == [FEW], "the best, by default"
    assert chosen(PRUNED) == [PRUNED]


def test_without_weights_it_says_what_to_do() -> None:
    bare = small_speech.load("f5-mini", "", "", "cpu", lambda text: None, lambda: None)
    with pytest.raises(PlainError, match=r"no CFG-free weights; train some \(paretone train cfg-free\)"):
        climbed(bare, PRUNED)
    with pytest.raises(PlainError, match=r"no Average velocity weights; .* no CFG-free weights; train some"):
        stacked.climbable(bare, stacked.EVERY)
