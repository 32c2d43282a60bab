"""Exported language models load in transformers, and in the official layout of CosyVoice 2."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from paretone.errors import SettingError
from paretone.export import language
from paretone.export.language import PROVENANCE, LanguageExport, export_language, source_of, student_contents
from paretone.models import catalogue
from paretone.models.cosyvoice2.checkpoint import OfficialFolder
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.trained_weights import find_language_weights
from paretone.models.minis.lm_mini import LmMiniFolder
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.techniques.speculative import SETTINGS_FILE as SETTINGS
from tests.engine.command_line import Console
from tests.engine.export.small_exports import with_companions
from tests.engine.models.llasa import small_release as llasa_release
from tests.engine.small_language import LAYERS, write_draft, write_model, write_student
from tests.engine.speaking import load, setting, spoken
from tests.packages import needs


@pytest.fixture
def folder(tmp_path: Path) -> LmMiniFolder:
    root = write_model(tmp_path / "model")
    write_student(root)
    write_draft(root, lambda weight: weight * 1.5)
    return LmMiniFolder(root)


def written(contents: dict[str, bytes], folder: Path) -> Path:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def source(folder: LmMiniFolder) -> language.HuggingFaceSource:
    return source_of(catalogue.entry("lm-mini"), str(folder.root))


def test_a_student_loads_in_transformers_and_says_the_same(folder: LmMiniFolder, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    base = fingerprint(folder.weights_path)
    (student,) = find_language_weights([folder.root], base).students
    place = written(student_contents(source(folder), base, student), tmp_path / "student")
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
    assert (said["base"], said[language.RETAINED]) == (base, [0, 2])
    assert (said["base_layers"], said["stage"]) == (LAYERS, "recovered")


def test_a_draft_is_written_complete_and_with_its_settings(folder: LmMiniFolder, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    base = fingerprint(folder.weights_path)
    (draft,) = find_language_weights([folder.root], base).drafts
    place = written(language.draft_contents(source(folder), base, draft, Values(tolerance=0.3)), tmp_path / "draft")
    assert transformers.AutoModelForCausalLM.from_pretrained(place).config.num_hidden_layers == 2
    own, tensors = load_file(folder.weights_path), load_file(place / "model.safetensors")
    # The first layer and the head are the trained ones, the other is the target's last.
    name = "mlp.up_proj.weight"
    assert torch.equal(tensors[f"model.layers.0.{name}"], own[f"model.layers.0.{name}"] * 1.5)
    assert torch.equal(tensors[f"model.layers.1.{name}"], own[f"model.layers.{LAYERS - 1}.{name}"])
    assert torch.equal(tensors["lm_head.weight"], own["lm_head.weight"] * 1.5)
    settings = json.loads((place / SETTINGS).read_text())
    assert (settings["tolerance"], settings["draft_length"], settings["target"]) == (0.3, 3, base)


@pytest.mark.parametrize("kind", ["student", "draft"])
def test_llasa_loads_in_transformers_with_a_head_of_its_own(tmp_path: Path, kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    root = with_companions("Llasa-1B", tmp_path / "Llasa-1B")
    export_language(LanguageExport("Llasa-1B", kind, tmp_path / "out", model_folder=str(root)), Observer())
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert theirs.config.num_hidden_layers == 2 and not theirs.config.tie_word_embeddings
    spoken = theirs.lm_head.weight[llasa_release.LOCAL].float()
    expected = load_file(root / f"{kind}s" / f"{kind}.safetensors")["lm_head.weight"][llasa_release.LOCAL].float()
    assert torch.allclose(spoken, expected, rtol=1e-2)
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == (root / "tokenizer.json").read_bytes()


@needs("onnx", "onnxruntime", "tokenizers")
@pytest.mark.parametrize("kind", ["student", "draft"])
def test_cosyvoice_2_is_written_as_its_release_has_it(tmp_path: Path, kind: str) -> None:
    root = with_companions("CosyVoice2-0.5B", tmp_path / "CosyVoice2-0.5B")
    job = LanguageExport("CosyVoice2-0.5B", kind, tmp_path / "out", model_folder=str(root))
    made = {path.relative_to(tmp_path / "out").as_posix() for path in export_language(job, Observer())[1]}
    assert made == {"llm.pt", "CosyVoice-BlankEN/config.json", PROVENANCE} | ({SETTINGS} if kind == "draft" else set())
    # In their places, they are a release that speaks.
    for name in ("llm.pt", "CosyVoice-BlankEN/config.json"):
        (root / name).write_bytes((tmp_path / "out" / name).read_bytes())
    smaller = OfficialFolder(root).language_model()
    assert smaller.tokens.transformer.config.layers == 2
    trained = load_file(root / f"{kind}s" / f"{kind}.safetensors")["llm_decoder.weight"]
    assert torch.equal(smaller.tokens.head, trained)


def test_a_student_of_lm_mini_speaks_from_where_it_was_written(folder: LmMiniFolder, tmp_path: Path) -> None:
    job = LanguageExport("lm-mini", "student", tmp_path / "deep" / "out", model_folder=str(folder.root))
    assert tmp_path / "deep" / "out" / "tokenizer" / "model.safetensors" in export_language(job, Observer())[1]
    model = load(tmp_path / "deep" / "out")
    assert model.info.layers == 2
    assert len(spoken(model, setting()).samples)


def test_flow_models_have_nothing_to_write() -> None:
    with pytest.raises(SettingError, match="F5 mini decodes no tokens"):
        source_of(catalogue.entry("f5-mini"))


def test_the_command_writes_all_files_and_replaces_none(folder: LmMiniFolder, tmp_path: Path, console: Console) -> None:
    out = tmp_path / "out"
    command = ["export-model", "draft", "--folder", folder.root, "--out", out, "--tolerance"]
    said = console.data(*command, 0.2, "--json")["files"]
    assert set(said) == {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert json.loads((out / SETTINGS).read_text())["tolerance"] == 0.2
    assert "is kept" in console.refusal(*command, 0.4)
    console.refusal(*command, 7, code=2)


def test_a_model_without_students_says_how_to_come_by_one(tmp_path: Path, console: Console) -> None:
    given = "--folder", write_model(tmp_path / "model"), "--out", tmp_path / "out"
    assert "paretone train" in console.refusal("export-model", "student", *given, code=2)
    assert not (tmp_path / "out").exists()
