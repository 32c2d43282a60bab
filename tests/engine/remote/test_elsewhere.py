"""An engine in another process: everything as here, whatever happens to the line between."""

import asyncio
import json
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")

import aiohttp

from paretone.errors import PlainError, SettingError, StudyError
from paretone.models.base import Utterance
from paretone.models.catalogue import entry
from paretone.models.voices import own_voice, shipped_voices
from paretone.remote import wire
from paretone.remote.carrying import Mirror
from paretone.remote.client import TAKE_OVER
from paretone.remote.places import HostFiles, PlaceError
from paretone.remote.server import Outbox, require_version, running, state_file
from paretone.session import commands, events
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.store import Store
from paretone.studies.study import results_folder
from paretone.techniques.ditreducio.record import CalibrationRequest, Trial
from tests.engine.remote.elsewhere import Host, Relay, Window, window
from tests.engine.remote.test_wire import SPEAK, mutated
from tests.workload import only_in_full, workload

VOICE = shipped_voices()[0]
TEXT = "The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background. Rice is often served."
STUDY = """
title = "Steps"
sentences = ["Good morning.", "Milk."]
voices = ["anna"]
rounds = 1
[[setting]]
options = {steps = 2}
[[setting]]
options = {steps = 3}
"""


def setting(steps: int = 4, *techniques: UsedTechnique) -> Setting:
    return Setting("f5-mini", entry("f5-mini").options_with(steps=steps), techniques, 7)


def speak(job: int, steps: int = 4, text: str = TEXT) -> commands.Synthesise:
    return commands.Synthesise(job, text, VOICE, setting(steps))


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    made = Host(tmp_path_factory.mktemp("host"))
    yield made
    made.kill()


@pytest.fixture
def relay(host: Host) -> Iterator[Relay]:
    made = Relay(host.port)
    yield made
    made.close()


@pytest.fixture
def here(relay: Relay, host: Host, tmp_path: Path) -> Iterator[Window]:
    with window(relay.port, host.token, tmp_path) as made:
        made.recorder.finish(made.engine, commands.LoadModel(1, "f5-mini", device="cpu"))
        yield made


def test_the_main_job_through_a_line_that_breaks_and_stalls(here: Window, relay: Relay) -> None:
    """Nothing lost, nothing doubled: the same pieces as over a good line, each once and in order."""
    relay.stalled.set()
    unanswered = here.engine.ask("models")
    relay.reset()
    with pytest.raises(PlainError, match="does not answer: the line is broken"):
        unanswered.result(60)
    relay.stalled.clear()
    here.recorder.finish(here.engine, speak(2))
    whole = here.recorder.wait_for_kind(events.TakeReady, 2).take
    here.engine.submit(speak(3))
    for cut in (relay.reset, relay.reset, lambda: relay.stalled.set(), relay.reset):
        time.sleep(0.4)
        cut()
        time.sleep(0.2)
        relay.stalled.clear()
    assert isinstance(here.recorder.end_of(3), events.JobFinished)
    again = here.recorder.wait_for_kind(events.TakeReady, 3).take
    pieces = [[one.samples.tobytes() for one in here.recorder.of(job, events.AudioReady)] for job in (2, 3)]
    assert np.array_equal(again.samples, whole.samples) and pieces[0] == pieces[1] and pieces[0]
    assert [one.job for one in here.recorder.events if isinstance(one, events.ENDINGS)] == [1, 2, 3]
    assert any("broke" in one.sentence and "Trying again" in one.sentence for one in here.lines)
    assert here.until(lambda one: one.round_trip is not None).host == "127.0.0.1"


@only_in_full("repetitions")
def test_a_calibration_reports_live_and_is_the_same_as_here(here: Window, relay: Relay) -> None:
    request = CalibrationRequest((Utterance("Good morning.", VOICE),), setting(4, UsedTechnique("ditreducio")))
    here.engine.submit(commands.Prepare(2, "ditreducio", request))
    here.recorder.wait_for_kind(events.PreparationReport, 2)
    relay.reset()
    assert isinstance(here.recorder.end_of(2), events.JobFinished)
    result = here.recorder.wait_for_kind(events.Prepared, 2).result
    reports = [one.report for one in here.recorder.events if isinstance(one, events.PreparationReport)]
    trials = [one for one in reports if isinstance(one, Trial)]
    assert trials and tuple(trials) == result.record.trials


