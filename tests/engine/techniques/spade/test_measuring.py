"""Layers' importance: measured, recorded, and which layers it keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone import cli
from paretone.errors import Cancelled, SettingError
from paretone.models.base import Utterance
from paretone.models.catalogue import voices
from paretone.models.files.layer_importance import COSINE, DIVERGENCE, FILE, WORD_ERROR, read_record
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.observer import Observer
from paretone.techniques.spade.importance import bootstrapped
from paretone.techniques.spade.measuring import measure_layers, own_speech, without
from paretone.training.token_recipe import divergence
from tests.engine.small_language import LAYERS, write_model
from tests.engine.speaking import load, setting

UTTERANCES = tuple(map(Utterance, ("Rice is good.", "The box was thrown."), voices("lm-mini")))


@pytest.fixture
def model(tmp_path: Path) -> LmMiniSpeech:
    return load(write_model(tmp_path / "model"))


def test_divergence_is_that_of_the_model_without_the_layer(model: LmMiniSpeech) -> None:
    record = measure_layers(model, UTTERANCES, setting(), (DIVERGENCE,), Observer())
    (measure,) = record.measures
    assert record.checkpoint == model.info.fingerprint and measure.utterances == 2
    spoken = own_speech(model, UTTERANCES, setting(), Observer())
    tokens, found = model.own.tokens, []
    with torch.inference_mode():
        for (one,) in spoken:
            whole = tokens.logits(tokens.transformer(one.embedded, None, one.positions)[0, one.prompt - 1 :])
            shallow = tokens.kept([layer for layer in range(LAYERS) if layer != 1])
            hidden = shallow.transformer(one.embedded, None, one.positions)
            found.append(float(divergence(shallow.logits(hidden[0, one.prompt - 1 :]), whole)))
    assert measure.values[1] == pytest.approx(np.mean(found), rel=1e-3)
    assert all(low <= value <= high for low, value, high in zip(measure.low, measure.values, measure.high, strict=True))


def test_turning_is_between_none_and_all_the_way_round(model: LmMiniSpeech) -> None:
    record = measure_layers(model, UTTERANCES, setting(), (COSINE,), Observer())
    assert all(0 < value < 2 for value in record.deciding.values)


def test_an_earlier_record_keeps_what_is_not_measured_again(model: LmMiniSpeech) -> None:
    earlier = measure_layers(model, UTTERANCES, setting(), (COSINE,), Observer())
    record = measure_layers(model, UTTERANCES, setting(), (DIVERGENCE,), Observer(), earlier)
    assert record.measure(COSINE) == earlier.measure(COSINE)
    assert record.measure(DIVERGENCE) is not None


@pytest.mark.slow
def test_word_errors_without_each_layer_come_with_their_run_aways(
    model: LmMiniSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pocketsphinx")
    # As of a model whose speech has no known length.
    ask = LmMiniSpeech._request
    monkeypatch.setattr(LmMiniSpeech, "_request", lambda *given: replace(ask(*given), length=None))
    record = measure_layers(model, UTTERANCES, setting(), (WORD_ERROR,), Observer())
    measure = record.deciding
    # It says noise, and never ends by itself: with a layer less as well.
    assert measure.run_away == (len(UTTERANCES),) * LAYERS
    assert measure.baseline > 0.3 and min(measure.values) > 0.3


def test_leaving_out_a_layer_names_the_others() -> None:
    (used,) = without(setting(), 1, LAYERS).techniques
    assert used.knobs["layers"] == "0,2"


@pytest.mark.parametrize("measures", [(), ("loudness",)])
def test_a_measure_that_does_not_exist_is_refused(model: LmMiniSpeech, measures: tuple[str, ...]) -> None:
    with pytest.raises(SettingError, match="word_error"):
        measure_layers(model, UTTERANCES, setting(), measures, Observer())


def test_it_can_be_cancelled(model: LmMiniSpeech) -> None:
    class Stopping(Observer):
        def progress(self, done: int, total: int) -> None:
            if done == 2:
                raise Cancelled

    with pytest.raises(Cancelled):
        measure_layers(model, UTTERANCES, setting(), (DIVERGENCE,), Stopping())


def test_the_command_keeps_the_record_where_the_engine_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    root = write_model(tmp_path / "model")
    assert cli.main(["measure-layers", "--folder", str(root), "--sentences", "1", "--depth", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    model = load(root)
    record = read_record([Path(data["path"]).parent], model.info.fingerprint)
    assert Path(data["path"]).name == FILE
    assert record is not None and list(record.retained(2)) == data["retained"]
    assert model.info.layer_order == record.order
    # Half of the three layers, where no number is given.
    assert cli.main(["measure-layers", "--folder", str(root), "--sentences", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["retained"] == list(record.retained(1))


def test_the_figures_are_means_over_utterances() -> None:
    each = np.array([[1.0, 0.0], [3.0, 0.5]])
    found = bootstrapped(DIVERGENCE, each)
    assert found.values == (2.0, 0.25)
    assert found.utterances == 2
    assert found.low == (1.0, 0.0) and found.high == (3.0, 0.5)


def test_word_error_rates_are_weighted_by_words() -> None:
    found = bootstrapped(WORD_ERROR, np.array([[1.0], [0.0]]), np.array([3, 9]), baseline=0.1)
    assert found.values[0] == pytest.approx(0.25)
    assert found.baseline == 0.1


def test_a_clear_ranking_is_certain_and_a_tie_is_not() -> None:
    generator = np.random.default_rng(1)
    noise = generator.normal(0, 1, (12, 3))
    found = bootstrapped(DIVERGENCE, noise * [0.01, 1, 1] + [10, 0, 0])
    assert found.ranks[0] == (0, 0)
    assert found.ranks[1] == found.ranks[2] == (1, 2)


def test_equal_utterances_give_no_spread() -> None:
    found = bootstrapped(DIVERGENCE, np.ones((5, 2)) * [2.0, 1.0])
    assert found.low == found.values == found.high
    assert found.ranks == ((0, 0), (1, 1))


def test_equal_layers_share_their_ranks() -> None:
    found = bootstrapped(WORD_ERROR, np.tile([0.8, 0.0, 0.0, 0.0], (5, 1)), np.full(5, 9))
    assert found.ranks == ((0, 0), (1, 3), (1, 3), (1, 3))


def test_the_same_figures_give_the_same_intervals() -> None:
    each = np.random.default_rng(2).random((6, 4))
    assert bootstrapped(DIVERGENCE, each) == bootstrapped(DIVERGENCE, each)
