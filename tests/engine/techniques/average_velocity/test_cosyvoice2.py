"""The flow of CosyVoice 2 and 3 in few evaluations: a small release in the official layout is trained, and speaks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import CheckpointError, SettingError, TrainingError
from paretone.files import wav
from paretone.models import load_model
from paretone.models.base import IntervalWeights
from paretone.models.catalogue import entry, voice
from paretone.models.cosyvoice2.flow_networks import Estimator, conditions
from paretone.models.cosyvoice2.mel_flow import MelStream, PlannedMel
from paretone.models.cosyvoice2.model import FLOW
from paretone.models.cosyvoice2.token_to_mel import TokenToMel
from paretone.models.families.evaluations import FlowNetwork
from paretone.models.files.checkpoints import fingerprint, metadata_of, read_float_weights
from paretone.models.files.trained_weights import interval_metadata, save_in_half
from paretone.models.networks.incremental import Memory
from paretone.sampling.flow import Whole
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from paretone.techniques import average_velocity, foreseen, resolve
from paretone.techniques.average_velocity import METHODS, AverageVelocityRequest
from paretone.techniques.average_velocity.recipe import fine_tune
from paretone.training.cosyvoice_flow import CosyClip, CosySubject
from paretone.training.flow_subjects import state_at
from paretone.training.requests import Follower
from paretone.training.session import Intervals
from tests.engine.models.cosyvoice2.small_release import TOKENS, small_flow, small_prompt, small_speech, write_release
from tests.engine.models.cosyvoice3.small_release import write_release as write_release_3
from tests.engine.techniques.average_velocity.test_recipe import request
from tests.packages import needs
from tests.workload import only_in_full

MODEL, MODEL_3 = "CosyVoice2-0.5B", "Fun-CosyVoice3-0.5B"
CPU = torch.device("cpu")
SPEECH = small_speech(34)
WEIGHTS = IntervalWeights("", "", 4, -1.0, Values(guidance=0.7), METHODS[0])


@pytest.fixture(scope="module")
def flow() -> TokenToMel:
    return small_flow()


def with_interval(learnt: bool = False) -> Estimator:
    estimator = small_flow().estimator
    estimator.add_interval()
    if learnt:
        torch.manual_seed(3)
        torch.nn.init.normal_(estimator.time_mlp.interval_mlp[2].weight, std=0.5)
    return estimator.eval().requires_grad_(False)


def few(flow: TokenToMel, estimator: Estimator, count: int, temperature: float = 1.0) -> MelStream:
    """A stream of ``flow`` with ``count`` evaluations of ``estimator`` in one branch."""
    mel = PlannedMel(flow)
    plan = mel.planned().plan
    plan = replace(plan, options=plan.options.replace(steps=count, guidance=0.0), temperature=temperature)
    network = FlowNetwork(estimator, lambda: Whole(estimator))
    return MelStream(mel, small_prompt(), script=replace(mel.planned(plan), network=network))


# --- Networks ---------------------------------------------------------------------------------------------------------
def test_untrained_it_is_the_official_velocity_to_the_bit(flow: TokenToMel) -> None:
    student, times = with_interval(), torch.tensor([0.1, 0.6])
    state = torch.randn(1, 8, 12, generator=torch.Generator().manual_seed(2))
    given = conditions(state + 1, torch.ones(1, 8), state * 0.5)
    own = flow.estimator(state, given, flow.estimator.time_table(times)[1], 0, Memory())
    assert own.abs().max() > 0.01 and own.shape == (2, 8, 12)
    for ends in (times, torch.ones(2)):  # r = t, and, as nothing is learnt yet, any r.
        table = student.time_table(torch.stack([times, ends], dim=-1))
        assert student(state, given, table[1], 0, Memory()).equal(own)


def test_untrained_few_evaluations_are_euler_steps_and_the_temperature_scales_the_noise(flow: TokenToMel) -> None:
    plain = small_flow()
    plain.config = replace(plain.config, steps=2, guidance=0.0)
    euler = MelStream(plain, small_prompt()).whole(SPEECH)
    few_2 = few(flow, with_interval(), 2).whole(SPEECH)
    torch.testing.assert_close(few_2, euler, atol=1e-5, rtol=0)
    estimator, quiet = with_interval(learnt=True), small_flow()
    assert (few(flow, estimator, 2).whole(SPEECH) - few_2).abs().max() > 0.01, "it hears how far an evaluation goes"
    quiet.noise *= 0.5
    torch.testing.assert_close(few(flow, estimator, 2, 0.5).whole(SPEECH), few(quiet, estimator, 2).whole(SPEECH))


def test_few_evaluations_streamed_are_those_of_the_whole(flow: TokenToMel) -> None:
    estimator = with_interval(learnt=True)
    whole, stream = few(flow, estimator, 3).whole(SPEECH), few(flow, estimator, 3)
    parts = [stream.push([token]) for token in SPEECH]
    assert sum(part.shape[-1] > 0 for part in parts) > 3
    torch.testing.assert_close(torch.cat([*parts, stream.finish()], dim=-1), whole, atol=1e-4, rtol=0)


def test_items_of_a_batch_are_what_they_are_alone(flow: TokenToMel) -> None:
    generator = torch.Generator().manual_seed(5)
    states, given = torch.randn(2, 8, 26, generator=generator), torch.randn(2, 24, 26, generator=generator)
    times, lengths = torch.tensor([0.3, 0.8]), (26, 17)
    within = torch.arange(26)[None] < torch.tensor(lengths)[:, None]
    together = flow.estimator.at_once(states, given, times, within)
    for row, length in enumerate(lengths):
        table = flow.estimator.time_table(times[row : row + 1])[0]
        alone = flow.estimator(states[row : row + 1, :, :length], given[row : row + 1, :, :length], table, 0, Memory())
        torch.testing.assert_close(together[row : row + 1, :, :length], alone, atol=1e-5, rtol=1e-4)


# --- Training ---------------------------------------------------------------------------------------------------------
def _clips(count: int) -> list[CosyClip]:
    draw = np.random.default_rng(1)
    clips = []
    for number in range(count):
        tokens = draw.integers(0, TOKENS, 8 + number % 3)
        mel = draw.standard_normal((2 * len(tokens), 8)).astype(np.float16)
        clips.append(CosyClip("ab"[number % 2], tokens, mel, np.ones(6, np.float32), 0))
    return clips


def test_guidance_is_the_officials() -> None:
    subject = CosySubject(small_flow(), _clips(8), _clips(4), 80, 1)
    problem = subject.next(CPU)
    state, times = state_at(problem, problem.times), problem.times
    guided = subject.guided(subject.model, problem, Values(guidance=0.7))(state, times)
    present = subject.field(subject.model, problem)(state, times)
    absent = subject.field(subject.model, replace(problem, conditions=0 * problem.conditions))(state, times)
    torch.testing.assert_close(guided, 1.7 * present - 0.7 * absent)
    assert subject.guided(subject.model, problem, Values(guidance=0.0))(state, times).equal(present)


# --- From release to speech -------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models") / MODEL
    root.mkdir()
    write_release(root)
    return root


@pytest.fixture(scope="module")
def release_3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models") / MODEL_3
    write_release_3(root)
    return root


def _request(release: Path, place: Path, **changes: object) -> AverageVelocityRequest:
    return request(release.name, release, place, **{"export": str(release / "intervals"), "frames": 1_200} | changes)


def _setting(weights: str = "", evaluations: int = 2, model: str = MODEL) -> Setting:
    used = UsedTechnique(average_velocity.NAME, Values(evaluations=evaluations), weights)
    return Setting(model, entry(model).options_with(), (used,) if weights else (), seed=3)


def _mel(release: Path, weights: str = "", evaluations: int = 2) -> np.ndarray:
    model = load_model(release.name, folder=str(release), device="cpu")
    setting = _setting(weights, evaluations, release.name)
    make_ready(model, setting)
    return synthesise(model, "Hello there.", voice(), setting).trace.drawn_mel


def _learns_and_speaks(release: Path, place: Path, embedding: str) -> None:
    asked = _request(release, place, sentences=1, texts=("Hello there.", "They went home."))
    path = Path(fine_tune(asked, Follower(), Intervals()).checkpoint)
    assert path == release / "intervals" / "guidance-0.7.safetensors"
    assert metadata_of(path)["base"] == fingerprint(release / FLOW)
    inner = {name.removeprefix("decoder.estimator.") for name in read_float_weights(path)}
    own = torch.load(release / FLOW, weights_only=True)
    extra = {f"{embedding}.interval_mlp.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")}
    assert inner == {name.removeprefix("decoder.estimator.") for name in own if "estimator" in name} | extra
    found = load_model(release.name, folder=str(release), device="cpu").look_for_weights().interval_weights
    assert [(one.fingerprint, dict(one.guidance)) for one in found] == [(fingerprint(path), {"guidance": 0.7})]
    whole, *few = _mel(release), _mel(release, fingerprint(path), 1), _mel(release, fingerprint(path), 2)
    assert len(whole) == len(few[0]) == len(few[1]), "the tokens are the same"
    assert np.abs(few[0] - few[1]).max() > 1e-3 < np.abs(few[1] - whole).max()
    on = replace(asked, initial=str(path), work=str(place / "on"), export=str(place / "more"))
    assert fine_tune(on, Follower(), Intervals()).steps == 2, "it goes on from its own file"


@only_in_full("recipes")
@needs("accelerate")
def test_it_learns_from_what_it_says_itself_and_speaks_in_few_evaluations(release: Path, tmp_path: Path) -> None:
    _learns_and_speaks(release, tmp_path, "time_mlp")


@needs("accelerate", "onnx", "onnxruntime", "tokenizers")
def test_so_does_cosyvoice_3(release_3: Path, tmp_path: Path) -> None:
    _learns_and_speaks(release_3, tmp_path, "time_embed")


@needs("accelerate")
def test_recordings_are_heard_by_its_own_models(release: Path, tmp_path: Path) -> None:
    lines = ["audio,text,voice"]
    for number in range(4):
        noise = np.random.default_rng(number).standard_normal(16_000 + 800 * number) * 0.1
        (tmp_path / f"{number}.wav").write_bytes(wav(noise.astype(np.float32), 16_000))
        lines.append(f"{number}.wav,Hello.,{'ab'[number % 2]}")
    (tmp_path / "manifest.csv").write_text("\n".join(lines), encoding="utf-8")
    asked = _request(release, tmp_path, manifest=str(tmp_path / "manifest.csv"), export=str(tmp_path / "result"))
    trained = fine_tune(asked, Follower(), Intervals())
    assert trained.steps == 2 and trained.validation["distance 1"] > 0


def test_weights_of_another_flow_are_not_offered_and_others_are_refused(release: Path, tmp_path: Path) -> None:
    base, folder = fingerprint(release / FLOW), release / "intervals"
    folder.mkdir(exist_ok=True)
    own = torch.load(release / FLOW, weights_only=True)
    weights = {name: value for name, value in own.items() if "estimator" in name}
    save_in_half(folder / "lacking.safetensors", weights, interval_metadata(WEIGHTS, base, 1))
    save_in_half(folder / "other.safetensors", weights, interval_metadata(WEIGHTS, "e" * 64, 1))
    model, lacking = load_model(MODEL, folder=str(release), device="cpu"), folder / "lacking.safetensors"
    names = {Path(one.path).stem for one in model.info.interval_weights}
    assert "lacking" in names and "other" not in names
    with pytest.raises(CheckpointError, match="interval_mlp"):
        make_ready(model, _setting(fingerprint(lacking)))
    lacking.unlink()


def test_what_it_cannot_be_asked_is_said(release: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="needs speech to learn from"):
        fine_tune(_request(release, tmp_path), Follower(), Intervals())
    used = UsedTechnique(average_velocity.NAME, Values(evaluations=2))
    with pytest.raises(SettingError, match="makes audio of its tokens without a flow"):
        foreseen(Setting("lm-mini", entry("lm-mini").options_with(), (used,)))
    model = load_model(MODEL, folder=str(release), device="cpu")
    model.info = replace(model.info, interval_weights=())
    with pytest.raises(SettingError, match="no average-velocity weights for 2 evaluations yet; train some first"):
        resolve(model.info, replace(_setting(), techniques=(used,)))


def test_it_goes_with_fewer_layers_and_a_draft(release: Path) -> None:
    info = load_model(MODEL, folder=str(release), device="cpu").info
    info = replace(info, interval_weights=(replace(WEIGHTS, path="w", fingerprint="a" * 64),))
    layers = UsedTechnique("spade", Values(layers="0,2", recovery="none"))
    used = UsedTechnique(average_velocity.NAME, Values(evaluations=1))
    plan = resolve(info, Setting(MODEL, entry(MODEL).options_with(), (layers, used)))
    assert (plan.layers, plan.flow.weights, plan.flow.options["steps"]) == ((0, 2), info.interval_weights[0], 1)
    assert plan.options == plan.reference and plan.flow.reference["steps"] == 10