def test_cancelling_while_the_line_is_broken(here: Window, relay: Relay) -> None:
    here.engine.submit(speak(2, steps=32, text=TEXT * 8))
    here.recorder.wait_for_kind(events.Progress, 2)
    relay.refusing = True
    relay.reset()
    here.until(lambda one: "Trying again" in one.sentence)
    here.engine.submit(commands.Cancel(0, 2))
    here.engine.submit(speak(3, text="Milk."))
    here.engine.submit(speak(4, text="Milk."))
    here.engine.submit(commands.Cancel(0, 4))
    assert isinstance(here.recorder.end_of(4), events.JobCancelled), "it was not sent yet"
    relay.refusing = False
    assert isinstance(here.recorder.end_of(2), events.JobCancelled)
    assert isinstance(here.recorder.end_of(3), events.JobFinished)


def test_a_study_is_mirrored_here_and_resumed_there(here: Window, relay: Relay, host: Host, tmp_path: Path) -> None:
    file, folder = tmp_path / "steps.toml", tmp_path / "steps"
    file.write_text(STUDY)
    here.engine.submit(commands.RunStudy(2, str(file), str(folder)))
    here.recorder.wait_for_kind(events.StudyTakeDone, 2)
    relay.reset()
    assert isinstance(here.recorder.end_of(2), events.JobFinished)
    ended = here.recorder.wait_for_kind(events.StudyEnded, 2)
    assert ended.made == 4 and ended.folder == str(folder)
    done = [one.take.cell for one in here.recorder.events if isinstance(one, events.StudyTakeDone)]
    with Store(folder, read_only=True) as store:
        assert store.about()["file"] == str(file) and sorted(done, key=str) == sorted(store.cells(), key=str)
        assert len(done) == len(set(done)) == 4 and not store.lost()
    here.recorder.finish(here.engine, commands.RunStudy(3, str(file), str(folder)))
    assert here.recorder.wait_for_kind(events.StudyEnded, 3).made == 0
    here.recorder.finish(here.engine, commands.VerifyStudy(4, str(folder), 1))
    assert here.recorder.wait_for_kind(events.StudyVerified, 4).folder == str(folder)
    # A folder in the window's data folder is the one with the same name in the host's.
    file.write_text(f'folder = "{here.data / "models" / "mine"}"\n{STUDY}')
    here.engine.submit(commands.RunStudy(5, str(file), str(tmp_path / "other")))
    assert f"is not in {host.data / 'models' / 'mine'};" in here.recorder.end_of(5).sentence


@only_in_full("repetitions")
def test_takes_of_two_machines_are_not_mixed(here: Window, tmp_path: Path, console) -> None:
    file = tmp_path / "own.toml"
    file.write_text(STUDY)
    console.out("study", "run", file)
    here.engine.submit(commands.RunStudy(2, str(file), str(results_folder(file))))
    assert "times of two machines do not mix" in here.recorder.end_of(2).sentence


def test_a_study_that_cannot_be_copied_says_why_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    mirror = Mirror(tmp_path / "steps", "key", "steps.toml", tmp_path / "file" / "copies")
    with pytest.raises(StudyError, match="could not be copied: its folder is a file; choose another"):
        asyncio.run(mirror.fetch(asyncio.sleep, asyncio.sleep))
    mirror = Mirror(tmp_path / "steps", "key", "steps.toml", tmp_path)
    with pytest.raises(ConnectionError):  # A line that breaks is no fault of the study's, which is copied later.
        asyncio.run(mirror.fetch(lambda *_: asyncio.open_connection("127.0.0.1", 1), asyncio.sleep))


