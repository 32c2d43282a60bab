"""What runs with average-velocity weights, on what models, and what they are not used with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import CheckpointError, SettingError
from paretone.models.base import IntervalWeights
from paretone.models.families.passages import Sampler
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.trained_weights import (
    find_interval_weights,
    interval_metadata,
    require_interval_weights,
    save_interval_weights,
)
from paretone.models.megatts3.config import OPTIONS as MEGA_OPTIONS
from paretone.models.networks.diffusion import IntervalEmbedding
from paretone.sampling.guidance import TwoWeightGuidance
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from paretone.techniques import average_velocity, foreseen, resolve
from tests.engine import small_speech
from tests.engine.small_speech import FINGERPRINT, VOICE, save_intervals
from tests.engine.techniques.test_resolving import OPERATIONS, free, info, pruned, setting

WEIGHTS = IntervalWeights("intervals/guidance-2.safetensors", "a" * 64, 4, -1.0, Values(guidance=2.0), "displacement")


def few(evaluations: int = 2, artefact: str = "") -> UsedTechnique:
    return UsedTechnique(average_velocity.NAME, Values(evaluations=evaluations), artefact)


@pytest.mark.parametrize("evaluations", [1, 2, 3, 4])
def test_evaluations_in_one_branch_stand_on_the_models_own_grid(evaluations: int) -> None:
    found = resolve(info(interval_weights=(WEIGHTS,)), setting(few(evaluations), steps=32))
    in_force = {name: found.options[name] for name in ("steps", "spacing", "sway", "guidance", "solver")}
    assert in_force == {"steps": evaluations, "spacing": "uniform", "sway": -1.0, "guidance": 0.0, "solver": "euler"}
    assert (found.weights, found.fingerprint, found.branches) == (WEIGHTS, WEIGHTS.fingerprint, 1)
    assert found.reference["steps"] == 32 and found.reference["guidance"] == 2.0
    assert found.notes == ()
    assert found.ops_ratio(OPERATIONS) == pytest.approx(evaluations * 31 / (32 * 55), rel=0.2)


def test_another_guidance_in_the_baseline_is_said() -> None:
    (said,) = resolve(info(interval_weights=(WEIGHTS,)), setting(few(), guidance=1.0)).notes
    assert "include guidance 2, but the baseline runs with guidance 1" in said


def test_megatts3_goes_without_overshoot() -> None:
    weights = IntervalWeights("w", "b" * 64, 4, -1.0, Values(intelligibility=1.6, similarity=2.5), "displacement")
    model = info(knobs=MEGA_OPTIONS, guidance=TwoWeightGuidance(), interval_weights=(weights,), weight_sets=())
    found = resolve(model, setting(few(1)))
    assert (found.options["overshoot"], found.options["intelligibility"], found.options["similarity"]) == (0, 1, 1)
    assert found.branches == 1 and found.reference_branches == 3


def test_the_temperature_is_that_of_the_weights_unless_the_setting_has_one() -> None:
    calm = replace(WEIGHTS, temperature=0.8)
    asked = UsedTechnique(average_velocity.NAME, Values(evaluations=2, temperature=0.9))
    found = {
        (weights.temperature, used.knobs.get("temperature")): resolve(
            info(interval_weights=(weights,)), setting(used)
        ).temperature
        for weights in (WEIGHTS, calm)
        for used in (few(), asked)
    }
    assert found == {(1.0, None): 1.0, (1.0, 0.9): 0.9, (0.8, None): 0.8, (0.8, 0.9): 0.9}
    said = average_velocity.describe(checked(average_velocity.TECHNIQUE.knobs, asked.knobs, ""))
    assert said == "2 evaluations in one branch, temperature 0.9"


def test_the_temperature_is_kept_with_the_weights(tmp_path: Path) -> None:
    weights = {"one.weight": torch.zeros(2)}
    for name, temperature in (("calm", "0.8"), ("none", None), ("dead", "0"), ("endless", "inf"), ("odd", "warm")):
        told = interval_metadata(replace(WEIGHTS, temperature=1.25), FINGERPRINT, 3)
        assert told.pop("temperature") == "1.25"
        save_interval_weights(
            tmp_path / f"{name}.safetensors", weights, told | ({"temperature": temperature} if temperature else {})
        )
    found = find_interval_weights([tmp_path], FINGERPRINT)
    assert {Path(one.path).stem: one.temperature for one in found} == {"calm": 0.8, "none": 1.0}


@pytest.mark.parametrize(
    ("of", "changes", "words"),
    [
        (setting(few()), {"interval_weights": ()}, "has no average-velocity weights for 2 evaluations yet; train some"),
        (setting(few(1, "f" * 64)), {}, "weights 'ffffffffffff' is not among those of Small"),
        (setting(few(5)), {}, "Evaluations must lie between 1 and 4"),
        (setting(few()), {"trained_guidance": 0.5}, "has its guidance in its weights already"),
        (setting(few(), free()), {}, "both decide about weights"),
        (setting(few(), pruned()), {}, "so Step pruning has nothing to decide"),
        (setting(few(), UsedTechnique("guidance_interval")), {}, "so .* has nothing to decide"),
        (setting(few(1), UsedTechnique("first_block")), {}, "no earlier one for First-block cache .* to reuse"),
    ],
)
def test_what_cannot_be_used_is_refused(of: Setting, changes: dict, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        resolve(info(**{"interval_weights": (WEIGHTS,), **changes}), of)


def test_skipping_goes_with_more_than_one_evaluation_and_precision_with_any() -> None:
    model = info(interval_weights=(WEIGHTS,))
    narrow = UsedTechnique("precision", Values(precision="bfloat16"))
    assert resolve(model, setting(few(1), narrow)).precision == "bfloat16"
    assert resolve(model, setting(few(2), UsedTechnique("first_block"))).evaluator is not None


def test_without_a_loaded_model_the_options_are_known() -> None:
    of = Setting("f5-mini", Values(steps=32), (few(3),))
    assert foreseen(of).options["steps"] == 3


# --- On a real model of a few thousand weights ------------------------------------------------------------------------
@pytest.fixture
def speech(tmp_path: Path):
    (tmp_path / "weights").touch()
    model = small_speech.load("small", str(tmp_path), "", "cpu", lambda text: None, lambda: None)
    with torch.no_grad():  # The file holds half precision.
        for one in model._backbone.parameters():
            one.copy_(one.half().float())
    return model


def _spoken(model, of: Setting) -> np.ndarray:
    make_ready(model, of)
    return synthesise(model, "One.", VOICE, of).trace.drawn_mel


def test_the_untrained_student_takes_the_unguided_models_euler_steps(speech, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    path = save_intervals(tmp_path / "own" / "zero.safetensors")
    speech.info = replace(speech.info, interval_weights=find_interval_weights([tmp_path / "own"], FINGERPRINT))
    (one,) = speech.info.interval_weights
    assert (one.path, one.fingerprint, dict(one.guidance)) == (str(path), fingerprint(path), {"guidance": 2.0})
    for evaluations in (1, 3):
        of = small_speech.setting(steps=8, sway=-1.0, guidance=2.0).with_technique(few(evaluations))
        plain = small_speech.setting(steps=evaluations, sway=-1.0, guidance=0.0)
        np.testing.assert_allclose(_spoken(speech, of), _spoken(speech, plain), atol=1e-4)  # fused, or not


def test_a_take_starts_from_as_much_noise_as_the_temperature_says(
    speech, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    save_intervals(tmp_path / "own" / "zero.safetensors")
    speech.info = replace(speech.info, interval_weights=find_interval_weights([tmp_path / "own"], FINGERPRINT))
    calm = UsedTechnique(average_velocity.NAME, Values(evaluations=2, temperature=0.5))
    of = small_speech.setting(steps=8, sway=-1.0, guidance=2.0)
    spoken, whole = _spoken(speech, of.with_technique(calm)), _spoken(speech, of.with_technique(few(2)))
    assert np.abs(spoken - whole).max() > 1e-2
    own = speech._sampler
    monkeypatch.setattr(speech, "_sampler", lambda *given: _halved(own(*given)))
    plain = small_speech.setting(steps=2, sway=-1.0, guidance=0.0)
    np.testing.assert_allclose(spoken, _spoken(speech, plain), atol=1e-4)  # fused, or not


def _halved(sampler: Sampler) -> Sampler:
    return replace(sampler, noise=0.5 * sampler.noise)


def test_a_trained_embedding_hears_how_far_an_evaluation_goes(speech, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    save_intervals(tmp_path / "own" / "learnt.safetensors", learnt=True)
    save_intervals(tmp_path / "own" / "other.safetensors", base="1" * 64)
    speech.info = replace(speech.info, interval_weights=find_interval_weights([tmp_path / "own"], FINGERPRINT))
    assert len(speech.info.interval_weights) == 1, "those of another checkpoint are not offered"
    of = small_speech.setting(steps=8, sway=-1.0, guidance=2.0)
    plain = small_speech.setting(steps=2, sway=-1.0, guidance=0.0)
    assert np.abs(_spoken(speech, of.with_technique(few(2))) - _spoken(speech, plain)).max() > 1e-3


def test_intervals_without_length_are_times() -> None:
    torch.manual_seed(1)
    embedding = IntervalEmbedding(16)
    times = torch.tensor([0.0, 0.3, 1.0])
    torch.testing.assert_close(embedding(times), embedding(torch.stack([times, times], dim=-1)))
    ends = torch.tensor([0.3, 1.0, 1.0])
    torch.testing.assert_close(embedding.of_schedule(times[:2]), embedding(torch.stack([times, ends], dim=-1))[:2])


def test_other_files_are_no_such_weights(tmp_path: Path) -> None:
    small_speech.save_cfg_free(tmp_path / "half.safetensors", 0.5)
    assert find_interval_weights([tmp_path], FINGERPRINT) == ()
    with pytest.raises(CheckpointError, match="holds no weights for few evaluations by its metadata"):
        require_interval_weights(tmp_path / "half.safetensors")
