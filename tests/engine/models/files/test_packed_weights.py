import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, save_file
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models import load_model
from paretone.models.files import bundled
from paretone.models.files.bundled import FORMAT, LAYERS, PACKED, STEPS
from paretone.models.files.checkpoints import Shards, fingerprint, is_packed_file, metadata_of, plain_file, read_weights
from paretone.models.files.layer_importance import pruned
from paretone.paths import resource
from tests.engine.small_packed import packing


def test_every_bundled_weight_file_is_listed_with_its_sha256() -> None:
    root = resource("models")
    there = {path.relative_to(root).as_posix(): path for path in root.rglob("*.safetensors")}
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in there.items()}
    assert bundled.listed() == {name: bundled.original(digest) for name, digest in digests.items()}, (
        "weights have changed: python packaging/packing.py"
    )


CHANGED = "f5-mini/model.safetensors", "natural-vocoder/model.safetensors", "f5-mini/cfg_free/w-0.50.safetensors"


@pytest.mark.parametrize("name", CHANGED)
def test_a_bundled_file_that_was_changed_a_little_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for model in ("f5-mini", "natural-vocoder"):
        shutil.copytree(resource("models", model), tmp_path / model)
    shutil.copy(resource("models", bundled.LIST), tmp_path)
    monkeypatch.setattr(bundled, "root", lambda: tmp_path)
    if name == CHANGED[0]:
        speech = load_model("f5-mini", folder=str(tmp_path / "f5-mini"), device="cpu")
        assert speech.info.fingerprint == bundled.listed()[name]
    weights = load_file(tmp_path / name)
    sizes = {one: value.numel() for one, value in weights.items() if value.is_floating_point()}
    weights[max(sizes, key=lambda one: sizes[one])].view(-1)[0] += 0.25
    save_file(weights, tmp_path / name, metadata=metadata_of(tmp_path / name))
    with pytest.raises(CheckpointError, match=f"{name} is not the file that Paretone ships: its SHA-256 begins with"):
        load_model("f5-mini", folder=str(tmp_path / "f5-mini"), device="cpu")


MODEL, STUDENT, GUIDED = "m/model.safetensors", "m/students/student.safetensors", "m/cfg_free/w.safetensors"
KEPT = (0, 2)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def weights() -> dict[str, Tensor]:
    """Of three layers; rows differ in size, and one is zero."""
    torch.manual_seed(0)
    scales = torch.logspace(-3, 1, 64)[:, None]
    scales[5] = 0
    made = {f"body.layers.{layer}.weight": (torch.randn(64, 128) * scales).half() for layer in range(3)}
    made |= {f"body.layers.{layer}.bias": torch.randn(64).half() for layer in range(3)}
    return made | {"conv.weight": torch.randn(16, 16, 31).half(), "pairs.weight": torch.randn(4096, 2).half()} | OTHERS


OTHERS = {
    "step": torch.tensor(7),
    "on": torch.tensor(True),
    "freq": torch.rand(16),
    "codes": torch.arange(-64, 64, dtype=torch.int8).repeat(64, 1),
}


def trained(tensors: Mapping[str, Tensor], much: float = 0.1) -> dict[str, Tensor]:
    torch.manual_seed(1)
    return {
        name: (value + much * torch.randn(value.shape) * value.float().std()).half()
        if value.dtype.itemsize == 2
        else value
        for name, value in tensors.items()
    }


@pytest.fixture
def models(tmp_path: Path) -> Path:
    root = tmp_path / "models"
    for name in (MODEL, STUDENT, GUIDED):
        (root / name).parent.mkdir(parents=True)
    save_file(weights(), root / MODEL, {"format": "pt", "steps": "9"})
    told = {"base": sha256(root / MODEL), "kind": "student", "retained": json.dumps(KEPT)}
    save_file(trained(pruned(weights(), KEPT)), root / STUDENT, told)
    guided = trained(weights()) | {"more.weight": torch.randn(64, 64).half()}
    save_file(guided, root / GUIDED, {"base": sha256(root / MODEL), "cfg_free": "true"})
    return root


