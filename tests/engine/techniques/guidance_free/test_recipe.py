"""Training of CFG-free weights: its recipe, and whole runs on a small model: begun, interrupted, resumed, refused."""

import copy
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from paretone import cli
from paretone.errors import Cancelled, SettingError, TrainingError
from paretone.models.f5.checkpoint import F5Checkpoint, read_f5_checkpoint
from paretone.models.files.checkpoints import fingerprint, metadata_of
from paretone.models.files.trained_weights import WEIGHT_SETS, find_weight_sets
from paretone.paths import own_place, resource
from paretone.setting.knobs import Values
from paretone.techniques import guidance_free
from paretone.techniques.guidance_free import GuidanceFreeRequest, recipe
from paretone.techniques.guidance_free.recipe import DISTILLATION, VALIDATION_TIMES, GuidanceFree, GuidanceFreeOptions
from paretone.techniques.resolving import known
from paretone.training.features import Examples, collate
from paretone.training.fine_tuning import diffusion_transformer
from paretone.training.flow_matching import FlowMatchingOptions, draw_problem, span_error, without_conditions
from paretone.training.flow_subjects import F5Problem, F5Subject
from paretone.training.manifest import read_manifest
from paretone.training.natural_corpus import NATURAL_CORPUS, CorpusOptions, open_corpus
from paretone.training.processes import join_processes
from paretone.training.requests import TrainingProgress
from paretone.training.runs import RECORDINGS
from paretone.training.session import CHECKPOINT, Diverged, Intervals
from tests.disk import tiny_disk
from tests.engine.training.learning import SHARE, Recorder, same_weights
from tests.engine.training.toy_model import toy_examples, toy_manifest, toy_model
from tests.engine.training.toy_natural import Hummer
from tests.packages import needs
from tests.tools.recipes.natural_f5 import predicted_velocity
from tests.workload import workload

pytestmark = needs("accelerate")

QUICK = GuidanceFreeOptions(0.5, frames=400, warm_up=2, validation_items=4, learning_rate=1e-3, average_decay=0.9)
INTERVALS = Intervals(log_steps=2, validation_steps=3, checkpoint_seconds=0.0, validates_first=True)


@pytest.fixture
def checkpoint(tmp_path: Path) -> F5Checkpoint:
    return read_f5_checkpoint(toy_model(tmp_path / "model"))


@pytest.fixture(scope="module")
def examples() -> Examples:
    return toy_examples()


def _recipe(checkpoint: F5Checkpoint, examples: Examples, **changes: object) -> GuidanceFree:
    options = replace(QUICK, **changes)
    model = diffusion_transformer(checkpoint)
    subject = F5Subject(model, examples, options.frames, options.seed, options.dropping, options.joined_share)
    processes = join_processes("cpu", options.half_precision)
    return GuidanceFree(subject, fingerprint(checkpoint.path), str(checkpoint.path), processes, options)


def _problem(examples: Examples, **options: float) -> F5Problem:
    batch = collate([[one] for one in examples.training[:3]])
    draw = FlowMatchingOptions(**{"drop_audio": 0.0, "drop_both": 0.0, **options})
    return F5Problem(**vars(draw_problem(batch, draw, torch.Generator().manual_seed(2))), ids=batch.ids)


@torch.no_grad()
def _branches(model, problem):
    bare = without_conditions(problem)
    return predicted_velocity(model, problem.ids, problem), predicted_velocity(model, problem.ids, bare)


@pytest.mark.parametrize("weight", [1.5, 0.0, float("nan")])
def test_weights_without_a_fixed_point_are_refused_with_the_reason(weight: float):
    with pytest.raises(SettingError, match="between 0 and 1") as refusal:
        GuidanceFreeOptions(weight)
    if weight >= 1:
        assert "explode" in str(refusal.value)


def test_options_are_checked_and_drop_as_the_papers():
    with pytest.raises(SettingError, match="known: model-guidance, distillation"):
        GuidanceFreeOptions(0.5, method="magic")
    with pytest.raises(SettingError, match="learning rate"):
        GuidanceFreeOptions(0.5, matrix_rate=-1)
    with pytest.raises(SettingError, match="share from 0 to 1"):
        GuidanceFreeOptions(0.5, weight_warm_up=2)
    with pytest.raises(SettingError, match="known: swayed, uniform"):
        recipe.options_of(GuidanceFreeRequest(model="f5-mini", work="none", weight=0.5, times="early"))
    objective = QUICK.objective
    assert objective.drop_both == 0.2
    assert objective.drop_both + objective.drop_audio == pytest.approx(1 - (1 - 0.2) * (1 - 0.3))
    assert recipe.equivalent_guidance(0.5) == 1 and recipe.equivalent_guidance(2 / 3) == pytest.approx(2)
    assert recipe.equivalent_guidance(0.75) == 3


