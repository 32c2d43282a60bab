"""What runs with average-velocity weights, on what models, and what they are not used with."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import ProfileError, SettingError
from paretone.export.targets import account, export
from paretone.models.base import IntervalWeights
from paretone.models.catalogue import entry
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.files import trained_weights
from paretone.models.files.checkpoints import fingerprint, read_weights
from paretone.models.megatts3.config import OPTIONS as MEGA_OPTIONS
from paretone.models.networks.diffusion import add_interval
from paretone.observer import Observer
from paretone.paths import resource
from paretone.sampling.guidance import TwoWeightGuidance
from paretone.setting.knobs import Values, checked
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from paretone.techniques import average_velocity, foreseen, resolve
from paretone.techniques.average_velocity import EXPORTED_WEIGHTS, NAME, NO_TEMPERATURE, TECHNIQUE
from paretone.techniques.average_velocity.bench import few, rivals
from paretone.training.fine_tuning import diffusion_transformer
from tests.engine import small_speech
from tests.engine.small_speech import FINGERPRINT, VOICE, save_intervals
from tests.engine.techniques.test_resolving import OPERATIONS, free, info, setting
from tests.engine.training.toy_model import toy_model

WEIGHTS = IntervalWeights("intervals/guidance-2.safetensors", "a" * 64, 4, -1.0, Values(guidance=2.0), "displacement")
MODEL = entry("f5-mini")
SHIPPED = {
    "f5-mini": ("model.safetensors", {"guidance": 0.7}, 1.1),
    "megatts3-mini": ("diffusion_transformer/model.safetensors", {"intelligibility": 1.4, "similarity": 1.2}, 0.75),
}


def few_steps_setting(evaluations: int = 2, artefact: str = "") -> UsedTechnique:
    return UsedTechnique(average_velocity.NAME, Values(evaluations=evaluations), artefact)


@pytest.mark.parametrize("evaluations", [1, 4])
def test_evaluations_in_one_branch_stand_on_the_models_own_grid(evaluations: int) -> None:
    found = resolve(info(interval_weights=(WEIGHTS,)), setting(few_steps_setting(evaluations), steps=32))
    in_force = {name: found.options[name] for name in ("steps", "spacing", "sway", "guidance", "solver")}
    assert in_force == {"steps": evaluations, "spacing": "uniform", "sway": -1.0, "guidance": 0.0, "solver": "euler"}
    assert (found.weights, found.fingerprint, found.branches) == (WEIGHTS, WEIGHTS.fingerprint, 1)
    assert found.reference["steps"] == 32 and found.reference["guidance"] == 2.0 and found.notes == ()
    (said,) = resolve(info(interval_weights=(WEIGHTS,)), setting(few_steps_setting(), guidance=1.0)).notes
    assert "include guidance 2, but the baseline runs with guidance 1" in said
    assert found.ops_ratio(OPERATIONS) == pytest.approx(evaluations * 31 / (32 * 55), rel=0.2)


def test_megatts3_goes_without_overshoot() -> None:
    weights = IntervalWeights("w", "b" * 64, 4, -1.0, Values(intelligibility=1.6, similarity=2.5), "displacement")
    model = info(knobs=MEGA_OPTIONS, guidance=TwoWeightGuidance(), interval_weights=(weights,), weight_sets=())
    found = resolve(model, setting(few_steps_setting(1)))
    assert (found.options["overshoot"], found.options["intelligibility"], found.options["similarity"]) == (0, 1, 1)
    assert found.branches == 1 and found.reference_branches == 3


def test_the_temperature_is_that_of_the_weights_unless_the_setting_has_one() -> None:
    calm = replace(WEIGHTS, temperature=0.8)
    asked = UsedTechnique(average_velocity.NAME, Values(evaluations=2, temperature=0.9))
    plain = few_steps_setting()
    for weights, used, wanted in ((WEIGHTS, plain, 1.0), (WEIGHTS, asked, 0.9), (calm, plain, 0.8), (calm, asked, 0.9)):
        assert resolve(info(interval_weights=(weights,)), setting(used)).temperature == wanted
    said = average_velocity.describe(checked(average_velocity.TECHNIQUE.knobs, asked.knobs, ""))
    assert said == "2 evaluations in one branch, temperature 0.9"


def test_the_temperature_is_kept_with_the_weights(tmp_path: Path) -> None:
    weights = {"one.weight": torch.zeros(2)}
    for name, temperature in (("calm", "0.8"), ("none", None), ("dead", "0"), ("endless", "inf"), ("odd", "warm")):
        told = trained_weights.interval_metadata(replace(WEIGHTS, temperature=1.25), FINGERPRINT, 3)
        assert told.pop("temperature") == "1.25"
        told |= {"temperature": temperature} if temperature else {}
        trained_weights.save_in_half(tmp_path / f"{name}.safetensors", weights, told)
    found = trained_weights.find_interval_weights([tmp_path], FINGERPRINT)
    assert {Path(one.path).stem: one.temperature for one in found} == {"calm": 0.8, "none": 1.0}


@pytest.mark.parametrize(
    ("of", "changes", "words"),
    [
        (setting(few_steps_setting()), {"interval_weights": ()}, "no average-velocity weights for 2 evaluations yet"),
        (setting(few_steps_setting(1, "f" * 64)), {}, "Small lacks the average-velocity weights 'ffffffffffff' here"),
        (setting(few_steps_setting()), {"trained_guidance": 0.5}, "has its guidance in its weights already"),
        (setting(few_steps_setting(), free()), {}, "both decide about weights"),
        (setting(few_steps_setting(), UsedTechnique("guidance_interval")), {}, "so .* has nothing to decide"),
        (setting(few_steps_setting(1), UsedTechnique("first_block")), {}, "no earlier one for First-block cache"),
    ],
)
def test_what_cannot_be_used_is_refused(of: Setting, changes: dict, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        resolve(info(**{"interval_weights": (WEIGHTS,), **changes}), of)


def test_skipping_goes_with_more_than_one_evaluation_and_precision_with_any() -> None:
    model = info(interval_weights=(WEIGHTS,))
    narrow = UsedTechnique("precision", Values(precision="bfloat16"))
    assert resolve(model, setting(few_steps_setting(1), narrow)).precision == "bfloat16"
    assert resolve(model, setting(few_steps_setting(2), UsedTechnique("first_block"))).evaluator is not None


# --- On a real model of a few thousand weights ------------------------------------------------------------------------
@pytest.fixture
def speech(tmp_path: Path):
    (tmp_path / "weights").touch()
    model = small_speech.load(folder=str(tmp_path))
    with torch.no_grad():  # The file holds half precision.
        for one in model.backbone.parameters():
            one.copy_(one.half().float())
    return model


def offer(speech, folder: Path) -> None:
    found = trained_weights.find_interval_weights([folder], FINGERPRINT)
    speech.info = replace(speech.info, interval_weights=found)


def _spoken(model, of: Setting) -> np.ndarray:
    make_ready(model, of)
    return synthesise(model, "One.", VOICE, of).trace.drawn_mel


def test_a_student_takes_euler_steps_and_hears_how_far_an_evaluation_goes(speech, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    path = save_intervals(tmp_path / "own" / "zero.safetensors")
    offer(speech, tmp_path / "own")
    (one,) = speech.info.interval_weights
    assert (one.path, one.fingerprint, dict(one.guidance)) == (str(path), fingerprint(path), {"guidance": 2.0})
    for evaluations in (1, 3):
        of = small_speech.setting(steps=8, sway=-1.0, guidance=2.0).with_technique(few_steps_setting(evaluations))
        plain = small_speech.setting(steps=evaluations, sway=-1.0, guidance=0.0)
        np.testing.assert_allclose(_spoken(speech, of), _spoken(speech, plain), atol=1e-4)  # fused, or not
    (tmp_path / "trained").mkdir()
    save_intervals(tmp_path / "trained" / "learnt.safetensors", learnt=True)
    save_intervals(tmp_path / "trained" / "other.safetensors", base="1" * 64)
    offer(speech, tmp_path / "trained")
    assert len(speech.info.interval_weights) == 1, "those of another checkpoint are not offered"
    of = small_speech.setting(steps=8, sway=-1.0, guidance=2.0)
    plain = small_speech.setting(steps=2, sway=-1.0, guidance=0.0)
    assert np.abs(_spoken(speech, of.with_technique(few_steps_setting(2))) - _spoken(speech, plain)).max() > 1e-3


def test_a_take_starts_from_as_much_noise_as_said(speech, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    save_intervals(tmp_path / "own" / "zero.safetensors")
    offer(speech, tmp_path / "own")
    calm = UsedTechnique(average_velocity.NAME, Values(evaluations=2, temperature=0.5))
    of = small_speech.setting(steps=8, sway=-1.0, guidance=2.0)
    spoken, whole = _spoken(speech, of.with_technique(calm)), _spoken(speech, of.with_technique(few_steps_setting(2)))
    assert np.abs(spoken - whole).max() > 1e-2
    own = speech.sampler
    monkeypatch.setattr(speech, "sampler", lambda *given: replace(own(*given), noise=0.5 * own(*given).noise))
    plain = small_speech.setting(steps=2, sway=-1.0, guidance=0.0)
    np.testing.assert_allclose(spoken, _spoken(speech, plain), atol=1e-4)  # fused, or not


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model with weights for few evaluations next to it."""
    place = toy_model(tmp_path / "model")
    checkpoint = read_f5_checkpoint(place)
    model = diffusion_transformer(checkpoint)
    add_interval(model)
    described = IntervalWeights("", "", 4, -1.0, Values(guidance=1.0), "displacement")
    told = trained_weights.interval_metadata(described, fingerprint(checkpoint.path), 3)
    (place / trained_weights.INTERVALS).mkdir()
    weights = {trained_weights.PREFIX + name: value for name, value in model.state_dict().items()}
    trained_weights.save_in_half(place / trained_weights.INTERVALS / "guidance-1.safetensors", weights, told)
    return place


