"""Our Qwen3-TTS against the official talker and predictor, in the package's environment."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from safetensors.torch import save_file

from paretone.export.language import LanguageExport, TalkerSource, export_language
from paretone.models import load_model
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.layer_importance import pruned
from paretone.models.qwen3_tts.checkpoint import OfficialFolder, TalkerNames
from paretone.observer import Observer
from paretone.speaking import scripted
from tests import official
from tests.engine.models.official import setting
from tests.engine.models.qwen3_tts.test_qwen3_speech import CUSTOM, RYAN, TEXT, folder_of
from tests.peers.__main__ import main
from tests.peers.official import QWEN3_TTS


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_bench_compares_equal_codes(capsys: pytest.CaptureFixture[str]) -> None:
    official.python(QWEN3_TTS)
    options = ["--device", "cpu", "--layers", "1", "--tokens", "4", "--rounds", "2", "--minutes", "0.001"]
    assert main(["qwen3-tts", "--json", *options]) == 0
    ways = {row["way"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert ways["ours"]["tokens equal"] == "4 of 4" and ways["ours"]["codes equal"] == "48 of 48"
    assert "speed-up" in ways["official, again (A/A)"]


@pytest.mark.slow
def test_a_tokenizer_as_transformers_5_saves_it_reads_the_same(tmp_path: Path) -> None:
    folder, text = release(tmp_path), "It’s 3 o'clock, “yes”:\n <|im_end|> naïve 中文 12345"
    expected = OfficialFolder.read(folder).tokenizer().ids(text)
    saved = pytest.importorskip("transformers").Qwen2Tokenizer.from_pretrained(folder)
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        (folder / name).unlink()
    saved.save_pretrained(folder)
    (folder / "tokenizer_config.json").unlink()
    assert OfficialFolder.read(folder).tokenizer().ids(text) == expected


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_official_class_reads_an_exported_student_and_speaks_its_codes(tmp_path: Path) -> None:
    """A release with two files of an export has fewer layers there, too."""
    python, root = official.python(QWEN3_TTS), release(tmp_path)
    weights = pruned(TalkerSource(root).weights(), (0, 2))
    base = fingerprint(root / "model.safetensors")
    kept = {name: one for name, one in weights.items() if name.startswith(TalkerNames.layers)}
    kept |= {name: weights[name] for name in ("talker.model.norm.weight", "talker.codec_head.weight")}
    (root / "students").mkdir()
    about = {"kind": "student", "base": base, "retained": "[0, 2]", "stage": "recovered", "minutes": "1"}
    save_file(kept, root / "students" / "student.safetensors", about)
    export_language(LanguageExport(CUSTOM, "student", tmp_path / "out", model_folder=str(root)), Observer())
    for name in ("model.safetensors", "config.json"):
        (root / name).write_bytes((tmp_path / "out" / name).read_bytes())
    speech = load_model(CUSTOM, folder=str(root), device="cpu")
    greedy = {"temperature": 0.0, "inner_temperature": 0.0, "repetition_penalty": 1.0}
    ((_, decoding),) = speech.decodings(scripted(speech, TEXT, RYAN, setting(CUSTOM, **greedy)))
    ours = [code for cycle in decoding for code in cycle.codes]
    words = [str(python), "-m", "tests.peers.qwen3_student", str(root), TEXT, RYAN.id]
    done = subprocess.run(words, capture_output=True, text=True, cwd=official.ROOT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["layers"] == 2 and not found["faults"]
    assert len(ours) >= 8 and found["codes"][: len(ours)] == ours


def release(tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder_of("custom_voice"), tmp_path / "release"))
