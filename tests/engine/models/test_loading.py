"""Loading a model from a folder in which something is wrong: which file, and what, is always said."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from torch import Tensor

from paretone import cli
from paretone.errors import Cancelled, CheckpointError
from paretone.models import catalogue, load_model
from paretone.models.catalogue import entry, models, voice_problem
from paretone.models.declaration import Model
from paretone.models.loading import load_vocoder
from paretone.models.minis.natural_vocoder import LatentVocoder
from paretone.models.networks.vocos import Vocos
from paretone.observer import Observer
from paretone.paths import resource
from paretone.setting.knobs import Values, checked
from paretone.setting.plan import imported
from paretone.studies.definition import parse
from paretone.studies.execution import TaskRunner
from paretone.studies.study import Equipment
from paretone.training.fine_tuning import flow_speaker
from paretone.training.requests import FineTuningRequest
from tests.engine.command_line import Console
from tests.engine.models.files.test_checkpoints import POINTER
from tests.engine.recorder import Follower
from tests.engine.small_natural import write_vocoder
from tests.engine.small_vocos import write_vocos


@pytest.mark.parametrize("one", catalogue.models(), ids=lambda one: one.id)
def test_every_entry_can_be_loaded_and_its_own_defaults_are_allowed(one: Model) -> None:
    assert callable(imported(one.loader))
    assert checked(one.options, one.options_with(), one.title) == one.options_with()


def test_a_model_is_available_once_its_weights_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    model = entry("MegaTTS3")
    assert not model.available
    place = model.folder / "diffusion_transformer"
    place.mkdir(parents=True)
    (place / "config.yaml").write_text("win_size: 1200")
    assert not model.available
    (place / "model_only_last.ckpt").write_bytes(b"0")
    assert model.available


def test_recordings_need_latents_only_where_there_is_no_encoder(tmp_path: Path) -> None:
    audio, model = tmp_path / "mine.wav", tmp_path / "model"
    assert voice_problem(audio, "f5-mini") == voice_problem(audio, "megatts3-mini") == ""
    assert "mine.wav has no latents" in voice_problem(audio, "MegaTTS3", str(model))
    (model / "wavvae").mkdir(parents=True)
    (model / "wavvae" / "model_only_last.ckpt").write_bytes(b"0")
    assert voice_problem(audio, "MegaTTS3", str(model)) == ""
    audio.with_suffix(".npy").write_bytes(b"0")
    assert voice_problem(audio, "MegaTTS3") == ""


@pytest.mark.parametrize(
    ("transcript", "said"),
    [
        ("Guten Tag, wie geht es Ihnen heute Morgen, mein Herr?", "looks like German"),
        ("…", "has no words; type the words spoken in it"),
    ],
)
def test_transcripts_that_the_bundled_models_cannot_read_are_told_before(transcript: str, said: str) -> None:
    audio = Path("mine.wav")
    for one in models():
        problem = voice_problem(audio, one.id, transcript=transcript) if not one.voices.latents else ""
        assert (f"The transcript of the recording {said}" in problem) == one.bundled
    assert voice_problem(audio, "f5-mini", transcript="We met in Los Angeles.") == ""
    assert voice_problem(audio, "f5-mini", "own", transcript) == "", "a checkpoint that may read it"


def test_the_folder_decides_which_kind_it_is(tmp_path: Path):
    write_vocoder(tmp_path / "own")
    write_vocos(tmp_path / "official")
    assert isinstance(load_vocoder(tmp_path / "own"), LatentVocoder)
    assert isinstance(load_vocoder(tmp_path / "official"), Vocos)


Damage = Callable[[Path], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The bundled models, with the vocoder, in a place where they can be damaged."""
    for name in ("f5-mini", entry("f5-mini").vocoder):
        shutil.copytree(resource("models", name), tmp_path / "models" / name)
    return tmp_path / "models" / "f5-mini"


def changed(change: Callable[[dict[str, Tensor]], object], name: str = "model.safetensors") -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        weights = load_file(path)
        change(weights)
        save_file(weights, path)

    return damage


KEY, EMBED = "ema_model.transformer.proj_out.weight", "backbone.embed.weight"
VOCODER = "../natural-vocoder/model.safetensors"
POINTED = "is a Git LFS pointer, .*; run 'git lfs pull' in its folder"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (changed(lambda weights: weights.pop(KEY)), r"model\.safetensors .*1 weight missing: proj_out\.weight"),
        (lambda folder: (folder / "model.safetensors").unlink(), "holds no checkpoint"),
        (lambda folder: (folder / "vocab.txt").write_text(POINTER), rf"vocab\.txt .*{POINTED}"),
        (lambda folder: (folder / VOCODER).write_text(POINTER), rf"model\.safetensors .*{POINTED}"),
        (changed(lambda weights: weights.pop(EMBED), VOCODER), r"vocoder.*missing: backbone\.embed\.weight"),
        (lambda folder: (folder / VOCODER).unlink(), r"vocoder.*model\.safetensors"),
    ],
)
def test_what_is_wrong_with_a_model_is_said(folder: Path, damage: Damage, words: str) -> None:
    damage(folder)
    with pytest.raises(CheckpointError, match=words):
        load_model("f5-mini", folder=str(folder), device="cpu")