def _profile(folder: Path, artefact: str = "") -> Profile:
    path = folder / trained_weights.INTERVALS / "guidance-1.safetensors"
    used = UsedTechnique(NAME, Values(evaluations=2), artefact or fingerprint(path))
    setting = Setting(MODEL.id, MODEL.options_with(steps=32)).with_technique(used)
    return Profile(setting, fingerprint(folder / "model.safetensors"), "toy")


def test_the_weights_are_written_as_they_were_trained_with_their_companions(folder: Path, tmp_path: Path) -> None:
    written = export(_profile(folder), "average-velocity", tmp_path / "out", Observer(), str(folder))
    assert {one.name for one in written} >= {"model_average_velocity_guidance-1.safetensors", "model.yaml", "vocab.txt"}
    one = tmp_path / "out" / "model_average_velocity_guidance-1.safetensors"
    assert one.read_bytes() == (folder / trained_weights.INTERVALS / "guidance-1.safetensors").read_bytes()
    extra = {name for name in read_weights(one) if "interval_mlp" in name}
    plain = read_weights(folder / "model.safetensors")
    official = {name for name in plain if name.startswith(trained_weights.PREFIX)}
    assert len(extra) == 4 and set(read_weights(one)) == official | extra
    assert not torch.any(read_weights(one)[f"{trained_weights.PREFIX}time_embed.interval_mlp.2.weight"])