def test_own_recordings_are_sent_once_and_exports_come_here(here: Window, host: Host, tmp_path: Path) -> None:
    recording = tmp_path / "me.wav"
    recording.write_bytes(Path(VOICE.audio).read_bytes())
    own = own_voice(recording, VOICE.transcript)
    for job in (2, 3):
        here.recorder.finish(here.engine, commands.Synthesise(job, "Milk.", own, setting()))
        assert here.recorder.wait_for_kind(events.TakeReady, job).take.voice == own.id
    sent, linked = (host.data / "remote" / "received").rglob("me.wav")
    assert sent.samefile(linked) and sent.read_bytes() == recording.read_bytes()
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (sent, sent.parent, linked.parent)]
    assert modes == [0o600, 0o700, 0o700], "whatever the user's mask"
    here.engine.submit(commands.Synthesise(4, "Milk.", own_voice(tmp_path / "gone.wav", "x"), setting()))
    assert here.recorder.end_of(4).sentence == f"There is no file {tmp_path / 'gone.wav'}; check the path."
    info = here.recorder.wait_for_kind(events.ModelLoaded).info
    profile = Profile.of(setting(4, UsedTechnique("steps", {"steps": 4, "spacing": "epss", "sway": -1.0})), info)
    here.recorder.finish(here.engine, commands.ExportProfile(5, profile, "f5-tts", str(tmp_path / "exported")))
    written = here.recorder.wait_for_kind(events.ProfileExported, 5)
    assert written.folder == str(tmp_path / "exported")
    assert all((tmp_path / "exported" / one).is_file() for one in written.files)
    assert any(not os.listdir(host.data / "remote" / "made") or time.sleep(0.1) for _ in range(600)), "it is here"
    assert here.engine.ask("models").result(30)["f5-mini"] is True
    there = here.engine.ask("folder", str(host.data)).result(30)
    assert ["remote", True] in there["entries"] and there["parent"] == str(host.data.parent)
    for question, name, said in (
        ("folder", "gone", r"could not be opened on the host \(No such file or directory\); choose another folder"),
        ("folder", "~nobody-of-this-name", r"could not be opened on the host \(Could not determine home directory"),
        ("fetch", "made/gone", r"could not be read on the host \(No such file or directory\)\.$"),
    ):
        with pytest.raises(PlainError, match=said):
            here.engine.ask(question, name).result(30)


def test_a_host_that_lacks_a_plug_in_says_so(here: Window) -> None:
    lacking = Setting("f5-mini", entry("f5-mini").options_with(steps=4), (UsedTechnique("from-a-plug-in"),), 7)
    here.engine.submit(commands.Synthesise(2, "Milk.", VOICE, lacking))
    sentence = here.recorder.end_of(2).sentence
    assert "no technique named 'from-a-plug-in'" in sentence and "install the plug-in" in sentence


# --- Either side ends -------------------------------------------------------------------------------------------------
def test_a_host_that_is_killed_ends_its_jobs_with_a_sentence(tmp_path: Path) -> None:
    first = Host(tmp_path / "a")
    with closing(Relay(first.port)) as relay, window(relay.port, first.token, tmp_path) as here:
        here.recorder.finish(here.engine, commands.LoadModel(1, "f5-mini", device="cpu"))
        here.engine.submit(speak(2, steps=32, text=TEXT * 8))
        here.recorder.wait_for_kind(events.Progress, 2)
        first.kill()
        here.until(lambda one: not one.connected and "broke" in one.sentence)
        second = Host(tmp_path / "b")
        relay.target = second.port
        assert "is not the one" in here.recorder.end_of(2).sentence and here.lines[-1].lost
        here.engine.submit(speak(3))
        assert "is not the one" in here.recorder.end_of(3).sentence
    second.kill()


BEGIN = """
import sys, time
from pathlib import Path
from paretone.remote.client import RemoteEngine
from paretone.session import commands, events
from tests.engine.remote.elsewhere import Local
link = Local(int(sys.argv[1]), sys.argv[2])
"""
LEAVE = f"""{BEGIN}
engine = RemoteEngine(lambda event: print(type(event).__name__, flush=True), link, Path(sys.argv[3]))
engine.start()
engine.submit(commands.RunStudy(1, sys.argv[4], sys.argv[5]))
time.sleep(600)
"""


