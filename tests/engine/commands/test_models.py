"""``paretone models``: what one model has, and hints that name what to type; which trained weights a technique uses."""

import re
from pathlib import Path

import pytest

from paretone.models import catalogue
from paretone.models.files.checkpoints import fingerprint
from paretone.setting.knobs import Number
from paretone.setting.profile import Profile
from paretone.techniques import applying_to
from tests.engine.command_line import Console
from tests.engine.small_language import write_draft, write_model, write_student


@pytest.fixture
def paretone(console: Console, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Console:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    return console


@pytest.mark.parametrize("model", [one.id for one in catalogue.models()])
def test_a_model_lists_what_it_has(paretone: Console, model: str) -> None:
    chosen = catalogue.entry(model)
    data, text = paretone("models", model, "--json").data, paretone("models", model).out
    usual = chosen.options_with()
    assert {one["name"]: one["default"] for one in data["options"]} == {
        one.name: usual[one.name] for one in chosen.options
    }
    for knob, one in zip(chosen.options, data["options"], strict=True):
        assert f"--{knob.name.replace('_', '-')} " in text and f"{knob.label}: {knob.meaning}" in text
        if isinstance(knob, Number):
            assert (one["minimum"], one["maximum"]) == (knob.minimum, knob.maximum)
            assert f"{knob.minimum:g} to {knob.maximum:g}" in text
    techniques = applying_to(chosen.family, chosen.options, chosen.mel_flow)
    assert [one["name"] for one in data["techniques"]] == [one.name for one in techniques]
    for technique in techniques:
        (knobs,) = [block for block in text.split("\n\n") if block.startswith(f"{technique.name} ")] or [""]
        assert all(f"\n:{knob.name} " in knobs for knob in technique.knobs)
    assert [one["id"] for one in data["voices"]] == [one.id for one in catalogue.voices(model)]
    assert data["available"] == chosen.bundled
    assert (f"paretone download {model}" in text) == bool(catalogue.entry(model).release)
    if chosen.voices.latents:
        assert "put name.wav and name.npy into" in text


def test_defaults_are_the_models_own(paretone: Console) -> None:
    said = paretone("models", "f5-mini").out
    (steps,) = [line.split()[:2] for line in said.splitlines() if line.startswith("--steps ")]
    assert steps == ["--steps", "12"]
    assert "There is no model named" in paretone("models", "f6").err
    assert "did you mean 'Fun-CosyVoice3-0.5B'?" in paretone("models", "CosyVoice3").err
    only = paretone("models", "f5-mini", "--techniques", "--json").data
    assert set(only) == {"id", "techniques"}
    (reducing,) = [one for one in only["techniques"] if one["name"] == "ditreducio"]
    assert reducing["published"][2]["knobs"].items() >= {"threshold": 0.1, "metric": "relative"}.items()
    assert re.search(r"ditreducio --as T2 +table 1, F5-TTS .*threshold=0.1 .*steps=32", said)


@pytest.mark.parametrize(
    ("technique", "command"),
    [
        ("spade", "paretone train spade --model lm-mini --folder {} --depth 6 --minutes 45 --work runs/student"),
        ("spade:recovery=none;depth=2", "paretone measure-layers --model lm-mini --folder {}"),
        ("speculative", "paretone train draft --model lm-mini --folder {} --minutes 15 --work runs/draft"),
    ],
)
def test_what_is_not_prepared_says_its_command(paretone: Console, tmp_path: Path, technique: str, command: str) -> None:
    root = write_model(tmp_path / "model")
    speak = ["speak", "--model", "lm-mini", "--folder", root, "--text", "Rice.", "--out", tmp_path / "o.wav"]
    if technique == "spade":
        technique = "spade:depth=2"
        command = command.replace("--depth 6", "--depth 2")
    said = paretone(*speak, "--technique", technique)
    assert said.code == 2
    assert said.err.splitlines()[-1].endswith(f" Type: {command.format(root)}")


def test_a_missing_file_names_the_command_that_writes_it(paretone: Console, tmp_path: Path) -> None:
    speak = ["speak", "--model", "f5-mini", "--text", "Rice.", "--out", tmp_path / "o.wav", "--technique", "ditreducio"]
    said = paretone(*speak)
    assert said.err.splitlines()[-1].endswith("Type: paretone calibrate --model f5-mini --table table.json")
    said = paretone(*speak, "--as", "T2")
    assert said.err.splitlines()[-1].endswith("Type: paretone calibrate --model f5-mini --table table.json --as T2")
    strange = paretone("speak", "--model", "f5-mini", "--text", "Rice.", "--out", tmp_path / "o.wav", "--top-k", 3)
    assert strange.err.strip().endswith("Type: paretone models f5-mini")


# --- Trained weights --------------------------------------------------------------------------------------------------
@pytest.fixture
def root(paretone: Console, tmp_path: Path) -> Path:
    place = write_model(tmp_path / "model")
    other = write_draft(place, lambda weight: 1.2 * weight)
    other.rename(other.with_name("draft-3.safetensors"))
    write_draft(place)
    write_student(place, (0, 2))
    write_student(place, (0, 2), "minutes:5", 5.0)
    return place


def of(root: Path) -> list[object]:
    """What is said of the model at ``root``, with a text."""
    return ["--model", "lm-mini", "--folder", root, "--device", "cpu", "--json", "--quiet", "--text", "Rice."]


def test_speech_uses_the_draft_or_student_that_is_named(root: Path, tmp_path: Path, paretone: Console) -> None:
    chosen = fingerprint(root / "drafts" / "draft-3.safetensors")
    speak = ["speak", *of(root), "--speed", "2", "--out", tmp_path / "o.wav", "--technique"]
    named = f"speculative:tolerance=0.2;weights={chosen[:10]}"
    (entry,) = paretone.data(*speak, named, "--keep-profile", tmp_path / "p.json")["setting"]["techniques"]
    assert (entry["artefact"], entry["knobs"]["tolerance"], entry["knobs"]["draft"]) == (chosen, 0.2, "layers")
    assert Profile.load(tmp_path / "p.json").setting.technique("speculative").artefact == chosen
    assert paretone.data(*speak, "speculative")["setting"]["techniques"][0]["artefact"] == ""
    (entry,) = paretone.data(*speak, "spade:weights=student-2-minutes-5")["setting"]["techniques"]
    assert entry["artefact"] == fingerprint(root / "students" / "student-2-minutes-5.safetensors")
    assert (entry["knobs"]["depth"], entry["knobs"]["recovery"]) == (2, "partly")


@pytest.mark.parametrize(
    ("command", "technique", "words"),
    [
        ("speak", "speculative:weights=draft-9", ("no weights named 'draft-9' for SSD", "draft-2 (")),
        ("speak", "guidance_free:weights=w-0.50", ("CFG-free is not for models like",)),
        ("roofline", "speculative:weights=draft-9", ("draft-9",)),
    ],
)
def test_what_is_not_there_is_said_with_what_is(
    root: Path, tmp_path: Path, paretone: Console, command: str, technique: str, words: tuple[str, ...]
) -> None:
    more = ["--out", tmp_path / "o.wav"] if command == "speak" else ["--rounds", "1"]
    said = paretone(command, *of(root), "--speed", "2", *more, "--technique", technique)
    assert said.code == 2 and all(one in said.data["error"] for one in words)
    assert not (tmp_path / "o.wav").exists()


def test_both_sides_of_a_comparison_can_name_a_draft(root: Path, paretone: Console) -> None:
    sides = [f"speed=2,technique=speculative:adaptive=off;weights={one}" for one in ("draft-2", "draft-3")]
    data = paretone.data("compare", *sides, *of(root), "--repeats", "1")
    found = [data[side]["setting"]["techniques"][0]["artefact"] for side in ("a", "b")]
    assert found == [fingerprint(root / "drafts" / f"{one}.safetensors") for one in ("draft-2", "draft-3")]
    assert [one["what"] for one in data["differences"]] == ["speculative.artefact"]


def test_tables_are_calibrated_on_the_weights_that_are_named(tmp_path: Path, console: Console) -> None:
    path = tmp_path / "p.json"
    plan = ["--steps", "2", "--threshold", "0.5", "--no-evidence", "--quiet", "--json", "--device", "cpu"]
    console.out("calibrate", "--text", "Oh.", "--profile", path, *plan, "--technique", "guidance_free:weights=w-0.50")
    used = Profile.load(path).setting.technique("guidance_free")
    assert (used.knobs["weight"], len(used.artefact)) == (0.5, 64)