def test_a_temperature_of_the_profiles_own_is_dropped_and_said(folder: Path) -> None:
    profile = _profile(folder)
    (used,) = profile.setting.techniques
    calm = replace(used, knobs=used.knobs.replace(temperature=0.8))
    found = account(EXPORTED_WEIGHTS, replace(profile, setting=profile.setting.with_technique(calm)), True)
    assert [line.value for line in found.honours if line.what == TECHNIQUE.title] == ["2 evaluations in one branch"]
    (dropped,) = [line for line in found.drops if line.what == "Average velocity, Temperature"]
    assert (dropped.value, dropped.how) == ("0.8", NO_TEMPERATURE)
    assert not [line for line in account(EXPORTED_WEIGHTS, profile, True).drops if line.what == dropped.what]


def test_what_cannot_be_exported_is_said(folder: Path, tmp_path: Path) -> None:
    for target, words in (("f5-tts", "an embedding of the interval"), ("safetensors", "no CFG-free weights to write")):
        with pytest.raises(ProfileError, match=words):
            export(_profile(folder), target, tmp_path / "out", Observer(), str(folder))
    profile, own = _profile(folder), "average-velocity"
    with pytest.raises(ProfileError, match=r"weights 'ffffffffffff' of the profile are in none of .*intervals"):
        export(_profile(folder, "f" * 64), own, tmp_path / "out", Observer(), str(folder))
    plain = Profile(profile.setting.without(NAME), profile.checkpoint, profile.variant)
    with pytest.raises(ProfileError, match="The profile does without Average velocity"):
        export(plain, own, tmp_path / "out", Observer(), str(folder))


@pytest.mark.parametrize("model", SHIPPED)
def test_weights_are_of_the_bundled_model_and_include_its_usual_guidance(model: str) -> None:
    name, guidance, temperature = SHIPPED[model]
    checkpoint = resource("models", model) / name
    base, folder = fingerprint(checkpoint), checkpoint.parent / "intervals"
    (found,) = trained_weights.find_interval_weights([folder], base, lambda: None)
    assert dict(found.guidance) == guidance and (found.evaluations, found.temperature) == (4, temperature)
    usual = entry(model).options_with()
    assert {name: usual[name] for name in guidance} == guidance
    file, log = Path(found.path), Path(found.path).with_suffix(".training.jsonl")
    assert {file.name, log.name} == {one.name for one in folder.iterdir()} and file.stat().st_size < 30_000_000
    header, *lines = (json.loads(line) for line in log.read_text(encoding="utf-8").splitlines())
    assert header["initial_weights"] == base and header["options"]["guidance"] == guidance
    left = [one["validation"]["left"] for one in lines if "validation" in one]
    assert left[0] == 1 and left[-1] < 0.5, "it was learnt"


def test_rivals_and_few_evaluations_start_from_the_baseline() -> None:
    baseline = Setting("f5-mini", entry("f5-mini").options_with(steps=32, guidance=1.0, spacing="uniform"), seed=4)
    found = dict(rivals(baseline))
    assert [foreseen(one).options["steps"] for one in found.values()] == [1, 2, 4, 5, 7, 1, 2, 4]
    assert {one.seed for one in found.values()} == {4}
    weights = IntervalWeights("w", "a" * 64, 4, -1.0, Values(guidance=1.0), "displacement")
    (used,) = few(baseline, 2, weights).techniques
    assert (used.knobs["evaluations"], used.artefact) == (2, weights.fingerprint)