def test_model_guidance_adds_the_difference_of_the_branches(checkpoint: F5Checkpoint, examples: Examples):
    recipe = _recipe(checkpoint, examples)
    problem = _problem(examples)
    conditional, unconditional = _branches(recipe.model, problem)
    assert span_error(conditional, unconditional, problem.span) > 1e-4
    target = recipe.target(problem, conditional, progress=1.0)
    torch.testing.assert_close(target, problem.target + 0.5 * (conditional - unconditional))
    problem = _problem(examples, drop_both=1.0)
    target = recipe.target(problem, _branches(recipe.model, problem)[0], progress=1.0)
    assert torch.equal(target, problem.target)
    problem = _problem(examples, drop_audio=1.0)
    assert not problem.condition.any() and not problem.drops_text
    conditional, unconditional = _branches(recipe.model, problem)
    target = recipe.target(problem, conditional, progress=1.0)
    torch.testing.assert_close(target, problem.target + 0.5 * (conditional - unconditional))
    problem = _problem(examples)
    velocity = predicted_velocity(recipe.model, problem.ids, problem)
    assert not recipe.target(problem, velocity.detach(), progress=1.0).requires_grad
    assert not any(one.requires_grad for one in recipe.teacher.parameters())


def test_the_weight_rises_and_the_difference_can_be_the_averaged_models(checkpoint: F5Checkpoint, examples: Examples):
    recipe = _recipe(checkpoint, examples, weight_warm_up=0.2, latest=0.5)
    problem = _problem(examples)
    conditional, unconditional = _branches(recipe.model, problem)
    gate = (problem.times <= 0.5).float()[:, None, None]
    assert 0 < gate.sum() < len(gate)
    for progress, weight in ((0.0, 0.0), (0.05, 0.125), (0.2, 0.5), (0.9, 0.5)):
        target = recipe.target(problem, conditional, progress)
        torch.testing.assert_close(target, problem.target + gate * weight * (conditional - unconditional))
    recipe = _recipe(checkpoint, examples, average_difference=True)
    with torch.no_grad():
        recipe.average.module.proj_out.weight.mul_(1.5)
    conditional, unconditional = _branches(recipe.average.module, problem)
    target = recipe.target(problem, torch.zeros_like(conditional), progress=1.0)
    torch.testing.assert_close(target, problem.target + 0.5 * (conditional - unconditional))


def test_without_the_stop_gradient_the_whole_formula_is_differentiated(checkpoint: F5Checkpoint, examples: Examples):
    gradients = {}
    for stops in (True, False):
        recipe = _recipe(checkpoint, examples, stop_gradient=stops, weight_warm_up=0.0)
        problem = _problem(examples)
        velocity = predicted_velocity(recipe.model, problem.ids, problem)
        loss = span_error(velocity, recipe.target(problem, velocity, progress=1.0), problem.span)
        (gradients[stops],) = torch.autograd.grad(loss, [recipe.model.proj_out.weight])
    conditional = predicted_velocity(recipe.model, problem.ids, problem)
    unconditional = predicted_velocity(recipe.model, problem.ids, without_conditions(problem))
    error = conditional - (problem.target + 0.5 * (conditional - unconditional))
    (plain,) = torch.autograd.grad(error[problem.span].square().mean(), [recipe.model.proj_out.weight])
    torch.testing.assert_close(gradients[False], plain)
    assert (gradients[True] - plain).norm() > 0.05 * plain.norm()
    for changes in ({"method": DISTILLATION}, {"average_difference": True}):
        with pytest.raises(SettingError, match="keep the stop gradient"):
            GuidanceFreeOptions(0.5, stop_gradient=False, **changes)


