"""The ladder of savings on a real model of a few thousand weights."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import pytest

from engine.bench import bundled, stacked
from engine.errors import PlainError
from engine.models.f5.adapter import F5Speech
from engine.models.silent_observer import SilentObserver
from tests.engine import small_speech
from tests.engine.small_speech import VOICE, save_cfg_free


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> F5Speech:
    (tmp_path / "weights").touch()
    save_cfg_free(tmp_path / "half.safetensors", 0.5)
    save_cfg_free(tmp_path / "third.safetensors", 1 / 3)
    monkeypatch.setattr(bundled, "speaker", lambda arguments: VOICE)
    return small_speech.load("f5-mini", str(tmp_path), "", "cpu", lambda text: None, lambda: None)


def options(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    stacked.add_arguments(parser)
    return parser.parse_args(given)


def test_every_rung_adds_one_technique_to_the_last(model: F5Speech, capsys: pytest.CaptureFixture[str]) -> None:
    ladder = list(stacked._ladder(model, options()))
    assert [one.title for one in ladder] == [
        "32 steps, guidance 1",
        "+ 7 steps",
        "+ CFG-free, w = 0.50",
        "+ bfloat16",
        "+ DiTReducio, δ = 0.1",
    ]
    assert [len(one.setting.techniques) for one in ladder] == [0, 1, 2, 3, 4]
    for below, above in itertools.pairwise(ladder):
        assert set(below.setting.techniques) < set(above.setting.techniques)
    assert capsys.readouterr().err.count("calibrating at threshold 0.1") == 1


@pytest.mark.parametrize(("given", "threshold"), [((), "0.2"), (("--threshold", "0.3"), "0.3")])
def test_the_error_curve_cache_can_be_on_top_instead(model: F5Speech, given: tuple[str, ...], threshold: str) -> None:
    *_, below, top = stacked._ladder(model, options("--cache", "error_curve", *given))
    assert top.title == f"+ error-curve cache, α = {threshold}"
    assert set(below.setting.techniques) < set(top.setting.techniques)
    assert top.artefacts == ()


def test_the_table_on_top_is_of_what_runs(model: F5Speech) -> None:
    *_, below, top = stacked._ladder(model, options("--threshold", "0.5", "--pruned", "5"))
    (table,) = top.artefacts
    assert table.compatibility == model.compatibility(below.setting)
    assert table.steps == 5
    assert model.sampling("One.", VOICE, top.setting, top.artefacts)().shape[0] == 1


def test_without_a_cache_or_fewer_bits_the_ladder_is_shorter(model: F5Speech) -> None:
    ladder = list(stacked._ladder(model, options("--cache", "none", "--precision", "float32")))
    assert [one.title for one in ladder][2:] == ["+ CFG-free, w = 0.50"]


def test_without_weights_it_says_what_to_do() -> None:
    bare = small_speech.load("f5-mini", "", "", "cpu", lambda text: None, lambda: None)
    with pytest.raises(PlainError, match="no CFG-free weights; train some"):
        list(stacked._ladder(bare, options()))


@pytest.mark.parametrize("cache", ["ditreducio", "error_curve", "none"])
def test_all_rungs_can_be_sampled(model: F5Speech, cache: str) -> None:
    for rung in stacked._ladder(model, options("--steps", "4", "--pruned", "3", "--cache", cache)):
        model.make_ready(rung.setting, SilentObserver(), VOICE)
        sample = model.sampling("One.", VOICE, rung.setting, rung.artefacts)
        assert sample().equal(sample()), "as often as wished"
