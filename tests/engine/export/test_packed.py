"""Exported weights: from an installation whose weights are packed, and as safetensors files written piece by piece."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, save_file

from paretone.export.copied import paretone_profile
from paretone.export.delivery import deliver
from paretone.export.exported_weights import DTYPES, safetensors_file
from paretone.export.language import source_of, student_contents
from paretone.export.programs import f5_tts
from paretone.export.targets import export
from paretone.models.catalogue import entry
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.files.checkpoints import fingerprint, is_packed_file, metadata_of, read_weights
from paretone.models.files.trained_weights import find_language_weights
from paretone.observer import Observer
from paretone.setting.knobs import defaults
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import average_velocity, guidance_free
from tests.engine.small_language import write_draft, write_model, write_student
from tests.engine.small_packed import shipped_packed

MODEL = entry("f5-mini")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """F5 mini as the package has it."""
    folder = tmp_path_factory.mktemp("packed") / "models"
    shutil.copytree(MODEL.folder, folder / MODEL.id)
    with pytest.MonkeyPatch.context() as patch:
        yield shipped_packed(folder, patch) / MODEL.id


def exported(installed: Path, out: Path, target: str, *used: UsedTechnique) -> tuple[Path, Path]:
    setting = Setting(MODEL.id, MODEL.options_with())
    for one in used:
        setting = setting.with_technique(one)
    profile = Profile(setting, fingerprint(MODEL.folder / "model.safetensors"), MODEL.id)
    written = export(profile, target, out, Observer(), str(installed))
    (weights,) = (path for path in written if path.suffix == ".safetensors")
    assert {"model.yaml", "vocab.txt"} <= {path.name for path in written}
    return weights, out


def equal(path: Path, packed: Path) -> bool:
    found, expected = load(path.read_bytes()), read_weights(packed)
    return found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)


def test_the_checkpoint_goes_along_as_other_software_cannot_read_a_packed_one(installed: Path, tmp_path: Path) -> None:
    weights, out = exported(installed, tmp_path / "out", "f5-tts")
    assert weights.name == "model.safetensors" and is_packed_file(installed / weights.name)
    assert equal(weights, installed / weights.name)
    assert paretone_profile.read(out)["probes"] == f5_tts.probes(read_f5_checkpoint(weights).weights)


@pytest.mark.parametrize(
    ("technique", "target", "kept"),
    [
        (guidance_free.TECHNIQUE, "safetensors", "cfg_free/w-0.67.safetensors"),
        (average_velocity.TECHNIQUE, "average-velocity", "intervals/guidance-0.7.safetensors"),
    ],
)
def test_weights_trained_from_it_are_exported_whole(
    installed: Path, tmp_path: Path, technique: object, target: str, kept: str
) -> None:
    used = UsedTechnique(technique.name, defaults(technique.knobs), fingerprint(MODEL.folder / kept))
    weights, _ = exported(installed, tmp_path / "out", target, used)
    assert equal(weights, installed / kept) and metadata_of(weights) == metadata_of(MODEL.folder / kept)


def test_students_and_their_tokenizer_are_exported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = write_model(tmp_path / "models" / "lm")
    write_student(plain)
    write_draft(plain)
    codec = plain / "tokenizer" / "model.safetensors"
    save_file({name: value.half() for name, value in load_file(codec).items()}, codec)
    folder = shipped_packed(tmp_path / "models", monkeypatch) / "lm"
    base = fingerprint(plain / "model.safetensors")
    found = find_language_weights([folder], base)
    assert len(found.drafts) == 1 and not found.foreign
    (student,) = found.students
    contents = student_contents(source_of(entry("lm-mini"), str(folder)), base, student)
    tokenizer = "tokenizer/model.safetensors"
    for name, packed in (("model.safetensors", Path(student.path)), (tokenizer, folder / tokenizer)):
        (tmp_path / "out.safetensors").write_bytes(contents[name])
        assert is_packed_file(packed) and equal(tmp_path / "out.safetensors", packed)


def test_the_library_reads_every_kind_back(tmp_path: Path) -> None:
    tensors = {str(kind): torch.arange(6).reshape(2, 3).to(kind) for kind in DTYPES}
    tensors |= {"turned": torch.randn(3, 5).T, "number": torch.tensor(3), "none": torch.zeros(0, 2), "é": torch.ones(1)}
    made = safetensors_file(tensors, {"b": "2", "a": "1"})
    deliver(tmp_path, {"w.safetensors": made}, lambda done, total: None)
    assert (tmp_path / "w.safetensors").stat().st_size == made.size
    with safe_open(tmp_path / "w.safetensors", framework="pt") as file:
        assert file.metadata() == {"a": "1", "b": "2"}
    read = load_file(tmp_path / "w.safetensors")
    assert read.keys() == tensors.keys()
    assert all(read[name].dtype == one.dtype and torch.equal(read[name], one) for name, one in tensors.items())