def test_a_window_that_is_killed_leaves_its_study_to_finish_and_the_host_ends(tmp_path: Path) -> None:
    host = Host(tmp_path / "host", grace=20.0)
    (file := tmp_path / "steps.toml").write_text(STUDY)
    arguments = [str(host.port), host.token, str(tmp_path), str(file), str(tmp_path / "steps")]
    with subprocess.Popen([sys.executable, "-c", LEAVE, *arguments], stdout=subprocess.PIPE, text=True) as process:
        next(line for line in process.stdout if line.strip() == "StudyTakeDone")
        process.kill()
    with window(host.port, host.token, tmp_path / "other") as other:
        told = other.until(lambda one: one.lost)
        assert "take the engine over" in told.sentence and other.lines[-1].remedy == TAKE_OVER
    assert host.process.wait(240) == 0
    (folder,) = (tmp_path / "host" / "remote" / "studies").iterdir()
    with Store(folder, read_only=True) as store:
        assert len(store.cells()) == 4
    assert running(tmp_path / "host") is None


# --- Strangers --------------------------------------------------------------------------------------------------------
def test_a_second_window_is_told_and_can_have_the_engine_once_the_first_is_gone(host: Host, tmp_path: Path) -> None:
    with window(host.port, host.token, tmp_path) as first:
        first.recorder.wait_for_kind(events.EngineReady)
        with window(host.port, host.token, tmp_path) as second:
            assert "is used by the window on" in second.until(lambda one: one.lost).sentence
    with window(host.port, host.token, tmp_path) as third:
        third.recorder.wait_for_kind(events.EngineReady)


def test_only_windows_of_the_same_or_a_newer_minor_version() -> None:
    for theirs in ("0.2.9", "0.3.0"):
        require_version(theirs)
    for theirs in ("0.1.0", "1.2.0", "x"):
        with pytest.raises(SettingError, match="the same version on both machines"):
            require_version(theirs)


