"""Which trained weights a technique uses, chosen on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paretone import cli
from paretone.commands.technique_args import typed_technique
from paretone.errors import SettingError
from paretone.models.files.checkpoints import fingerprint
from paretone.setting.profile import Profile
from tests.engine.small_language import write_draft, write_model, write_student

TEXT = "Rice."


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model with two drafts and two students."""
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    place = write_model(tmp_path / "model")
    other = write_draft(place, lambda weight: 1.2 * weight)
    other.rename(other.with_name("draft-3.safetensors"))
    write_draft(place)
    write_student(place, (0, 2))
    write_student(place, (0, 2), "minutes:5", 5.0)
    return place


def said(root: Path, command: str, *more: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict]:
    capsys.readouterr()
    place = ["--model", "lm-mini", "--folder", str(root), "--device", "cpu", "--json", "--quiet"]
    code = cli.main([command, *place, "--speed", "2", "--text", TEXT, *more])
    return code, json.loads(capsys.readouterr().out)


def test_speech_uses_the_draft_or_student_that_is_named(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = fingerprint(root / "drafts" / "draft-3.safetensors")
    out = ["--out", str(tmp_path / "o.wav"), "--keep-profile", str(tmp_path / "p.json")]
    named = f"speculative:tolerance=0.2;weights={chosen[:10]}"
    code, data = said(root, "speak", *out, "--technique", named, capsys=capsys)
    assert code == 0, data
    (entry,) = data["setting"]["techniques"]
    assert (entry["artefact"], entry["knobs"]["tolerance"], entry["knobs"]["draft"]) == (chosen, 0.2, "layers")
    assert Profile.load(tmp_path / "p.json").setting.technique("speculative").artefact == chosen
    code, data = said(root, "speak", *out[:2], "--technique", "speculative", capsys=capsys)
    assert code == 0 and data["setting"]["techniques"][0]["artefact"] == ""
    out = ["--out", str(tmp_path / "o.wav")]
    code, data = said(root, "speak", *out, "--technique", "spade:weights=student-2-minutes-5", capsys=capsys)
    assert code == 0, data
    (entry,) = data["setting"]["techniques"]
    assert entry["artefact"] == fingerprint(root / "students" / "student-2-minutes-5.safetensors")
    assert (entry["knobs"]["depth"], entry["knobs"]["recovery"]) == (2, "partly")


def test_what_is_not_there_is_said_with_what_is(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "o.wav")]
    code, data = said(root, "speak", *out, "--technique", "speculative:weights=draft-9", capsys=capsys)
    assert code == 2
    assert "no weights named 'draft-9' for SSD" in data["error"] and "draft-2 (" in data["error"]
    code, data = said(root, "speak", *out, "--technique", "guidance_free:weights=w-0.50", capsys=capsys)
    assert code == 2 and "CFG-free is not for models like" in data["error"]
    assert not (tmp_path / "o.wav").exists()


def test_both_sides_of_a_comparison_can_name_a_draft(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = [f"speed=2,technique=speculative:adaptive=off;weights={one}" for one in ("draft-2", "draft-3")]
    place = ["--model", "lm-mini", "--folder", str(root), "--device", "cpu", "--json", "--quiet"]
    capsys.readouterr()
    assert cli.main(["compare", *sides, *place, "--text", TEXT, "--repeats", "1"]) == 0
    data = json.loads(capsys.readouterr().out)
    found = [data[side]["setting"]["techniques"][0]["artefact"] for side in ("a", "b")]
    assert found == [fingerprint(root / "drafts" / f"{one}.safetensors") for one in ("draft-2", "draft-3")]
    assert [one["what"] for one in data["differences"]] == ["speculative.artefact"]


def test_the_roofline_knows_the_drafts_by_name(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ["--technique", "speculative:weights=draft-9", "--rounds", "1"]
    code, data = said(root, "roofline", *wrong, capsys=capsys)
    assert code == 2 and "draft-9" in data["error"]


def test_tables_are_calibrated_on_the_weights_that_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.json"
    plan = ["--steps", "2", "--threshold", "0.5", "--no-evidence", "--quiet", "--json", "--device", "cpu"]
    named = ["--technique", "guidance_free:weights=w-0.50"]
    assert cli.main(["calibrate", "--text", "Oh.", "--profile", str(path), *plan, *named]) == 0
    used = Profile.load(path).setting.technique("guidance_free")
    assert (used.knobs["weight"], len(used.artefact)) == (0.5, 64)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("speculative:weights=", "weights= names no weights"),
        ("ditreducio:weights=table", "DiTReducio has no knob named 'weights'"),
        ("speculative:weights=draft-2;tolerance=7", "must lie between"),
    ],
)
def test_what_makes_no_sense_is_said_before_a_model_is_loaded(typed: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        typed_technique(typed)
