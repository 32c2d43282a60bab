"""Whole runs of fine-tuning on a small model: begun, interrupted, resumed, refused."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from paretone import cli
from paretone.errors import Cancelled, SettingError, TrainingError
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.trained_weights import WEIGHT_SETS, find_weight_sets
from paretone.paths import own_place
from paretone.techniques import guidance_free
from paretone.techniques.guidance_free import GuidanceFreeRequest, recipe
from paretone.techniques.guidance_free.recipe import fine_tune, options_of
from paretone.techniques.resolving import known
from paretone.training import session
from paretone.training.manifest import read_manifest
from paretone.training.natural_corpus import NATURAL_CORPUS, CorpusOptions, open_corpus
from paretone.training.requests import Trained, TrainingProgress
from paretone.training.runs import RECORDINGS
from paretone.training.session import CHECKPOINT, Diverged, Intervals
from tests.disk import tiny_disk
from tests.engine.training.learning import Recorder
from tests.engine.training.toy_model import toy_manifest, toy_model
from tests.engine.training.toy_natural import Hummer
from tests.packages import needs
from tests.workload import workload

__all__ = ["tiny_disk"]

pytestmark = needs("accelerate")

INTERVALS = Intervals(log_steps=2, validation_steps=3, checkpoint_seconds=0.0, validates_first=True)


OPTIONS = {"frames": 300, "validation_items": 4}


@pytest.fixture
def job(tmp_path: Path) -> GuidanceFreeRequest:
    return GuidanceFreeRequest(
        model="f5-mini",
        manifest=str(toy_manifest(tmp_path)),
        work=str(tmp_path / "work"),
        weight=0.5,
        steps=4,
        folder=str(toy_model(tmp_path / "model")),
        device="cpu",
    )


def _run(
    job: GuidanceFreeRequest,
    recorder: Recorder | None = None,
    corpus: CorpusOptions = CorpusOptions(),
    **changes: object,
) -> tuple[Trained, Recorder]:
    recorder = recorder or Recorder()
    changes = {name: str(value) if isinstance(value, Path) else value for name, value in changes.items()}
    request = replace(job, **changes)
    options = replace(options_of(request), **OPTIONS)
    return fine_tune(request, options, recorder, INTERVALS, corpus), recorder


def _weights(path: str) -> dict[str, torch.Tensor]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)


def test_from_a_manifest_to_a_checkpoint_that_the_engine_finds(job: GuidanceFreeRequest, tmp_path: Path):
    tuned, recorder = _run(job)
    checkpoint = Path(tuned.checkpoint)
    assert checkpoint == own_place("f5-mini") / WEIGHT_SETS / "w-0.50.safetensors"
    assert tuned.steps == 4
    assert set(tuned.validation) > {"gap"}
    with safe_open(tuned.checkpoint, framework="pt") as file:
        assert file.metadata()["cfg_free"] == "true"
    log = checkpoint.with_name("w-0.50.training.jsonl").read_text(encoding="utf-8")
    header, first, *_, last = map(json.loads, log.splitlines())
    assert header["options"]["weight"] == 0.5
    assert header["options"]["learning_rate"] == 3e-4  # the usual one of a small model
    assert first["step"] == 0 and first["validation"]["gap"] == pytest.approx(1.0, abs=1e-4)
    assert last["step"] == 4 and "validation" in last
    steps = [one for one in recorder.seen if one.losses]
    assert [one.share for one in steps] == pytest.approx([step / 4 for step in range(1, 5)])
    assert all(one.seconds_left >= 0 for one in steps) and steps[-1].seconds_left == 0
    assert [one.step for one in recorder.seen if one.validation] == [0, 3, 4]
    content = checkpoint.read_bytes()
    second, _ = _run(job, work=tmp_path / "again", steps=1)
    assert Path(second.checkpoint).name == "w-0.50-2.safetensors" and checkpoint.read_bytes() == content


def test_it_is_validated_on_an_evaluation_set(job: GuidanceFreeRequest):
    chosen = _evaluation_set(job)
    _, recorder = _run(job, steps=1, validation=chosen)
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
    wanted = _weights(straight.checkpoint)
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
        found = _weights(resumed.checkpoint)
        assert found.keys() == wanted.keys() and all(torch.equal(found[name], wanted[name]) for name in wanted)
        trained = torch.load(work / CHECKPOINT, weights_only=True)["state"]["model"]
        assert all(torch.equal(value, trained[name]) for name, value in model.items())
        assert straight.validation == resumed.validation
    with pytest.raises(Exception, match=r"belongs to cfg-free model-guidance w=0\.5"):
        _run(job, work=work, weight=0.6, resume=True)
    (work / CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(TrainingError, match="is not a checkpoint, or is damaged"):
        _run(job, work=work, resume=True)


def test_without_a_manifest_the_bundled_model_learns_from_its_teacher(
    job: GuidanceFreeRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
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


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_good_checkpoint(
    job: GuidanceFreeRequest, monkeypatch: pytest.MonkeyPatch
):
    target = recipe.GuidanceFree._target

    def broken(self: recipe.GuidanceFree, *arguments: object) -> torch.Tensor:
        result = target(self, *arguments)
        return result * float("nan") if self.steps == 1 else result

    monkeypatch.setattr(recipe.GuidanceFree, "_target", broken)
    with pytest.raises(Diverged, match=r"step 2.*nan.*last good checkpoint"):
        _run(job)
    state = torch.load(Path(job.work) / CHECKPOINT, weights_only=True)
    assert state["step"] == 1
    assert all(value.isfinite().all() for value in state["state"]["model"].values())
    assert not (own_place("f5-mini") / WEIGHT_SETS).exists()


def test_a_disk_too_small_for_a_checkpoint_is_said_before_the_first_step(job: GuidanceFreeRequest, tiny_disk: Path):
    # The prepared speech fits, a checkpoint does not.
    with pytest.raises(TrainingError, match="free space, but a checkpoint takes"):
        _run(job, work=tiny_disk / "work")


def test_a_disk_that_fills_up_later_keeps_the_last_good_checkpoint(
    job: GuidanceFreeRequest, tiny_disk: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(session.TrainingSession, "_require_space", lambda self: None)
    with pytest.raises(TrainingError, match="could not be written at step 1: the disk is full"):
        _run(job, work=tiny_disk / "work")
    assert not list((tiny_disk / "work").glob("*.part"))


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
    assert sorted(path.name for path in folder.glob("*.safetensors")) == [
        "w-0.50-after-1-steps.safetensors",
        "w-0.50-after-3-steps.safetensors",
        "w-0.50.safetensors",
    ]
    assert early.read_bytes() == content
    base = fingerprint(Path(job.folder) / "model.safetensors")
    found = [(one.steps, one.stage) for one in find_weight_sets([folder], base)]
    assert found == [(4, False), (1, True), (3, True)]
    (first, *_) = guidance_free.fitting(replace(known("f5-mini"), weight_sets=find_weight_sets([folder], base)), 0.5)
    assert first.path == tuned.checkpoint
    with safe_open(tuned.checkpoint, framework="pt") as file:
        assert file.metadata()["times"] == "uniform"
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
        with safe_open(one, framework="pt") as file:
            said = file.metadata()
        chosen = [said[one] for one in ("times", "stop_gradient", "weight_warm_up", "warm_up")]
        assert chosen == ["uniform", "false", "0", "3"]
