"""Servers in studies: what their tables may say, and a server that is not there."""

import asyncio
import base64
import io
import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from aiohttp import web

import paretone
from paretone import files
from paretone.audio.recording import read_recording
from paretone.database import audio_path
from paretone.errors import Cancelled, StudyError
from paretone.models import catalogue
from paretone.models.voices import own_voice
from paretone.serving.speech_api import pcm
from paretone.studies.definition import parse, to_toml
from paretone.studies.report import to_html
from paretone.studies.results import read
from paretone.studies.running import FINISHED
from paretone.studies.servers import TOKEN, target_of
from paretone.studies.store import Store
from paretone.studies.study import SERVER
from paretone.studies.wording import setting_title
from tests.conftest import PATIENCE_SECONDS
from tests.engine.serving.answering import answering
from tests.engine.studies.small import Follower, finished, sql, study, takes_in

HERE = {"url": "http://127.0.0.1:9", "name": "Box"}
ANNA = catalogue.voice("anna", "f5-mini")
SAID = pcm(read_recording(ANNA.audio).samples[:60_000])


def test_a_setting_is_made_of_each_load_and_field(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text('{"num_inference_steps": 16, "voice": "mia", "seed": 9}')
    given = {**HERE, "clients": [1, 8], "request": "request.json", "token": True}
    given |= {"fields": {"speed": 1.5}, "vary": {"num_inference_steps": [8, 16]}}
    found = parse({"grid": {"steps": [8]}, "server": [given]}, root=tmp_path)
    servers = [one for one in found.candidates if one.origin == SERVER]
    assert [one.name for one in servers] == [
        f"Box, at {clients}, num_inference_steps {steps}" for clients in ("1 client", "8 clients") for steps in (8, 16)
    ]
    assert found.candidates[-4:] == tuple(servers) and found.takes == len(found.candidates) * found.takes_each
    with pytest.raises(StudyError, match=TOKEN):
        target_of(servers[0], ANNA)
    monkeypatch.setenv(TOKEN, " secret\n")
    target = target_of(servers[0], ANNA)
    fields = {"num_inference_steps": 8, "speed": 1.5, "seed": 9}
    assert (target.voice, target.token, target.fields) == ("mia", "secret", fields)
    assert target.body("Rice.", 3)["seed"] == 3, "the study's in place of the file's"
    assert "secret" not in json.dumps(servers[0].setting.to_json())
    assert parse(found.definition, root=tmp_path).candidates == found.candidates and to_toml(found.definition)


def test_fields_within_others_are_sent_as_an_export_has_them(tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text('{"extra_params": {"seed": 5, "shift": 0.1}, "response_format": "wav"}')
    given = {**HERE, "clients": 1, "request": "request.json", "vary": {"extra_params.shift": [0.1, 0.3]}}
    found = parse({"server": [given]}, root=tmp_path)
    targets = [target_of(one, ANNA) for one in found.candidates]
    said = [one.body("Rice.", 3)["extra_params"] for one in targets]
    assert said == [{"seed": 3, "shift": 0.1}, {"seed": 3, "shift": 0.3}]
    assert targets[0].body("Rice.", None)["extra_params"] == {"seed": 5, "shift": 0.1}
    assert found.candidates[1].name == "Box, at 1 client, extra_params.shift 0.3"
    assert parse(found.definition, root=tmp_path).candidates == found.candidates


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"url": "http://box:8880?a=b"}, r"server[0].url: Give the address of a server, such as http://"),
        ({"clients": 0}, "clients must be whole numbers from 1 to 1,000, not 0"),
        ({"clients": [1, 2000]}, "whole numbers from 1 to 1,000, not 2000"),
        ({"clients": ["8"]}, "whole numbers from 1 to 1,000, not '8'"),
        ({"clients": []}, "at least one of them"),
        ({"rate": [0.5, 0]}, "server[0].rate must be requests a second, above 0 and at most 1,000, not 0"),
        ({"rate": "often"}, "at most 1,000, not 'often'"),
        ({"vary": {"rate": [1, 2]}}, "rate is the server's own ([[server]]), not a field of its requests"),
        ({"vary": {"ref_audio": ["a.wav"]}}, "ref_audio is the server's own"),
        ({"ref_audio": [True, "none.wav"]}, "server[0].ref_audio must be a recording, a list of them, or true"),
        ({"ref_audio": [3]}, "there is no recording 3"),
        ({"vary": {"speed": 2}}, "vary.speed must be a list"),
        ({"fields": {"token": "x"}}, "token is the server's own"),
        ({"vary": {"clients": [1, 8]}}, "clients is the server's own"),
        ({"vary": {"input": ["a", "b"]}}, "the server Box gets 'input' from the study"),
        ({"vary": {"seed": [1, 2]}}, "gets 'seed' from the study"),
        ({"fields": {"ref": {"a": [1]}}}, "the field 'ref.a' for Box must be a number"),
        ({"fields": {"ref": 1, "ref.a": 2}}, "the field 'ref' for Box has a value, and fields within it"),
        ({"vary": {"extra_params": {"seed": [1, 2]}}}, "gets 'extra_params.seed' from the study"),
        ({"vary": {"response_format": ["wav", "mp3"]}}, "response_format for Box must be pcm or wav, not 'mp3'"),
        ({"request": "none.json"}, "none.json cannot be read: No such file or directory"),
        ({"adress": "x"}, "adress is an unknown field"),
    ],
)
def test_a_mistake_is_told_by_its_field(change: dict, words: str) -> None:
    with pytest.raises(StudyError, match=re.escape(words)):
        parse({"server": [{**HERE, **change}]})
    with pytest.raises(StudyError, match=re.escape("two servers are asked for the same: Box")):
        parse({"server": [HERE, HERE]})


