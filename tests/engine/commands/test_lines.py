"""Long texts: a file per line or one file, resumed after a kill, with subtitles and manifests."""

import json
import mmap
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import cycle, islice, pairwise
from pathlib import Path

import pytest
import soundfile
import srt

from paretone import models
from paretone.commands import lines
from paretone.front_end.phones import EDGE
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.reading import NaturalReader
from paretone.models import catalogue
from tests.engine.command_line import Console, Outcome, loaded
from tests.workload import only_in_full

pytestmark = pytest.mark.usefixtures("short_prompts")


@pytest.fixture
def speak(console: Console, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(models, "load_model", loaded)

    def speak(*arguments: object, steps: int = 2) -> Outcome:
        return console("speak", "--json", "--quiet", "--steps", steps, "--out", tmp_path / "out", *arguments)

    return speak


def test_lines_are_files_and_only_missing_or_changed_ones_are_made_again(speak, tmp_path: Path) -> None:
    text, out = tmp_path / "lines.txt", tmp_path / "out"
    text.write_text("Rice.\n\nIt's $5-10.\n* * *\nMilk.\n")
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
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            lines, "checked", lambda said, check=lines.checked: signal.raise_signal(signal.SIGINT) or check(said)
        )
        stopped = speak("--by-line", "--text-file", text, steps=3)
    assert stopped.code == 130 and "Stopped after 1 of 3 files, all of which are kept" in stopped.err
    assert speak("--by-line", "--text-file", text, steps=3).data["new"] == 2


def test_a_manifest_names_texts_and_files(speak, tmp_path: Path) -> None:
    for file, content in {
        "rows.csv": 'name,text\nfirst,"Rice, and milk."\n,Bread.\n',
        "rows.jsonl": '{"name": "first", "text": "Rice, and milk."}\n{"text": "Bread.\u2028"}\n',
    }.items():
        (tmp_path / file).write_text(content)
        made = speak("--by-line", "--manifest", tmp_path / file).data
        assert [one["file"] for one in made["lines"]] == ["first.wav", "002-bread.wav"]
    assert made["new"] == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "manifest.jsonl").read_text().splitlines()]
    assert [one["text"] for one in rows] == ["Rice, and milk.", "Bread."]


def test_subtitles_of_one_text_have_its_sentences_where_they_are_spoken(speak, tmp_path: Path) -> None:
    text, file = "The lights went out. Who paid $5 on Nov. 28? No one.", tmp_path / "one.srt"
    made = speak("--text", text, "--srt", file, "--out", tmp_path / "one.wav", "--seed", 3, steps=8).data
    found = list(srt.parse(file.read_text()))
    assert [one.content for one in found] == ["The lights went out.", "Who paid $5 on Nov. 28?", "No one."]
    # The phones of the front end say when each sentence begins and ends.
    (piece,), _ = NaturalReader().pieces(text, HowToRead(seed=3))
    silent = [place for place, (name, _, _) in enumerate(piece.phones) if name == EDGE]
    starts = [piece.phones[place + 1][1] for place in silent[:-1] if piece.phones[place + 1][0] != EDGE]
    assert made["audio_seconds"] == pytest.approx(piece.seconds, abs=0.1)
    assert [one.start.total_seconds() for one in found] == pytest.approx(starts, abs=0.25)
    assert all(before.end < after.start for before, after in pairwise(found))


SMALLER = """
import sys
from paretone import cli
from paretone.commands import lines, speak
speak.MOST_CHARACTERS, lines.PART_CHARACTERS = 40, 30
sys.exit(cli.main(sys.argv[1:]))
"""


def long_text(folder: Path, text: str, *python: str) -> tuple[list[str], Path]:
    """The command that speaks ``text``, and the manifest of its parts."""
    (folder / "book.txt").write_text(text)
    out = folder / "book.flac"
    given = ["--model", "f5-mini", "--steps", "2", "--text-file", str(folder / "book.txt"), "--out", str(out), "--json"]
    command = [sys.executable, *python, "speak", *given, "--srt", str(folder / "book.srt")]
    return command, out.with_name("book.flac.parts") / lines.MANIFEST


def killed_after(command: list[str], journal: Path, parts: int) -> int:
    """Kill ``command`` when it has made so many parts; return how many there are."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not (journal.is_file() and len(journal.read_bytes().splitlines()) >= parts):
            time.sleep(0.05)
        process.kill()
    return len(journal.read_bytes().splitlines())


def test_a_long_text_is_one_file_and_goes_on_after_a_kill(tmp_path: Path) -> None:
    said = ["Rice is here.", "Beans are there.", "It's $5-10.", "Milk is cold.", "Dr. Lee ate.", "Tea is hot, too."]
    command, journal = long_text(tmp_path, f"{' '.join(said[:2])}\n\n* * *\n\n{' '.join(said[2:])}", "-c", SMALLER)
    reached = killed_after(command, journal, 1)
    made = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert 1 <= reached < len(made["lines"]) == 3 and made["new"] == len(made["lines"]) - reached
    assert not journal.parent.exists()
    subtitles = list(srt.parse((tmp_path / "book.srt").read_text()))
    assert [one.content for one in subtitles] == said
    assert all(before.end < after.start for before, after in pairwise(subtitles))
    assert soundfile.info(tmp_path / "book.flac").duration == pytest.approx(made["seconds"], abs=0.003)


@only_in_full("speech")
@pytest.mark.timeout(7200)
def test_a_chapter_of_20000_words_needs_the_memory_of_one_part(tmp_path: Path) -> None:
    sentences = catalogue.sentences()
    text = " ".join(islice(cycle(sentences), 20_000 // len(sentences[0].split())))  # One line.
    command, journal = long_text(tmp_path, text, "-m", "paretone")
    assert killed_after(command, journal, 2) < (reached := killed_after(command, journal, 5))
    peaks = []
    answer = tmp_path / "answer.json"  # A pipe that nobody reads would hold the command up at its end.
    with open(answer, "wb") as said, subprocess.Popen(command, stdout=said, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            with suppress(OSError):  # It ended meanwhile.
                peaks.append(int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * mmap.PAGESIZE)
            time.sleep(2)
    made = json.loads(answer.read_bytes())
    assert made["new"] == len(made["lines"]) - reached
    assert " ".join(one["text"] for one in made["lines"]) == text
    assert sum(1 for _ in srt.parse((tmp_path / "book.srt").read_text())) > 1000
    early, late = max(peaks[: len(peaks) // 4]), max(peaks[len(peaks) // 4 :])
    assert late < early + 150e6


@pytest.mark.parametrize(
    ("arguments", "content", "sentence"),
    [
        (["--by-line", "--text-file", "FILE"], "word " * 10_001, "Line 1 has 50,004 characters"),
        (["--repeat", "2", "--text-file", "FILE"], "word " * 10_001, "--repeat is for one short text"),
        (["--by-line"], "", "--by-line needs --text-file or --manifest"),
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