@pytest.fixture
def packed(models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, packed, as if it shipped."""
    target = models.with_name("packed")
    packing.pack_models(models, target)
    monkeypatch.setattr(bundled, "root", lambda: target)
    return target


def error(found: Tensor, value: Tensor, of: Tensor) -> float:
    """Root mean square error of a tensor, as a share of ``of``."""
    return float((found.float() - value.float()).norm() / of.float().norm())


@pytest.mark.parametrize("name", [MODEL, STUDENT, GUIDED])
def test_what_was_packed_is_read_as_before_but_for_a_small_error(models: Path, packed: Path, name: str) -> None:
    before, after = read_weights(models / name), read_weights(packed / name)
    assert {key: (value.shape, value.dtype) for key, value in before.items()} == {
        key: (value.shape, value.dtype) for key, value in after.items()
    }
    assert metadata_of(packed / name) == metadata_of(models / name)
    layers = [key for key in before if "layers" in key and key.endswith(".weight")] + ["conv.weight"]
    assert all(error(after[key], before[key], before[key]) < 0.01 for key in layers)
    assert all(torch.equal(after[key], before[key]) for key in before if key not in layers)
    if name != MODEL:
        base = read_weights(models / MODEL)
        base = pruned(base, KEPT) if name == STUDENT else base
        assert all(error(after[key], before[key], before[key].float() - base[key].float()) < 0.08 for key in layers)


def test_packed_weights_are_known_by_what_they_were_packed_from(models: Path, packed: Path) -> None:
    for name in (MODEL, STUDENT, GUIDED):
        assert fingerprint(packed / name) == sha256(models / name) != sha256(packed / name)
        bundled.require_shipped(packed / name, fingerprint(packed / name))
    assert bundled.listed() == {name: sha256(models / name) for name in sorted((MODEL, STUDENT, GUIDED))}


def test_a_file_of_ones_own_cannot_pass_for_one_that_ships(packed: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.safetensors"
    with safe_open(packed / MODEL, "pt") as file:
        tensors, told = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    tensors["body.layers.0.bias"] += 1
    save_file(tensors, own, told)
    assert fingerprint(own) == sha256(own)
    bundled.require_shipped(own, "0" * 64)
    bundled.verified_meanwhile([tmp_path])()
    own.replace(packed / MODEL)
    with pytest.raises(CheckpointError, match="is not the file that Paretone ships"):
        bundled.require_shipped(packed / MODEL, fingerprint(packed / MODEL))


def test_packing_gives_the_same_file_every_time(models: Path, packed: Path, tmp_path: Path) -> None:
    again, twice = tmp_path / "again", tmp_path / "twice"
    packing.pack_models(models, again)
    packing.pack_models(packed, twice)
    for name in (MODEL, STUDENT, GUIDED, bundled.LIST, bundled.PACKED_LIST):
        assert (again / name).read_bytes() == (packed / name).read_bytes()
    assert json.loads((twice / bundled.LIST).read_text()) == bundled.listed()
    first, second = read_weights(packed / STUDENT), read_weights(twice / STUDENT)
    key = "body.layers.1.weight"
    assert error(second[key], first[key], first[key]) < 0.01


@pytest.mark.parametrize("name", [MODEL, STUDENT])
def test_other_software_gets_a_plain_file(models: Path, packed: Path, name: str) -> None:
    assert is_packed_file(packed / name) and not is_packed_file(models / name)
    assert plain_file(models / name) == (models / name).read_bytes()
    content = plain_file(packed / name)
    expected = read_weights(packed / name)
    found = load(content)
    assert found.keys() == expected.keys() and all(torch.equal(found[key], expected[key]) for key in found)
    (packed / "exported.safetensors").write_bytes(content)
    assert metadata_of(packed / "exported.safetensors") == metadata_of(models / name)


@pytest.mark.parametrize("content", ["{", '{"a": 1}'])
def test_a_damaged_list_is_said(packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setattr(bundled, "root", lambda: tmp_path)
    (tmp_path / bundled.PACKED_LIST).write_text(content)
    with pytest.raises(CheckpointError, match=r"packed\.json .*; install Paretone again"):
        fingerprint(packed / MODEL)


def test_shards_are_read_unpacked_too(models: Path, packed: Path) -> None:
    found, others = Shards.find(packed / "m").read()
    expected = read_weights(packed / MODEL)
    assert not others and all(torch.equal(found[key], expected[key]) for key in expected)
    assert Shards.find(packed / "m").shapes() == {key: tuple(value.shape) for key, value in weights().items()}


def rewritten(path: Path, told: Mapping[str, str | None] = {}, **tensors: Tensor) -> None:
    with safe_open(path, "pt") as file:
        content = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata() | told
    save_file(content | tensors, path, {name: value for name, value in metadata.items() if value is not None})


def test_differences_from_another_base_or_without_theirs_are_refused_when_they_are_read(packed: Path) -> None:
    rewritten(packed / MODEL, step=torch.tensor(8))
    said = r"student\.safetensors holds differences from .*model\.safetensors, whose"
    with pytest.raises(CheckpointError, match=said):
        read_weights(packed / STUDENT)
    (packed / MODEL).unlink()
    assert metadata_of(packed / STUDENT)["kind"] == "student"
    with pytest.raises(CheckpointError, match=r"cannot be read: .*Install Paretone again; to use these weights"):
        read_weights(packed / STUDENT)


@pytest.mark.parametrize(
    ("told", "tensors", "said"),
    [
        ({PACKED: "2"}, {}, "packed in a form '2' that this version does not know"),
        ({LAYERS: "[0]"}, {}, "does not say which layer of its base 'body.layers.1.weight' belongs to"),
        ({}, {f"body.layers.1.weight{STEPS}": torch.ones(3)}, "its steps do not fit each other"),
        ({}, {"body.layers.1.weight": torch.ones(64, 128)}, "its steps do not fit each other"),
        ({}, {"body.layers.1.weight": torch.ones(64, 2).to(torch.int8)}, "does not fit 'body.layers.2.weight' of its"),
    ],
)
def test_damage_is_said(packed: Path, told: dict[str, str], tensors: dict[str, Tensor], said: str) -> None:
    assert FORMAT == "1"
    rewritten(packed / STUDENT, told, **tensors)
    with pytest.raises(CheckpointError, match=r"student\.safetensors is damaged") as raised:
        read_weights(packed / STUDENT)
    assert said in str(raised.value)