def test_loading_can_be_cancelled(folder: Path) -> None:
    with pytest.raises(Cancelled):
        load_model("f5-mini", folder=str(folder), device="cpu", check=Follower(cancel_at=1).check)


_COMPILING = """
from paretone.errors import Cancelled
from paretone.models import load_model
from paretone.models.kernels import few_rows

said = []

def check():
    if "Compiling" in said[-1]:
        raise Cancelled

try:
    load_model("lm-mini", status=said.append, check=check)
except Cancelled:
    print(said[-1], few_rows.machine_code() is not None)
"""


def test_compiling_is_said_and_can_be_cancelled(tmp_path: Path) -> None:
    place = {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", _COMPILING]
    done = subprocess.run(command, env=os.environ | place, capture_output=True, text=True, check=True)
    assert "once: 5 to 10 s … True" in done.stdout, "nothing is broken by that"


def test_a_vocoder_may_lie_elsewhere(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="F5 mini comes with its vocoder; leave out"):
        load_model("f5-mini", folder=str(folder), device="cpu", vocoder=str(tmp_path))
    (tmp_path / "bigvgan").mkdir()
    (tmp_path / "bigvgan" / "bigvgan_generator.pt").touch()
    own = tmp_path / "F5TTS_v1_Base"
    shutil.copytree(folder, own)
    for vocoder, words in (("bigvgan", "holds a BigVGAN, which Paretone does not have"), ("nowhere", "nowhere")):
        with pytest.raises(CheckpointError, match=words):
            load_model("F5TTS_v1_Base", folder=str(own), device="cpu", vocoder=str(tmp_path / vocoder))
    shutil.move(folder.parent / "natural-vocoder", tmp_path / "elsewhere")
    model = load_model("F5TTS_v1_Base", folder=str(own), device="cpu", vocoder=str(tmp_path / "elsewhere"))
    assert model.info.checkpoint == str(own / "model.safetensors")
    # Takes are of other weights than with the usual vocoder; of the same one in another place they are not.
    usual = tmp_path / entry("F5TTS_v1_Base").vocoder
    assert model.info.all_weights != model.info.fingerprint, "there is no usual one"
    shutil.copytree(tmp_path / "elsewhere", usual)
    again = load_model("F5TTS_v1_Base", folder=str(own), device="cpu", vocoder=str(tmp_path / "elsewhere"))
    assert again.info.all_weights == again.info.fingerprint == model.info.fingerprint
    shutil.rmtree(usual)
    # So it may for studies, trainings and what is trained of the model's own speech.
    place = {"model": "F5TTS_v1_Base", "folder": str(own), "device": "cpu"}
    asked = {"vocoder": str(tmp_path / "elsewhere"), "sentences": ["Rice."], "grid": {"steps.steps": [2]}}
    study = parse({**place, **asked})
    runner = TaskRunner(Equipment(study.model, study.folder, "", "cpu", vocoder=study.vocoder), load_model)
    assert runner.equip(Observer()).info.checkpoint == model.info.checkpoint
    for vocoder in ("elsewhere", "nowhere"):
        request = FineTuningRequest(**place, work=str(tmp_path), vocoder=str(tmp_path / vocoder))
        ready = flow_speaker(request, entry("F5TTS_v1_Base"), Values(), lambda *_: {}, lambda: None).ready
        with pytest.raises(CheckpointError, match="nowhere") if vocoder == "nowhere" else nullcontext():
            ready()
    train = [*"train cfg-free --weight 0.5 --steps 1 --work".split(), str(tmp_path / "w"), "--vocoder", str(tmp_path)]
    assert cli.main(train) == CheckpointError.exit_code, "a bundled model comes with its vocoder"


def test_the_command_line_names_the_files_to_choose_from(folder: Path, console: Console, tmp_path: Path) -> None:
    shutil.copy(folder / "model.safetensors", folder / "other.safetensors")
    speak = "speak", "--model", "f5-mini", "--folder", folder, "--text", "Rice.", "--out", tmp_path / "o.wav", "--quiet"
    said = console.refusal(*speak, code=CheckpointError.exit_code)
    assert f"Type one of: --folder {folder}/other.safetensors or --folder {folder}/model.safetensors." in said