async def _told(port: int, token: str, *messages: bytes | str, most: int = 99) -> tuple[int, list[str]]:
    """Status of the greeting, and what the host said before it closed, or the first ``most`` sentences."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    said: list[str] = []
    async with aiohttp.ClientSession() as session:
        try:
            async with session.ws_connect(f"http://127.0.0.1:{port}/engine", headers=headers) as socket:
                for one in messages:
                    await (socket.send_bytes(one) if isinstance(one, bytes) else socket.send_str(one))
                async with asyncio.timeout(30):
                    async for one in socket:
                        found = wire.envelope(one.data, 1 << 24)
                        if found.kind == wire.REFUSED:
                            said.append(wire.read(found.payload, str))
                        elif found.kind == wire.EVENT:
                            event = wire.of(wire.plain(found.payload), events.Event)
                            said += [event.sentence] if isinstance(event, events.JobFailed) else []
                        if len(said) >= most:
                            break
        except aiohttp.WSServerHandshakeError as error:
            return error.status, []
    return 101, said


def asked(port: int, token: str, content: bytes | Iterator[bytes], file: str = "", **more: str) -> tuple[int, bytes]:
    with closing(HTTPConnection("127.0.0.1", port)) as line:
        line.request("POST", f"/engine?file={quote(file)}", content, {"Authorization": f"Bearer {token}", **more})
        answer = line.getresponse()
        return answer.status, answer.read()


def test_another_program_on_the_port_of_an_engine_is_told_nothing(tmp_path: Path) -> None:
    heard: list[bytes] = []

    def pose(server: socket.socket) -> None:
        for _ in range(2):
            line, _ = server.accept()
            heard.append(line.recv(1 << 16))
            line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + b"0" * 64)

    (file := state_file(tmp_path)).parent.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=pose, args=[server]).start()
        file.write_text(f'{{"port": {server.getsockname()[1]}, "token": "secret"}}')
        assert running(tmp_path) is None
        with window(server.getsockname()[1], "secret", tmp_path / "here") as here:
            assert "another user's" in here.until(lambda one: one.lost).sentence
    assert len(heard) == 2 and not any(b"secret" in one for one in heard)


def test_strangers_and_damaged_messages_are_refused_and_nothing_runs(host: Host, tmp_path: Path) -> None:
    def told(*messages: bytes | str, token: str = host.token, most: int = 99) -> tuple[int, list[str]]:
        return asyncio.run(_told(host.port, token, *messages, most=most))

    hello = wire.message(wire.HELLO, wire.Hello("0.2.0", "w", "laptop"))
    assert told(token="") == told(token="wrong") == (401, [])
    assert told("hello")[1] == ["A message must be binary."]
    assert "introduce itself first" in told(wire.message(wire.COMMAND, wire.packed(SPEAK), 1))[1][0]
    assert "0.1.9" in told(wire.message(wire.HELLO, wire.Hello("0.1.9", "w", "laptop")))[1][0]
    if workload(True, False):
        assert told() == (101, []), "a line that stands still is closed, and the window tries again"
    draw, sent = random.Random(5), 0
    whole = wire.message(wire.COMMAND, wire.packed(SPEAK), 1), wire.message(wire.SEEN, None, 7)
    while sent < workload(10_000, 300):
        damaged = mutated(draw.choice(whole), draw) if draw.random() < 0.8 else draw.randbytes(draw.randrange(200))
        if not is_sound(damaged):
            status, said = told(hello, damaged, most=1)
            assert status == 101 and len(said) == 1 and said[0], damaged
            sent += 1
            if sent % 10 == 0:
                assert told(damaged, most=1)[1], "nor is it a greeting"
                assert asked(host.port, host.token, damaged)[0] == 400, "nor a question"
    questions = (
        *(("fetch", "made/../../engine.json"), ("fetch", "studies//etc/passwd"), ("study", "../..")),
        *(("together", "../engine"), ("voices", "MegaTTS3\n../.."), ("no such question", "")),
    )
    escapes = [wire.message(wire.ASK, wire.Ask(*one)) for one in questions]
    said = [asked(host.port, host.token, one) for one in escapes]
    assert all(status == 400 and words for status, words in said) and b"leads out of the folder" in said[0][1], said
    assert {asked(host.port, "wrong", one)[0] for one in escapes} == {401}
    outside = replace(VOICE, audio="sent:../engine.json")
    roofline = partial(commands.MeasureRoofline, utterance=Utterance("Milk.", VOICE), setting=setting())
    writing = [
        commands.LoadModel(1, "f5-mini", folder="data:../../etc"),
        commands.LoadModel(2, "f5-mini", folder="etc"),
        commands.Synthesise(3, "Milk.", outside, setting()),
        roofline(4, trace="/etc/trace.json"),
        roofline(5, trace="made:../../engine.json"),
        commands.RunStudy(6, "/etc/passwd", "x"),
        commands.RunStudy(7, "sent:../engine.json", "x"),
        commands.VerifyStudy(8, "../../.."),
    ]
    numbered = [wire.message(wire.COMMAND, wire.packed(one), one.job) for one in writing]
    said = told(wire.message(wire.HELLO, wire.Hello("0.2.0", "third", "laptop")), *numbered, most=8)[1]
    assert len(said) == 8 and sum("leads out of the folder" in one for one in said) == 5, said
    large = HostFiles(host.data)
    listing = json.dumps({"../../engine.json": "a" * 64 + "/x.wav"}).encode()
    (large.place_of("a" * 64 + "/x.wav")).parent.mkdir(parents=True)
    large.place_of("a" * 64 + "/x.wav").write_bytes(b"x")
    for given, words in ((listing, "leads out of the folder"), (listing[1:], "arrived damaged")):
        with pytest.raises(PlaceError, match=words):
            large.together(given)
    with window(host.port, host.token, tmp_path) as here:
        here.recorder.wait_for_kind(events.EngineReady)
        assert not [one for one in here.recorder.events if one.job]
    assert host.process.poll() is None and running(host.data), "its file was not written over"


def is_sound(content: bytes) -> bool:
    """Whether a message can be read as what it says it is."""
    try:
        found = wire.envelope(content, 1 << 20)
        if found.kind == wire.COMMAND:
            wire.of(wire.plain(found.payload), commands.Command)
        return found.kind in (wire.COMMAND, wire.SEEN)
    except wire.WireError:
        return False


def test_messages_that_are_too_large_end_the_connection_and_are_not_sent_by_a_window(tmp_path: Path) -> None:
    most = "from paretone.remote import wire; wire.LARGEST_COMMAND = 1 << 16"
    host = Host(tmp_path / "host", first=most)
    hello = wire.message(wire.HELLO, wire.Hello("0.2.0", "w", "laptop"))
    assert asyncio.run(_told(host.port, host.token, hello, bytes(1 << 17))) == (101, [])
    with pytest.MonkeyPatch.context() as patch, window(host.port, host.token, tmp_path) as here:
        here.recorder.wait_for_kind(events.EngineReady)
        patch.setattr(wire, "LARGEST_COMMAND", 1 << 16)
        here.engine.submit(commands.JudgeTake(1, "t", np.zeros(1 << 16, np.float32), 24_000))
        assert "more than the 0 MB that go to a host at once" in here.recorder.end_of(1).sentence
        here.recorder.finish(here.engine, commands.LoadModel(2, "f5-mini", device="cpu"))
    host.kill()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_of_the_host_cannot_read_the_token(host: Host) -> None:
    file = host.data / "remote" / "engine.json"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (file, file.parent)] == [0o600, 0o700]
    assert json.loads(file.read_text())["token"] == host.token
    for folder in (*file.parents,):
        if folder.owner() == "root" and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)  # Only the file itself keeps others out.
    found = subprocess.run(["cat", str(file)], user=65534, group=65534, extra_groups=[], capture_output=True, text=True)
    assert found.returncode and "Permission denied" in found.stderr and not found.stdout


SLEEP = f"""{BEGIN}
from tests.engine.remote.test_elsewhere import speak
from tests.engine.recorder import Recorder
recorder = Recorder()
recorder.react = lambda one: print(type(one).__name__, flush=True) if one.job == 2 else None
engine = RemoteEngine(recorder.post, link, Path(sys.argv[3]), pauses=(0.1,), stall=6.0)
engine.start()
engine.submit(commands.LoadModel(1, "f5-mini", device="cpu"))
engine.submit(speak(2))
recorder.end_of(2)
engine.submit(speak(3))
recorder.end_of(3)
pieces = [[one.samples.tobytes() for one in recorder.of(job, events.AudioReady)] for job in (2, 3)]
take, = recorder.of(2, events.TakeReady)
print("same", pieces[0] == pieces[1] and len(pieces[0]) > 1, flush=True)
engine.submit(commands.ShutDown(0))
engine.join(60)
"""


def test_a_laptop_that_sleeps_catches_up(tmp_path: Path) -> None:
    """The window's process is stopped until the host gave its line up; nothing is lost or doubled after it wakes."""
    host = Host(tmp_path / "host", first="from paretone.remote import server; server.HEARTBEAT_SECONDS = 1.0")
    said, arguments = [], [sys.executable, "-c", SLEEP, str(host.port), host.token, str(tmp_path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            said.append(line.strip())
            if said.count("AudioReady") == 1 and line.startswith("AudioReady"):
                process.send_signal(signal.SIGSTOP)
                time.sleep(4.0)
                process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 0 and said[-1] == "same True"
    assert [one for one in said if one.startswith("Job")] == ["JobFinished"]
    host.kill()


def test_events_are_kept_within_bounds_and_outcomes_always() -> None:
    box = Outbox(most=40_000)
    for step in range(50):
        box.add(events.Progress(1, step, 50, None, ""))
    assert len(list(box.after(0))) == 1, "an unsent figure gives way to the next"
    for piece in range(30):
        box.add(events.AudioReady(1, np.full(1_000, piece, np.float32)))
        box.add(events.EngineStatus(1, f"piece {piece}"))
    box.add(events.JobFinished(1))
    numbers = [number for number, _ in box.after(0)]
    kinds = [type(wire.of(wire.plain(wire.envelope(one, 1 << 20).payload), events.Event)) for _, one in box.after(0)]
    assert numbers == sorted(numbers) and kinds.count(events.EngineStatus) == 30 and kinds[-1] is events.JobFinished
    assert box.dropped == 30 - kinds.count(events.AudioReady) > 15
    box.seen(numbers[-2])
    assert len(list(box.after(0))) == 1
