"""The files that say which techniques benches compare: mistakes in them are named by file and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from paretone.bench import omnivoice_card, ways
from paretone.errors import SettingError
from paretone.paths import resource

PRECISION = 'techniques = [{ technique = "precision", computed = { precision = "bits" } }]'


def written(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ways.Read:
    (folder / "some.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(ways, "resource", lambda *parts: folder / parts[-1])
    return ways.read("some")


def test_an_addition_uses_its_techniques(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (table,) = written(f'[[ways]]\ntitle = "+ {{bits}}"\n{PRECISION}', tmp_path, monkeypatch).tables("ways")
    found = table.addition(("bits",))
    used = found.entries[0].with_values({"bits": "int8"})
    assert (used.technique, dict(used.knobs)) == ("precision", {"precision": "int8"})
    assert found.judged and not found.headline


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (PRECISION, r"ways\[0\]\.title must be a title; names in braces that it may contain: bits"),
        (f'title = "+ {{half}}"\n{PRECISION}', r"ways\[0\]\.title must be a title"),
        (f'title = "+ {{"\n{PRECISION}', r"ways\[0\]\.title cannot be read"),
        ('title = "one"', r"ways\[0\]\.techniques must be a list of tables"),
        ('title = "one"\ntechniques = [{ technique = "warp" }]', r"techniques\[0\]\.technique: .*warp"),
        ('title = "one"\ntechniques = [{ technique = "precision", knobs = { bits = 4 } }]', r"\.knobs: .*bits"),
        (
            'title = "one"\ntechniques = [{ technique = "precision", computed = { precision = "half" } }]',
            r"computed\.precision must be a knob of Precision, and its value one of bits, not 'half'",
        ),
        (f'title = "one"\non = ["top"]\n{PRECISION}', r"on must be some of exact, not 'top'"),
        (f'title = "one"\nneeds = ["warp"]\n{PRECISION}', r"ways\[0\]\.needs: .*warp"),
        (f'title = "one"\nheading = true\n{PRECISION}', r"heading is an unknown field"),
    ],
)
def test_mistakes_are_named(fields: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (table,) = written(f"[[ways]]\n{fields}", tmp_path, monkeypatch).tables("ways")
    with pytest.raises(SettingError, match=rf"^resources/benches/some\.toml: .*{said}"):
        table.addition(("bits",), ("exact",))


def test_a_file_that_is_no_toml_or_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingError, match=r"resources/benches/some\.toml could not be read"):
        written("[[", tmp_path, monkeypatch)
    with pytest.raises(SettingError, match=r"resources/benches/other\.toml could not be read"):
        ways.read("other")


def test_knobs_and_choices_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written('[top]\ntechnique = "precision"\nknob = "bits"\noption = "fast"\n', tmp_path, monkeypatch)
    part = file.part("top")
    with pytest.raises(SettingError, match=r"top\.knob: Precision has no knob 'bits'"):
        part.knob(part.technique())
    with pytest.raises(SettingError, match=r"top\.option must be one of slow, not 'fast'"):
        part.choice("option", ("slow",))
    with pytest.raises(SettingError, match=r"top\.low is missing"):
        part.given("low")


def test_first_audio_needs_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert omnivoice_card.blocks().first_size == 24
    text = resource("benches", "omnivoice-card.toml").read_text(encoding="utf-8").replace("blockwise", "precision")
    (tmp_path / "omnivoice-card.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(ways, "resource", lambda *parts: tmp_path / parts[-1])
    with pytest.raises(SettingError, match="Precision does not divide the canvas into blocks"):
        omnivoice_card.blocks()
