"""What is exported loads where it is meant to: in transformers, and in the official layout of CosyVoice 2."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine import cli
from engine.errors import SettingError
from engine.export.language import LLM, PROVENANCE, RETAINED, SETTINGS, draft_contents, pruned_llm, student_contents
from engine.knobs import Values
from engine.models.causal import CausalConfig
from engine.models.checkpoints import fingerprint
from engine.models.cosyvoice2.language_model import LanguageModel
from engine.models.language_weights import find_language_weights
from engine.models.lm_mini.checkpoint import LmMiniFolder
from engine.setting import Engaged
from engine.techniques import speculative
from tests.engine.small_language import LAYERS, write_draft, write_model, write_student
from tests.parity.fixtures import SHIPPED, Fixture

COSYVOICE = Fixture(SHIPPED / "ar", "cosyvoice2_lm")


@pytest.fixture
def folder(tmp_path: Path) -> LmMiniFolder:
    root = write_model(tmp_path / "model")
    write_student(root)
    write_draft(root, lambda weight: weight * 1.5)
    return LmMiniFolder(root)


def written(contents: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_student_loads_in_transformers_and_says_the_same(folder: LmMiniFolder, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    base = fingerprint(folder.weights_path)
    (student,) = find_language_weights([folder.root], base).students
    place = written(student_contents(folder, base, student), tmp_path / "student")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32).eval()
    assert theirs.config.num_hidden_layers == 2
    ours, layout = folder.student(student, torch.device("cpu")), folder.layout()
    ids = torch.arange(3, 3 + 20)[None]
    with torch.inference_mode():
        found = theirs(ids).logits[..., layout.rows]
        embedded = torch.nn.functional.embedding(ids, ours.tables["text"])
        expected = ours.tokens.logits(ours.tokens.transformer(embedded))
    assert torch.allclose(found, expected, atol=1e-3 * float(expected.abs().max()))
    said = json.loads((place / PROVENANCE).read_text())
    assert (said["base"], said[RETAINED], said["base_layers"], said["stage"]) == (base, [0, 2], LAYERS, "recovered")


def test_a_draft_is_written_complete_and_with_its_settings(folder: LmMiniFolder, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    base = fingerprint(folder.weights_path)
    (draft,) = find_language_weights([folder.root], base).drafts
    contents = draft_contents(folder, base, draft, Engaged(speculative.NAME, Values(tolerance=0.3)))
    place = written(contents, tmp_path / "draft")
    assert transformers.AutoModelForCausalLM.from_pretrained(place).config.num_hidden_layers == 2
    own, tensors = load_file(folder.weights_path), load_file(place / "model.safetensors")
    # The first layer and the head are the trained ones, the other is the target's last.
    name = "mlp.up_proj.weight"
    assert torch.equal(tensors[f"model.layers.0.{name}"], own[f"model.layers.0.{name}"] * 1.5)
    assert torch.equal(tensors[f"model.layers.1.{name}"], own[f"model.layers.{LAYERS - 1}.{name}"])
    assert torch.equal(tensors["lm_head.weight"], own["lm_head.weight"] * 1.5)
    settings = json.loads((place / SETTINGS).read_text())
    assert (settings["tolerance"], settings["draft_length"], settings["target"]) == (0.3, 3, base)


def test_cosyvoice_2_loads_with_fewer_layers_strictly() -> None:
    weights, config = dict(COSYVOICE.weights), COSYVOICE.description["qwen2_config"]
    weights.setdefault("llm.model.lm_head.weight", weights["llm.model.model.embed_tokens.weight"])
    contents = pruned_llm(weights, config, (0, 2, 3))
    loaded = torch.load(io.BytesIO(contents[LLM]), weights_only=True)
    smaller = json.loads(contents["config.json"])
    assert smaller["num_hidden_layers"] == 3 and smaller[RETAINED] == [0, 2, 3]
    model = LanguageModel.from_official(loaded, CausalConfig.read(smaller), "pruned")
    whole = LanguageModel.from_official(weights, CausalConfig.read(config), "whole")
    embedded = whole.embed_speech(range(20))[None]
    expected = whole.tokens.transformer(embedded, skip=frozenset({1}))
    assert torch.allclose(model.tokens.transformer(embedded), expected, atol=1e-5)


def test_the_pruned_weights_are_those_of_an_official_qwen2() -> None:
    transformers = pytest.importorskip("transformers")
    contents = pruned_llm(COSYVOICE.weights, COSYVOICE.description["qwen2_config"], (1, 3))
    config = transformers.Qwen2Config(**json.loads(contents["config.json"]))
    loaded = torch.load(io.BytesIO(contents[LLM]), weights_only=True)
    prefix = "llm.model.model."
    inner = {name.removeprefix(prefix): value for name, value in loaded.items() if name.startswith(prefix)}
    transformers.Qwen2Model(config).load_state_dict(inner, strict=True)


def test_layers_that_the_model_has_not_are_refused() -> None:
    with pytest.raises(SettingError, match="some of 0 to 3"):
        pruned_llm(COSYVOICE.weights, COSYVOICE.description["qwen2_config"], (0, 4))


def test_the_command_writes_all_files_and_replaces_none(
    folder: LmMiniFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "export-model",
        "draft",
        "--folder",
        str(folder.root),
        "--out",
        str(tmp_path / "out"),
        "--tolerance",
        "0.2",
    ]
    assert cli.main([*command, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["files"]) == {path.name for path in (tmp_path / "out").iterdir()}
    assert json.loads((tmp_path / "out" / SETTINGS).read_text())["tolerance"] == 0.2
    assert cli.main([*command[:-1], "0.4"]) != 0
    assert "stays as it is" in capsys.readouterr().err
    assert cli.main([*command[:-1], "7"]) == 2


def test_a_model_without_students_says_how_to_come_by_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    root = write_model(tmp_path / "model")
    assert cli.main(["export-model", "student", "--folder", str(root), "--out", str(tmp_path / "out")]) == 2
    assert "paretone train" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