def test_distillation_and_validation_follow_the_initial_guided_model(
    checkpoint: F5Checkpoint, examples: Examples, monkeypatch: pytest.MonkeyPatch
):
    recipe = _recipe(checkpoint, examples, method=DISTILLATION, weight=2 / 3)
    with torch.no_grad():
        recipe.model.proj_out.weight.add_(1)  # what is trained does not shape the target
    teacher = checkpoint.build()
    problem = _problem(examples)
    conditional, unconditional = _branches(teacher, problem)
    target = recipe.target(problem, _branches(recipe.model, problem)[0], progress=1.0)
    torch.testing.assert_close(target, conditional + 2 * (conditional - unconditional))
    problem = _problem(examples, drop_both=1.0)
    target = recipe.target(problem, None, progress=1.0)
    torch.testing.assert_close(target, _branches(teacher, problem)[1])
    recipe = _recipe(checkpoint, examples, weight=2 / 3)
    with torch.no_grad():
        recipe.model.proj_out.weight.add_(1)
    half, field = partial(recipe.subject.guided, guidance=Values(guidance=1.0)), recipe.subject.field
    averaged = recipe.average.module
    monkeypatch.setattr(recipe.subject, "field", lambda model, one: (half if model is averaged else field)(model, one))
    halfway = recipe.validate()
    assert (halfway["learnt"], halfway["gap"]) == pytest.approx((1 / 2, 1 / 4), rel=1e-4)


@pytest.mark.parametrize(("half", "matrix_rate"), workload([(False, 0.005), (True, None)], [(False, 0.005)]))
def test_distillation_closes_the_gap_on_held_out_speech(
    checkpoint: F5Checkpoint, examples: Examples, half: bool, matrix_rate: float | None
):
    recipe = _recipe(
        checkpoint, examples, method=DISTILLATION, half_precision=half, weight_warm_up=0.0, matrix_rate=matrix_rate
    )
    before = recipe.validate()
    assert before["gap"] == pytest.approx(1.0, rel=1e-5) and before["learnt"] == pytest.approx(0.0, abs=1e-5)
    assert list(before) == [*(f"guided t={time:.2f}" for time in VALIDATION_TIMES), "gap", "learnt"]
    assert before == recipe.validate()
    started = copy.deepcopy(recipe.model.state_dict())
    for number in range(1, workload(61, 11)):
        recipe.step(number, number / 61)
    after = recipe.validate()
    # With nothing learnt the gap is one and the share learnt zero; with everything, the other way round.
    assert after["gap"] < 1 - SHARE and after["learnt"] > SHARE and abs(1 - after["learnt"]) < 1 - SHARE
    assert all(one.dtype == torch.float32 for one in recipe.model.parameters())
    assert not [name for name, one in recipe.model.named_parameters() if torch.equal(one, started[name])], "all learn"
    assert all(torch.equal(one, started[name]) for name, one in recipe.teacher.named_parameters()), "the teacher stays"


def test_the_export_is_a_checkpoint_that_says_what_it_is(tmp_path: Path, checkpoint: F5Checkpoint, examples: Examples):
    recipe = _recipe(checkpoint, examples, weight=2 / 3, method=DISTILLATION, half_precision=True)
    recipe.step(1, 0.5)
    assert recipe.file_name == "w-0.67.safetensors"
    path = tmp_path / recipe.file_name
    recipe.save(path)
    metadata = metadata_of(path)
    what = {"cfg_free": "true", "weight": "0.666667", "equivalent_guidance": "2", "method": DISTILLATION, "steps": "1"}
    how = {"times": "swayed", "stop_gradient": "true", "weight_warm_up": "0.1", "warm_up": "2"}
    assert metadata == what | how | {"base": fingerprint(checkpoint.path)}
    for name in ("model.yaml", "vocab.txt"):
        (tmp_path / name).write_bytes((checkpoint.path.parent / name).read_bytes())
    exported = read_f5_checkpoint(path)
    for name, value in recipe.average.module.state_dict().items():
        torch.testing.assert_close(exported.weights[name].float(), value, atol=1e-3, rtol=1e-3)


def test_another_runs_state_is_refused(tmp_path: Path, checkpoint: F5Checkpoint, examples: Examples):
    recipe = _recipe(checkpoint, examples)
    state = recipe.state()
    for change, words in (
        ({"draws": state["draws"] * 2}, "2 processes"),
        ({"base": "0" * 64}, "not started from"),
        ({"choices": {"stop_gradient": "false"}}, "stop gradient = 'false', not 'true'"),
    ):
        with pytest.raises(TrainingError, match=words):
            recipe.restore({**state, **change})
    early = {name: value for name, value in state.items() if name != "choices"}
    uniform = _recipe(checkpoint, examples, objective=replace(QUICK.objective, uniform_times=1.0))
    with pytest.raises(TrainingError, match="times = 'swayed', not 'uniform'"):
        uniform.restore(early)
    recipe.restore(early)