def test_loads_are_clients_or_rates_and_recordings_are_varied_by_what_they_hold(tmp_path: Path) -> None:
    for name in ("one.wav", "two.wav"):
        (tmp_path / name).write_bytes(Path(ANNA.audio).read_bytes() + name.encode())
    given = {**HERE, "rate": [0.5, 2], "ref_audio": ["one.wav", "two.wav", True], "fields": {"ref_text": "Mine."}}
    parsed = lambda: parse({"server": [given, {**HERE, "rate": 1}]}, root=tmp_path).candidates  # noqa: E731
    found = parsed()
    assert [one.name for one in found[:3]] == ["Box, at 0.5 requests/s" + more for more in (", one", ", two", "")]
    assert found[-1].name == "Box, at 1 request/s" and found[-1].setting.options["rate"] == 1.0
    assert str(tmp_path) not in json.dumps(found[0].setting.to_json()) and len({one.key for one in found}) == 7
    fields = target_of(found[2], ANNA).body("Rice.", 1)
    sent = base64.b64decode(str(fields["ref_audio"]).removeprefix("data:audio/wav;base64,"))
    assert np.array_equal(soundfile.read(io.BytesIO(sent))[0], read_recording(ANNA.audio).samples)
    assert fields["ref_text"] == "Mine." and "voice" not in fields
    assert target_of(parse({"server": [{**HERE, "ref_audio": True}]}).candidates[0], ANNA).fields["ref_text"]
    for theirs in ("file:///srv/one.wav", "https://box/one.wav"):  # The server's own, as its form of requests has it.
        there = parse({"server": [{**HERE, "fields": {"ref_audio": theirs}}]}).candidates[0]
        assert target_of(there, ANNA).fields["ref_audio"] == theirs
    with pytest.raises(StudyError, match="has no recording that Box, at 0"):
        target_of(found[2], replace(ANNA, audio=""))
    (tmp_path / "one.wav").write_bytes(Path(ANNA.audio).read_bytes())
    assert [one.key == other.key for one, other in zip(found, parsed(), strict=True)] == [False, True, True] * 2 + [
        True
    ]


def test_a_server_that_goes_away_is_asked_again_for_what_is_missing(tmp_path: Path) -> None:
    left, follower = [4], Follower()

    async def answer(request: web.Request) -> web.Response:
        left[0] -= 1
        if left[0] < 0:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(body=SAID)

    with answering(answer) as address:
        asked = study(grid=None, options=None, server=[{"url": address, "rate": 50}])
        assert finished(tmp_path / "s", asked, follower) == FINISHED
        (found,) = read(tmp_path / "s").settings
        assert found.finished == 2 and "no connection" in read(tmp_path / "s").failures[0]
        assert [done for done, *_ in follower.advances] == [1, 2, 3, 3], "while they are answered"
        kept = takes_in(tmp_path / "s")
        left[0] = 100
        assert finished(tmp_path / "s", asked) == FINISHED
        assert not read(tmp_path / "s").failures and set(kept) < set(takes_in(tmp_path / "s"))


