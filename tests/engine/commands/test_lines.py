"""``paretone speak --by-line``: a file per line, resumed after a kill, with subtitles and manifests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import soundfile
import srt

from paretone import models
from tests.engine.command_line import Console, Outcome, loaded
from tests.prompts import short_prompts  # noqa: F401

pytestmark = pytest.mark.usefixtures("short_prompts")


@pytest.fixture
def speak(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(models, "load_model", loaded)
    run = Console(capsys)

    def speak(*arguments: object, steps: int = 2) -> Outcome:
        return run("speak", "--json", "--quiet", "--steps", steps, "--out", tmp_path / "out", *arguments)

    return speak


def test_lines_are_files_and_only_missing_or_changed_ones_are_made_again(speak, tmp_path: Path) -> None:
    text, out = tmp_path / "lines.txt", tmp_path / "out"
    text.write_text("Rice.\n\nIt's $5-10.\nMilk.\n")
    first = speak("--by-line", "--text-file", text, "--srt", tmp_path / "out.srt").data
    names = ["001-rice.wav", "002-its-5-10.wav", "003-milk.wav"]
    assert [one["file"] for one in first["lines"]] == names and first["new"] == 3
    subtitles = list(srt.parse((tmp_path / "out.srt").read_text()))
    assert [one.content for one in subtitles] == ["Rice.", "It's $5-10.", "Milk."]
    assert subtitles[-1].end.total_seconds() == pytest.approx(first["seconds"], abs=0.01)
    assert soundfile.info(out / names[1]).duration == pytest.approx(first["lines"][1]["seconds"], abs=0.001)
    # As after a kill: the last line of the manifest is cut off, and its file is half written.
    journal = out / "manifest.jsonl"
    journal.write_text(journal.read_text()[:-20])
    again = speak("--by-line", "--text-file", text).data
    assert again["new"] == 1 and [one["key"] for one in again["lines"]] == [one["key"] for one in first["lines"]]
    text.write_text("Rice.\nIt's $5-10.\nMilk.\n".replace("Milk", "Bread"))
    assert speak("--by-line", "--text-file", text).data["new"] == 1
    assert speak("--by-line", "--text-file", text, steps=3).data["new"] == 3


def test_a_manifest_names_texts_and_files(speak, tmp_path: Path) -> None:
    for file, content in {
        "rows.csv": 'name,text\nfirst,"Rice, and milk."\n,Bread.\n',
        "rows.jsonl": '{"name": "first", "text": "Rice, and milk."}\n{"text": "Bread."}\n',
    }.items():
        (tmp_path / file).write_text(content)
        made = speak("--by-line", "--manifest", tmp_path / file).data
        assert [one["file"] for one in made["lines"]] == ["first.wav", "002-bread.wav"]
    assert made["new"] == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "manifest.jsonl").read_text().splitlines()]
    assert [one["text"] for one in rows] == ["Rice, and milk.", "Bread."]


@pytest.mark.parametrize(
    ("arguments", "content", "sentence"),
    [
        (["--by-line"], "", "--by-line needs --text-file or --manifest"),
        (["--by-line", "--repeat", "2", "--text-file", "FILE"], "Rice.", "--repeat is for one text"),
        (["--by-line", "--manifest", "FILE"], "name\nx\n", "Row 1 of the manifest .* has no text"),
        (["--by-line", "--manifest", "FILE"], "name,text\n../x,A\n", "its name must be letters"),
        (["--by-line", "--manifest", "FILE"], "name,text\nx,A\nX,B\n", "have the name x"),
        (["--by-line", "--manifest", "FILE"], "{", "neither CSV nor JSON lines"),
        ([], "", "There is nothing to speak"),
    ],
)
def test_what_cannot_be_done_is_said(speak, tmp_path: Path, arguments: list[str], content: str, sentence: str) -> None:
    (tmp_path / "file").write_text(content)
    found = speak(*(str(tmp_path / "file") if one == "FILE" else one for one in arguments))
    assert found.code in (2, 3) and not (tmp_path / "out").exists()
    assert re.search(sentence, found.err + found.out)
