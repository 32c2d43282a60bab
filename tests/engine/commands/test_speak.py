"""``paretone speak``: its messages before and with speech."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pytest
import soundfile

import paretone
from paretone import cli, models
from paretone.commands.terminal import Terminal
from paretone.errors import DeviceError, TextError
from paretone.measure.loudness import true_peak
from paretone.models import catalogue
from paretone.models.files.checkpoints import metadata_of
from paretone.session.events import AudioReady, Event, Progress
from paretone.setting.profile import Profile
from tests.engine.command_line import Console, loaded
from tests.voices import FIRST

pytestmark = pytest.mark.usefixtures("short_prompts")
SPEAK = ["speak", "--model", "f5-mini", "--quiet", "--text", "Rice.", "--steps", "2"]
ON_TOP = "CFG-free weights already contain their guidance."
with_signals = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")


@pytest.fixture(autouse=True)
def _loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "load_model", loaded)


def test_help_says_for_which_models_an_option_is_and_which_kinds_of_sound_are_written_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def helped(*command: str) -> str:
        with pytest.raises(SystemExit):
            cli.main([*command, "--help"])
        return " ".join(capsys.readouterr().out.split())

    able = soundfile.check_format
    monkeypatch.setattr(soundfile, "check_format", lambda form, *rest: form != "MP3" and able(form, *rest))
    for command in (("speak",), ("tokens",), ("group-tokens",)):
        assert "to write: .wav (32-bit float), .flac or .ogg, mono" in helped(*command)
    monkeypatch.setattr(soundfile, "check_format", lambda form, *rest: True)
    said = helped("speak")
    assert "to write: .wav (32-bit float), .flac, .ogg or .mp3, mono" in said
    assert "F5-TTS, MegaTTS 3: Number of steps from noise to speech" in said
    assert "Omni mini, OmniVoice: Number of steps in which a canvas" in said


def test_speech_for_which_there_is_no_room_is_not_begun(tiny_disk: Path, console: Console) -> None:
    said = console.refusal("speak", "--model", "f5-mini", "--text", "Rice. " * 500, "--out", tiny_disk / "o.wav")
    assert f"{tiny_disk} has 0.5 MB of free space, but this speech takes 20.6 MB or more" in said
    assert "Synthesising" not in said


def test_speech_is_kept_elsewhere_if_it_does_not_fit(
    tiny_disk: Path, tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = console.refusal(*SPEAK, "--text", 2 * "999,999,999,999, ", "--out", tiny_disk / "o.wav")
    (kept,) = tmp_path.glob("paretone-*/o.wav")
    assert f"the disk is full; free some space. The speech is in {kept}." in said
    assert soundfile.info(kept).duration > 5 and not list(tiny_disk.iterdir()), "numbers are long"


def test_a_missing_transcript_says_how_to_give_it(tmp_path: Path, console: Console) -> None:
    own = shutil.copyfile(catalogue.voice(FIRST).audio, tmp_path / "bella.wav")
    said = console.refusal(*SPEAK, "--voice", own, "--out", tmp_path / "o.wav", code=TextError.exit_code)
    last = said.splitlines()[-1]
    assert "has no transcript" in last and last.endswith("with --voice RECORDING --transcript WORDS.")


def test_a_table_is_calibrated_and_spoken_as_published(tmp_path: Path, console: Console) -> None:
    """What is given stays, and all three commands say what the paper has otherwise."""
    table, few = str(tmp_path / "table.json"), ["--as", "T2", "--text", "Rice.", "--steps", "2", "--quiet"]
    made = console.data("calibrate", *few, "--table", table, "--no-evidence", "--json")
    assert (made["threshold"], made["metric"], made["setting"]["options"]["guidance"]) == (0.1, "relative", 2.0)
    spoken = console.data("speak", *few, "--table", table, "--out", str(tmp_path / "o.wav"), "--json")
    assert spoken["setting"] == made["setting"]
    (found,) = spoken["published"]
    assert found == made["published"][0] and (found["setting"], found["source"]) == ("T2", "table 1, F5-TTS")
    assert found["differences"][0] == "Steps 2, not 32" and found["differences"][1].startswith("model F5 mini, not ")
    side = f"as=T2,steps=2,table={table}"
    said = console.out("compare", "steps=2", side, "--text", "Rice.", "--repeats", "1", "--quiet")
    assert "B: DiTReducio is set as T2 (arXiv 2509.09748, table 1, F5-TTS), except Steps 2" in said


def test_guidance_on_top_of_cfg_free_weights_is_warned_of(tmp_path: Path, console: Console) -> None:
    out = ["--out", str(tmp_path / "o.wav")]
    technique = ["--technique", "guidance_free:weight=0.5"]
    assert f"--guidance 1.5 is ignored: {ON_TOP}" in console.out(*SPEAK, *out, *technique, "--guidance", "1.5")
    assert ON_TOP not in console.out(*SPEAK, *out, *technique)


def test_the_setting_is_kept_as_a_profile_that_exports(tmp_path: Path, console: Console) -> None:
    """So that settings without a strategy table become profiles as well, CFG-free ones among them."""
    kept, again, folder = tmp_path / "p.json", tmp_path / "again.json", tmp_path / "exported"
    technique = ["--technique", "guidance_free:weight=0.5", "--out", tmp_path / "o.wav"]
    assert f"Wrote the profile to {kept}." in console.out(*SPEAK, *technique, "--keep-profile", kept)
    profile = Profile.load(kept)
    assert profile.setting.technique("guidance_free").knobs["weight"] == 0.5
    assert profile.setting.options["steps"] == 2
    assert (profile.evidence.text, profile.evidence.voice) == ("Rice.", FIRST)
    assert profile.evidence.metrics["real_time_factor"] > 0
    spoken = profile.synthesise("Rice.", repeat=3)
    assert len(spoken.repeats) == 3
    interval = paretone.spread(spoken, "real_time_factor")
    assert interval.low <= spoken.measurements.real_time_factor == interval.median <= interval.high
    run = ["speak", "--profile", kept, "--quiet", "--text", "Rice.", "--out", tmp_path / "b.wav"]
    console.out(*run, "--keep-profile", again)
    assert Profile.load(again).setting == profile.setting
    assert (tmp_path / "o.wav").read_bytes() == (tmp_path / "b.wav").read_bytes()
    for target in ("safetensors", "safetensors", "f5-tts"):  # What is there already says the same, and stays.
        console.out("export", "--quiet", "--profile", kept, "--out", folder, "--target", target)
    (weights,) = folder.glob("*.safetensors")
    assert metadata_of(weights)["weight"] == "0.5"


# --- What is finished is kept -----------------------------------------------------------------------------------------
SENTENCES = ["--model", "omni-mini", "--by-sentence", "--steps", "4", "--text", "Rice is fine. So is tea. Go on. Stop."]
SetIt = Callable[[Callable[[], object]], None]


def press(number: signal.Signals = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture
def at_the_third_piece(monkeypatch: pytest.MonkeyPatch) -> SetIt:
    """Sets what happens when the third piece of audio has come."""

    def set_it(react: Callable[[], object]) -> None:
        hear, pieces = Terminal.hear, []

        def hearing(terminal: Terminal, event: Event) -> None:
            if isinstance(event, AudioReady):
                pieces.append(event)
                if len(pieces) == 3:
                    react()
            hear(terminal, event)

        monkeypatch.setattr(Terminal, "hear", hearing)

    return set_it


@with_signals
def test_control_c_writes_what_was_finished(tmp_path: Path, console: Console, at_the_third_piece: SetIt) -> None:
    at_the_third_piece(press)
    out, profile = tmp_path / "o.wav", tmp_path / "p.json"
    said = console("speak", "--json", *SENTENCES, "--out", out, "--keep-profile", profile)
    sentence = f"Cancelled after 3 of 4 passages; wrote them to {out}."
    assert said.code == 130 and sentence in said.err.splitlines()
    assert not profile.exists(), "no profile quotes figures of a part"
    data = said.data
    assert (data["error"], data["kind"], data["exit_code"]) == (sentence, "Cancelled", 130)
    assert data["unfinished"] == "cancelled after 3 of 4 passages"
    assert soundfile.info(out).frames == data["samples"] > 0
    assert data["profile"] is None


@with_signals
def test_control_c_twice_ends_at_once_and_writes_what_was_finished(
    tmp_path: Path, console: Console, at_the_third_piece: SetIt
) -> None:
    at_the_third_piece(lambda: [press() for _ in range(2)])
    out = tmp_path / "o.wav"
    said = console("speak", *SENTENCES, "--out", out)
    assert said.code == 130 and f"Cancelled after 2 of 4 passages; wrote them to {out}." in said.err.splitlines()
    assert "Cancelled after 2 of 4 passages: the rest of the text is missing." in said.out
    assert soundfile.info(out).frames > 0


def test_an_error_halfway_writes_what_was_finished(tmp_path: Path, console: Console, at_the_third_piece: SetIt) -> None:
    def fail() -> None:
        raise DeviceError("The card fell out.")

    at_the_third_piece(fail)
    out = tmp_path / "o.wav"
    said = console.refusal("speak", "--quiet", *SENTENCES, "--out", out, code=DeviceError.exit_code)
    assert f"Failed after 2 of 4 passages; wrote them to {out}. The card fell out." in said
    assert soundfile.info(out).frames > 0


# --- Times ------------------------------------------------------------------------------------------------------------
def test_a_setting_is_timed_again(tmp_path: Path, console: Console) -> None:
    out = ["--out", str(tmp_path / "o.wav")]
    data = console.data(*SPEAK, "--json", *out, "--repeat", "3")
    assert len(data["repeats"]) == 3
    tail = np.percentile([one["first_audio_seconds"] for one in data["repeats"]], 90)
    assert data["first_audio_p90"] == pytest.approx(tail), "without the first run, which warms up"
    assert data["backbone_time_factor"] == pytest.approx(data["backbone_seconds"] / data["audio_seconds"])
    for name in ("real_time_factor", "backbone_time_factor", "cpu_time_factor", "first_audio_seconds"):
        runs = [one[name] for one in data["repeats"]]
        assert data[name] == pytest.approx(median(runs)), "as lists show it"
        assert min(runs) <= data["intervals"][name]["low"] <= data[name] <= data["intervals"][name]["high"] <= max(runs)
    said = console.out(*SPEAK, *out, "--repeat", "2")
    assert "Medians of 2 repeats, with 95 % intervals." in said
    assert "backbone RTF" in said and "of 2 runs" in said
    assert "--repeat" in console.refusal(*SPEAK, *out, "--repeat", "1", code=2)


@with_signals
def test_control_c_keeps_the_repeats_that_were_finished(
    tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear = Terminal.hear

    def hearing(terminal: Terminal, event: Event) -> None:
        if isinstance(event, Progress) and event.text == "Repeat 3 of 5" and not terminal.cancelled.is_set():
            press()
        hear(terminal, event)

    monkeypatch.setattr(Terminal, "hear", hearing)
    out, profile = tmp_path / "o.wav", tmp_path / "p.json"
    written = console(*SPEAK, "--json", "--repeat", "5", "--out", out, "--keep-profile", profile)
    data = written.data
    said = "Cancelled after 2 of 5 repeats: the times are of these repeats, as medians."
    assert (written.code, len(data["repeats"])) == (130, 2)
    assert (data["error"], data["kind"], data["exit_code"]) == (said, "Cancelled", 130)
    assert said in written.err.splitlines()
    assert data["real_time_factor"] == pytest.approx(median(one["real_time_factor"] for one in data["repeats"]))
    assert soundfile.info(out).frames == data["samples"]
    assert profile.exists(), "the take is whole"


# --- Where speech is written ------------------------------------------------------------------------------------------
def test_speech_goes_to_standard_output_and_words_to_standard_error(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "o.wav"
    assert cli.main([*SPEAK, "--out", str(file)]) == 0
    capfdbinary.readouterr()
    assert cli.main([*SPEAK, "--out", "-", "--json"]) == 0
    done = capfdbinary.readouterr()
    assert done.out == file.read_bytes()
    assert json.loads(done.err)["out"] == "standard output"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stopped:
        monkeypatch.setattr(sys, "stdout", stopped)
        assert cli.main([*SPEAK, "--out", "-"]) == 1
    said = capfdbinary.readouterr().err
    assert b"standard output could not be written: its reader has stopped." in said and b"Traceback" not in said


def test_speech_goes_through_links_pipes_and_devices(tmp_path: Path) -> None:
    pipe, link, kept = tmp_path / "pipe", tmp_path / "link.wav", tmp_path / "kept.json"
    os.mkfifo(pipe)
    link.symlink_to("speech.wav")
    reader = threading.Thread(target=lambda: kept.write_bytes(pipe.read_bytes()))
    reader.start()
    assert cli.main([*SPEAK, "--out", str(link), "--keep-profile", str(pipe)]) == 0
    reader.join()
    assert Profile.load(kept).setting.options["steps"] == 2
    assert link.is_symlink() and (tmp_path / "speech.wav").read_bytes()[:4] == b"RIFF"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_without_a_reader_is_left_by_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, wait = tmp_path / "pipe", Terminal.wait
    os.mkfifo(pipe)

    def waiting(terminal: Terminal, text: str) -> None:
        if text.startswith("Waiting for a reader") and not terminal.cancelled.is_set():
            press()
        wait(terminal, text)

    monkeypatch.setattr(Terminal, "wait", waiting)
    assert cli.main([*SPEAK, "--out", str(pipe)]) == cli.CANCELLED
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize(
    ("name", "words"),
    [("o.txt", "ends in none of .wav, .flac, .ogg, .mp3"), ("folder", "is a folder"), ("socket", "it is a socket")],
)
def test_what_cannot_be_written_is_said_before_anything_is_loaded(
    tmp_path: Path, name: str, words: str, console: Console
) -> None:
    (tmp_path / "folder").mkdir()
    socket.socket(socket.AF_UNIX).bind(str(tmp_path / "socket"))
    assert words in console.refusal(*SPEAK, "--out", str(tmp_path / name), "--folder", "/nowhere", code=1)


# --- Signals ----------------------------------------------------------------------------------------------------------
@with_signals
def test_a_long_text_is_cancelled_while_read(tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    status = Terminal.status

    def reading(terminal: Terminal, text: str) -> None:
        status(terminal, text)
        if text == "Reading 4,000 characters …":
            press(signal.SIGTERM)

    monkeypatch.setattr(Terminal, "status", reading)
    said = console("speak", "--model", "f5-mini", "--out", tmp_path / "o.wav", "--text", "7" * 4_000)
    assert said.code == cli.TERMINATED and said.err.endswith("characters …\nCancelled.\n")
    assert not any(tmp_path.iterdir())


@with_signals
@pytest.mark.parametrize(
    ("imported", "number"), [("argparse", signal.SIGINT), ("paretone.commands.arguments", signal.SIGTERM)]
)
def test_a_signal_while_the_command_line_is_imported_ends_as_later(
    tmp_path: Path, imported: str, number: signal.Signals
) -> None:
    command = [sys.executable, "-v", "-m", "paretone", *SPEAK, "--json", "--out", str(tmp_path / "o.wav")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stdout is not None
        for line in process.stderr:
            if line.startswith(f"import '{imported}'"):
                process.send_signal(number)
                break
        rest = process.stderr.read()
        assert process.wait(60) == 128 + number
        said = json.loads(process.stdout.read())
    # Within a line of the interpreter's own, if the signal came in the middle of it.
    assert rest.count("Cancelled.\n") == 1 and "Traceback" not in rest
    assert said == {"error": "Cancelled.", "kind": "Cancelled", "exit_code": 128 + number}


# --- What is noted of takes -------------------------------------------------------------------------------------------
def test_a_side_that_skipped_nothing_says_so_and_the_load(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = ["steps=2", "steps=2,technique=first_block:threshold=0"]
    arguments = ["compare", *sides, "--model", "f5-mini", "--text", "Rice.", "--repeats", "1", "--quiet"]
    # Half of the machine, whatever else runs.
    monkeypatch.setattr("paretone.measure.processor_time.ProcessorTime.since", lambda self, before: (1.0, 1e9))
    data = console.data(*arguments, "--json")
    assert [note.startswith("Nothing was skipped: First-block cache") for note in data["b"]["notes"]][-1:] == [True]
    assert not any(note.startswith("Nothing") for note in data["a"]["notes"])
    assert (data["a"]["busy"], data["b"]["busy"]) == (True, True)
    assert data["a"]["other_share"] == 1.0
    assert data["a"]["cpu_time_factor"] == pytest.approx(1 / data["a"]["audio_seconds"])
    assert data["intervals"]["a"]["cpu_time_factor"] is None, "from a single run"
    said = console.out(*arguments)
    assert "B: Nothing was skipped: First-block cache" in said
    assert "busy during 3 of 3 runs: other processes took 100 % of the cores during A and 100 % during B" in said


def test_a_take_over_full_scale_keeps_its_samples_and_says_what_it_turns_down(tmp_path: Path, console: Console) -> None:
    out = tmp_path / "o.wav"
    loud = ["speak", "--model", "f5-mini", "--quiet", "--json", "--text", "Rice is often served in round bowls."]
    data = console.data(*loud, "--technique", "multistep", "--steps", "2", "--out", str(out))
    assert data["true_peak"] > 0
    (note,) = [one for one in data["notes"] if "full scale" in one]
    assert note.startswith(f"The true peak is {data['true_peak']:.1f} dB above full scale")
    samples, _ = soundfile.read(out, dtype="float32")
    assert true_peak(samples) == pytest.approx(data["true_peak"], abs=1e-6)
    assert data["cpu_time_factor"] == pytest.approx(data["cpu_seconds"] / data["audio_seconds"])
    if sys.platform == "linux":
        assert isinstance(data["busy"], bool) and 0 <= data["other_share"] <= 1