def test_the_report_says_for_how_long_a_server_did_not_want_to_be_asked(tmp_path: Path) -> None:
    statuses = iter([200] * 3)  # Two are the warm-up.

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=SAID, status=next(statuses, 429), headers={"Retry-After": "1"})

    with answering(answer) as address:
        finished(tmp_path / "s", study(grid=None, options=None, server=[{"url": address, "clients": 1}]))
    found = read(tmp_path / "s")
    assert "at 1 client: HTTP 429. It asked for a wait of 1 s. (2 takes)" in to_html(found) and len(found.failed) == 2


def test_knee_and_saturation_are_marked_among_closed_loops_that_differ_in_nothing_else(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=SAID)

    with answering(answer) as address:
        box = {"url": address, "name": "Box", "clients": [4, 1, 2], "rate": 50, "vary": {"speed": [1.0, 2.0]}}
        finished(tmp_path / "s", study(grid=None, options=None, server=[box]))
    # At the speed 2 saturated from the second load on; the clients of the other wait for each other.
    waits = {(4, 1.0): 4.0, (1, 1.0): 1.0, (2, 1.0): 2.0, (4, 2.0): 2.0, (1, 2.0): 1.0, (2, 2.0): 1.0}
    for one in read(tmp_path / "s").settings:
        wait = waits.get((one.setting.options.get("clients", 0), one.setting.options["speed"]), 0.1)
        times = "UPDATE takes SET measurements = json_set(measurements, '$.seconds', ?, '$.audio_seconds', 2.0)"
        sql(tmp_path / "s", f"{times} WHERE setting = ?", wait, one.key)
    found = read(tmp_path / "s")
    marked = {setting_title(one): one.mark for one in found.settings if one.mark}
    assert marked == {
        "Box, at 1 client, speed 1 (knee, saturated)": "knee, saturated",
        "Box, at 2 clients, speed 2 (knee, saturated)": "knee, saturated",
    }
    html = to_html(found)
    assert "Knee: most throughput per waiting" in html and all(f"<td>{one}<" in html for one in marked)


def test_a_cancelled_study_leaves_its_server_at_once_goes_on_with_it_and_is_verified(tmp_path: Path) -> None:
    reached, left = threading.Event(), threading.Event()

    async def answer(request: web.Request) -> web.Response:
        reached.set()
        try:
            await asyncio.sleep(60 if follower.slow else 0)
        except asyncio.CancelledError:
            left.set()
            raise
        return web.Response(body=SAID)

    class Impatient(Follower):
        slow = True

        def check(self) -> None:
            if self.slow and reached.is_set():
                raise Cancelled

    follower = Impatient()
    with answering(answer) as address:
        server = {"url": address, "clients": 2, "ref_audio": ANNA.audio}
        asked = study(grid=None, options=None, judges=["voice"], server=[server])
        with pytest.raises(Cancelled):
            finished(tmp_path / "s", asked, follower)
        assert left.wait(PATIENCE_SECONDS) and not takes_in(tmp_path / "s")
        follower.slow = False
        assert finished(tmp_path / "s", asked) == FINISHED
    with Store(tmp_path / "s", read_only=True) as store:
        takes = store.takes()
    assert [one.voice for one in takes] == [own_voice(ANNA.audio).id] * 3, "whom it cloned"
    checked = lambda: {one.title: one for one in paretone.verify_study(tmp_path / "s", takes=2)}  # noqa: E731
    assert checked()["Judges"].detail == "2 verdicts on 2 takes: the same." and "Weights" not in checked()
    another = read_recording(catalogue.voice("bella", "f5-mini").audio)
    for one in takes:
        audio_path(tmp_path / "s", one.take).write_bytes(files.wav(another.samples[:60_000], another.sample_rate))
    assert "the judge voice found voice_similarity" in checked()["Judges"].detail


def test_a_server_that_is_not_there_leaves_the_rest_of_the_study(tmp_path: Path) -> None:
    assert finished(tmp_path / "s", study(server=[{**HERE, "clients": 1}])) == FINISHED
    *others, server = read(tmp_path / "s").settings
    assert all(one.finished == 3 for one in others) and server.finished == 0
    assert "does not speak: no connection" in server.problem
    assert finished(tmp_path / "t", study(grid=None, options=None, server=[HERE])) == FINISHED, "no model is loaded"