def test_muon_goes_on_where_it_stopped(checkpoint: F5Checkpoint, examples: Examples):
    recipe, resumed = (_recipe(checkpoint, examples, matrix_rate=0.005) for _ in range(2))
    with pytest.raises(TrainingError, match="other optimisers"):
        recipe.restore(_recipe(checkpoint, examples).state())
    recipe.step(1, 0.1)
    resumed.restore(copy.deepcopy(recipe.state()))
    assert recipe.step(2, 0.2) == resumed.step(2, 0.2)
    assert same_weights(recipe.model, resumed.model)


def test_the_bundled_weights_were_made_from_the_bundled_model():
    folder, name, weight = resource("models", "f5-mini"), "w-0.67", 2 / 3
    path = folder / "cfg_free" / f"{name}.safetensors"
    assert path.stat().st_size < 16.5e6
    metadata = metadata_of(path)
    assert metadata["cfg_free"] == "true" and float(metadata["weight"]) == pytest.approx(weight, abs=1e-6)
    assert float(metadata["equivalent_guidance"]) == pytest.approx(recipe.equivalent_guidance(weight), abs=1e-5)
    assert metadata["method"] in recipe.METHODS and metadata["base"] == fingerprint(folder / "model.safetensors")
    lines = path.with_name(f"{name}.training.jsonl").read_text(encoding="utf-8").splitlines()
    header, *_, last = map(json.loads, lines)
    assert header["initial_weights"] == metadata["base"] and last["step"] == int(metadata["steps"])


# --- Whole runs -------------------------------------------------------------------------------------------------------
__all__ = ["tiny_disk"]


@pytest.fixture
def job(tmp_path: Path) -> GuidanceFreeRequest:
    speech, folder = toy_manifest(tmp_path), toy_model(tmp_path / "model")
    places = {"manifest": str(speech), "folder": str(folder), "work": str(tmp_path / "work")}
    return GuidanceFreeRequest(model="f5-mini", weight=0.5, steps=4, device="cpu", **places)


def _run(job: GuidanceFreeRequest, recorder: Recorder | None = None, corpus=CorpusOptions(), **changes: object):
    recorder = recorder or Recorder()
    changes = {name: str(value) if isinstance(value, Path) else value for name, value in changes.items()}
    request = replace(job, **changes)
    options = replace(recipe.options_of(request), frames=300, validation_items=4)
    return recipe.fine_tune(request, options, recorder, INTERVALS, corpus), recorder


def test_from_a_manifest_to_a_checkpoint_that_the_engine_finds(job: GuidanceFreeRequest, tmp_path: Path):
    tuned, recorder = _run(job)
    checkpoint = Path(tuned.checkpoint)
    assert checkpoint == own_place("f5-mini") / WEIGHT_SETS / "w-0.50.safetensors"
    assert tuned.steps == 4 and set(tuned.validation) > {"gap"} and metadata_of(checkpoint)["cfg_free"] == "true"
    log = checkpoint.with_name("w-0.50.training.jsonl").read_text(encoding="utf-8")
    header, first, *_, last = map(json.loads, log.splitlines())
    assert header["options"].items() >= {"weight": 0.5, "learning_rate": 3e-4}.items(), "the usual rate"
    assert first["step"] == 0 and first["validation"]["gap"] == pytest.approx(1.0, abs=1e-4)
    assert last["step"] == 4 and "validation" in last
    steps = [one for one in recorder.seen if one.losses]
    assert [one.share for one in steps] == pytest.approx([step / 4 for step in range(1, 5)])
    assert all(one.seconds_left >= 0 for one in steps) and steps[-1].seconds_left == 0
    assert [one.step for one in recorder.seen if one.validation] == [0, 3, 4]
    content = checkpoint.read_bytes()
    second, _ = _run(job, work=tmp_path / "again", steps=1)
    assert Path(second.checkpoint).name == "w-0.50-2.safetensors" and checkpoint.read_bytes() == content
    checkpoint.parent.rename(Path(job.folder) / WEIGHT_SETS)  # As if it had been shipped.
    third = Path(_run(job, work=tmp_path / "third", steps=1, stages=(1,))[0].checkpoint)
    assert third.name == "own-w-0.50.safetensors" and third.with_stem("own-w-0.50-after-1-steps").exists()


def test_it_is_validated_on_an_evaluation_set(job: GuidanceFreeRequest):
    _, recorder = _run(job, steps=1, validation=_evaluation_set(job))
    assert any(line.startswith("Validating on set.lst: 5 lines") for line in recorder.lines)
    rows = read_manifest(Path(job.work) / RECORDINGS)
    assert sum(row.held_out for row in rows) == 5
    lines = Path(job.manifest).read_text(encoding="utf-8").splitlines()
    assert len(rows) - 5 == sum(line.endswith(",train") for line in lines), "rows held out before are left out"


def _evaluation_set(job: GuidanceFreeRequest) -> Path:
    """Five recordings of the manifest as F5-TTS's list."""
    lines = Path(job.manifest).read_text(encoding="utf-8").splitlines()
    path = Path(job.manifest).with_name("set.lst")
    path.write_text("".join("|".join(line.split(",")[:2]) + "\n" for line in lines[1:6]), encoding="utf-8")
    return path


def test_stopped_and_resumed_it_ends_in_the_very_same_bits(job: GuidanceFreeRequest, tmp_path: Path):
    """Cancelled at a step, or killed, which loses no more than the steps since the last checkpoint."""

    class Killed(BaseException):
        """Stands for a power cut."""

    straight, _ = _run(job, work=tmp_path / "straight", export=tmp_path / "a")
    wanted = load_file(straight.checkpoint)
    model = torch.load(tmp_path / "straight" / CHECKPOINT, weights_only=True)["state"]["model"]
    ways = (Cancelled, 2, r"step 2.*to resume from"), (Killed, 3, None)
    for error, at, words in workload(ways, ways[:1]):
        work = tmp_path / error.__name__

        def stop(milestone: TrainingProgress, error: type = error, at: int = at) -> None:
            if milestone.step >= at:
                raise error

        with pytest.raises(error, match=words):
            _run(job, Recorder(stop), work=work)
        assert torch.load(work / CHECKPOINT, weights_only=True)["step"] == 2
        resumed, recorder = _run(job, work=work, resume=True, export=tmp_path / f"of-{error.__name__}")
        assert [one.step for one in recorder.seen if one.losses] == [3, 4]
        found = load_file(resumed.checkpoint)
        assert found.keys() == wanted.keys() and all(torch.equal(found[name], wanted[name]) for name in wanted)
        trained = torch.load(work / CHECKPOINT, weights_only=True)["state"]["model"]
        assert all(torch.equal(value, trained[name]) for name, value in model.items())
        assert straight.validation == resumed.validation
    with pytest.raises(Exception, match=r"belongs to cfg-free model-guidance w=0\.5"):
        _run(job, work=work, weight=0.6, resume=True)
    (work / CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(TrainingError, match="is not a checkpoint, or is damaged"):
        _run(job, work=work, resume=True)


def test_without_a_manifest_a_teacher_speaks(job: GuidanceFreeRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    teachers: list[Hummer] = []

    def teacher() -> Hummer:
        teachers.append(Hummer())
        return teachers[-1]

    monkeypatch.setattr("paretone.training.fine_tuning.NaturalTeacher", teacher)
    folder = toy_model(tmp_path / "natural")
    corpus = CorpusOptions(voices=2, sentences=3, held_out_voices=1, held_out_sentences=2)
    made, _ = _run(job, manifest="", folder=folder, steps=2, corpus=corpus)
    assert made.steps == 2 and "gap" in made.validation
    assert open_corpus(Path(job.work).parent / NATURAL_CORPUS).source == "hibari-tts"
    _run(job, manifest="", folder=folder, steps=1, work=tmp_path / "again")
    assert len(teachers) == 1, "what is there is used again, whatever its size"


def test_a_loss_that_is_no_number_keeps_the_last_checkpoint(job: GuidanceFreeRequest):
    with pytest.raises(Diverged, match=r"step 2.*nan.*last good checkpoint"):
        _run(job, learning_rate=1e30)
    state = torch.load(Path(job.work) / CHECKPOINT, weights_only=True)
    assert state["step"] == 1 and all(value.isfinite().all() for value in state["state"]["model"].values())
    assert not (own_place("f5-mini") / WEIGHT_SETS).exists()


def test_a_disk_too_small_for_a_checkpoint_is_said_before_the_first_step(job: GuidanceFreeRequest, tiny_disk: Path):
    # The prepared speech fits, a checkpoint does not.
    with pytest.raises(TrainingError, match="free space, but a checkpoint takes"):
        _run(job, work=tiny_disk / "work")


@pytest.mark.parametrize("tiny_disk", ["size=5m"], indirect=True)
def test_a_disk_full_later_keeps_the_checkpoint(job: GuidanceFreeRequest, tiny_disk: Path):
    # One checkpoint fits, a second next to it does not.
    with pytest.raises(TrainingError, match="could not be written at step 2: the disk is full"):
        _run(job, work=tiny_disk / "work")
    assert not list((tiny_disk / "work").glob("*.part"))
    assert torch.load(tiny_disk / "work" / CHECKPOINT, weights_only=True)["step"] == 1


def test_what_cannot_be_trained_is_said(job: GuidanceFreeRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(TrainingError, match=r"F5-TTS v1 Base needs speech to learn from: give a manifest"):
        _run(job, model="F5TTS_v1_Base", manifest="")
    done = toy_model(tmp_path / "done", {"cfg_free": "true", "weight": "0.5"})
    with pytest.raises(TrainingError, match="guidance in its weights already"):
        _run(job, folder=str(done))
    with pytest.raises(TrainingError, match="no manifest"):
        _run(job, manifest=tmp_path / "nowhere.csv")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(TrainingError, match=r"paretone\[train\]"):
        _run(job)
    assert not Path(job.work).exists()


def test_stages_are_kept_once_and_are_not_chosen_before_finished_weights(job: GuidanceFreeRequest, tmp_path: Path):
    def stop(milestone: TrainingProgress) -> None:
        if milestone.step >= 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        _run(job, Recorder(stop), stages=(1, 3), times="uniform")
    folder = own_place("f5-mini") / WEIGHT_SETS
    early = folder / "w-0.50-after-1-steps.safetensors"
    content = early.read_bytes()
    tuned, _ = _run(job, stages=(1, 3), times="uniform", resume=True)
    names = {path.stem for path in folder.glob("*.safetensors")}
    assert names == {"w-0.50", "w-0.50-after-1-steps", "w-0.50-after-3-steps"}
    assert early.read_bytes() == content
    base = fingerprint(Path(job.folder) / "model.safetensors")
    assert [(one.steps, one.stage) for one in find_weight_sets([folder], base)] == [(4, False), (1, True), (3, True)]
    (first, *_) = guidance_free.fitting(replace(known("f5-mini"), weight_sets=find_weight_sets([folder], base)), 0.5)
    assert first.path == tuned.checkpoint
    assert metadata_of(Path(tuned.checkpoint))["times"] == "uniform"
    early.unlink()
    assert "w-0.50-after-1-steps is not kept: " in str(_run(job, stages=(1, 3), times="uniform", resume=True)[1].lines)
    assert not early.exists(), "its weights are gone"
    with pytest.raises(TrainingError, match="times = 'uniform', not 'swayed'"):
        _run(job, resume=True)
    with pytest.raises(SettingError, match="numbers of steps from 1"):
        _run(job, stages=(0,))


def test_the_command_passes_every_choice_on(job: GuidanceFreeRequest, capsys: pytest.CaptureFixture[str]):
    place = f"--manifest {job.manifest} --validation {_evaluation_set(job)} --work {job.work} --folder {job.folder}"
    place = [*place.split(), "--device", "cpu", "--threads", "1"]
    chosen = "--w 0.5 --times uniform --no-stop-gradient --weight-warm-up 0 --warm-up 3 --stages 1"
    assert cli.main(["train", "cfg-free", *place, *chosen.split(), *"--steps 2 --frames 300 --json".split()]) == 0
    assert sum(row.held_out for row in read_manifest(Path(job.work) / RECORDINGS)) == 5
    path = Path(json.loads(capsys.readouterr().out)["checkpoint"])
    for one in (path, path.with_stem("w-0.50-after-1-steps")):
        said = metadata_of(one)
        chosen = [said[one] for one in ("times", "stop_gradient", "weight_warm_up", "warm_up")]
        assert chosen == ["uniform", "false", "0", "3"]
