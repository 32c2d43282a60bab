"""A real speech server in its own process, met by OpenAI's client, by plain requests and by the load client."""

import asyncio
import io
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import numpy as np
import pytest
import soundfile
from aiohttp import web
from openai import APIStatusError, OpenAI

from paretone.errors import SettingError
from paretone.models import catalogue
from paretone.paths import data_folder
from paretone.serving import listening, speech_api
from paretone.serving.load import measure
from paretone.serving.records import Level, Order, Target, read_all
from paretone.session.commands import LoadModel, Synthesise
from paretone.session.executor import Executor
from paretone.setting.library import Library
from paretone.setting.setting import Setting
from tests.engine.command_line import Console, loaded

TOKEN, TEXT = "a-token", "Rice is often served in round bowls."
WAITING = 3
SLOW = b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n{"


@contextmanager
def serving(*more: str) -> Iterator[str]:
    """Host and port of a server in a process of its own, which a signal ends in the middle of a text."""
    command = (
        *(sys.executable, "-m", "paretone", "serve", "--speech-api", "--port", "0", "--token", TOKEN, *more),
        *("--model", "lm-mini", "--voice", "bella", "--waiting", str(WAITING), "--seed", "3", "--device", "cpu"),
    )
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    warm = False
    for line in process.stderr:
        warm |= "Synthesising" in line
        if "http://" in line:
            assert warm, "a sentence is spoken before anybody may ask"
            yield (address := line.partition("http://")[2].partition("/v1")[0])
            break
    else:
        raise AssertionError(process.wait())
    said: list[str] = []
    threading.Thread(target=lambda: said.extend(process.stderr), daemon=True).start()
    with long_speech(address) as speech:
        assert speech.read(1000)
        process.send_signal(signal.SIGTERM if more else signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert out.startswith("Spoke ") and process.returncode == 0, "it ends in the middle of a text"
    assert "Traceback" not in "".join(said), said


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as found:
        yield found


def ask(address: str, body: bytes, token: str = TOKEN) -> HTTPResponse:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(f"http://{address}/v1/audio/speech", body, headers))


def long_speech(address: str) -> HTTPResponse:
    """The answer to a request for minutes of speech, of which little has come yet."""
    return ask(address, json.dumps({"input": f"{TEXT} " * 60}).encode())


def client(address: str, token: str = TOKEN) -> OpenAI:
    return OpenAI(base_url=f"http://{address}/v1", api_key=token, max_retries=0)


def post(address: str, body: bytes, token: str = TOKEN) -> tuple[int, dict]:
    try:
        ask(address, body, token).read()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]
    return 200, {}


def test_the_official_client_hears_what_the_command_line_speaks(address: str, console: Console, tmp_path: Path) -> None:
    speech = client(address).audio.speech
    heard = speech.create(input=TEXT, model="lm-mini", voice="bella", response_format="wav").content
    samples, rate = soundfile.read(io.BytesIO(heard), dtype="float32")
    spoken = tmp_path / "spoken.wav"
    console.out("speak", "--model", "lm-mini", "--voice", "bella", "--seed", 3, "--text", TEXT, "--out", spoken)
    wanted, wanted_rate = soundfile.read(spoken, dtype="float32")
    assert rate == wanted_rate and len(samples) == len(wanted)
    assert np.abs(samples - np.clip(wanted, -1, 1)).max() <= 1.01 / 32768


def test_every_format_and_streaming_by_events_have_the_same_sound(address: str) -> None:
    speech = client(address).audio.speech
    pcm = speech.create(input="Rice.", model="paretone", voice="anna", response_format="pcm").content
    for form in ("flac", "mp3", "opus"):
        sound = speech.create(input="Rice.", model="lm-mini", voice="anna", response_format=form).content
        data, rate = soundfile.read(io.BytesIO(sound))
        assert abs(len(data) / rate - len(pcm) / 2 / 24_000) < 0.15, form
    with speech.with_streaming_response.create(
        input="Rice.", model="lm-mini", voice="anna", response_format="pcm", stream_format="sse"
    ) as events:
        lines = [line for line in events.iter_lines() if line]
    kinds = [json.loads(line.removeprefix("data: "))["type"] for line in lines]
    assert kinds[:-1] == ["speech.audio.delta"] * (len(kinds) - 1) and kinds[-1] == "speech.audio.done"


def test_companions_name_the_model_its_voices_and_the_state(address: str) -> None:
    assert [one.id for one in client(address).models.list()] == ["lm-mini"]
    with urllib.request.urlopen(f"http://{address}/health") as answer:  # It needs no token.
        assert json.load(answer)["status"] == "ok"
    voices = urllib.request.Request(f"http://{address}/v1/audio/voices", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(voices) as answer:
        assert {"anna", "bella"} <= {one["id"] for one in json.load(answer)["voices"]}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"rice", 400, "not JSON"),
        (b"[]", 400, "must be a JSON object"),
        (b"[" * 100_000, 400, "not JSON"),
        (b'{"input": "Rice.", "response_format": []}', 400, "response_format must be wav"),
        (b"{}", 400, "input must be the text"),
        (b'{"input": "Rice.", "voice": "nobody"}', 400, "There is no voice 'nobody'; there are anna"),
        (b'{"input": "Rice.", "model": "tts-1"}', 404, "has the model lm-mini, not 'tts-1'"),
        (b'{"input": "Rice.", "response_format": "aac"}', 400, "response_format must be wav"),
        (b'{"input": "Rice.", "speed": 2}', 400, "speed must be 1"),
        (b'{"input": "Rice.", "seed": -1}', 400, "seed"),
        (b'{"input": "Rice.", "pitch": 3}', 400, "does not know pitch"),
        (b'{"input": "' + b"Rice. " * 400_000 + b'"}', 413, "Too Large"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(address: str, body: bytes, status: int, words: str) -> None:
    found, error = post(address, body)
    assert found == status and words in error["message"] and error["type"] == "invalid_request_error"


def test_fields_without_a_value_are_as_not_given_and_a_body_that_cannot_be_decoded_is_said(address: str) -> None:
    assert post(address, b'{"input": "Rice.", "voice": null, "seed": null, "instructions": null}') == (200, {})
    host, _, port = address.rpartition(":")
    with closing(HTTPConnection(host, int(port))) as direct:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Encoding": "gzip"}
        direct.request("POST", "/v1/audio/speech", b'{"input": "Rice."}', headers)
        answer = direct.getresponse()
        assert answer.status == 400 and "cannot be read: Can not decode" in json.load(answer)["error"]["message"]


def test_without_the_token_nothing_is_spoken(address: str) -> None:
    for token in ("", "another", TOKEN + "x", "\xff\xfe"):
        assert post(address, b'{"input": "Rice."}', token)[0] == 401
    with pytest.raises(APIStatusError, match="token is missing or wrong"):
        client(address, "another").models.list()


def test_more_requests_than_may_wait_are_turned_away_and_a_client_that_leaves_makes_room(address: str) -> None:
    first = long_speech(address)
    assert first.read(1000), "it is sent while the model speaks"
    with ThreadPoolExecutor(WAITING) as pool:
        waiting = [pool.submit(post, address, b'{"input": "Rice."}') for _ in range(WAITING)]
        deadline = time.monotonic() + 60
        while json.load(urllib.request.urlopen(f"http://{address}/health"))["waiting"] < WAITING:
            assert time.monotonic() < deadline
        status, error = post(address, b'{"input": "Rice."}')
        assert status == 429 and error["code"] == "queue_full"
        first.close()
        assert [one.result(timeout=60) for one in waiting] == [(200, {})] * WAITING, "the long text was cancelled"


def test_a_client_that_takes_nothing_keeps_no_other_waiting(address: str) -> None:
    host, _, port = address.rpartition(":")
    body = json.dumps({"input": f"{TEXT} " * 20}).encode()
    head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}"
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((host, int(port)))
        deaf.sendall(f"{head}\r\n\r\n".encode() + body)
        assert deaf.recv(1) and post(address, b'{"input": "Rice."}') == (200, {})


def test_what_is_no_request_is_answered_or_given_up_and_not_logged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speech_api, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr("paretone.serving.IDLE_SECONDS", 0.5)
    usual = Synthesise(1, TEXT, replace(catalogue.voice("bella", "lm-mini"), audio="gone.wav"), Setting("lm-mini"))
    (executor := Executor(loaded)).carry_out(LoadModel(1, "lm-mini", device="cpu"), print, threading.Event())
    server = speech_api.SpeechServer(executor, usual, token="", waiting=0, folder="")

    async def answers() -> list[bytes]:
        async with listening(server.application(), "127.0.0.1", 0, 0.0) as (host, port):
            found = []
            halves = [await asyncio.open_connection(host, port) for _ in range(200)]
            for number, (_, writer) in enumerate(halves):  # Of every other one it is the second request.
                writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * (number % 2) + b"GET / HTTP/1.1\r\nA: ")
            for sent in (b"rice\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a" * 100_000, SLOW, SLOW + b'"input":"Rice."}'):
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(sent)
                found.append(await reader.readline())
                writer.close()
            return [*found, *[await reader.read() for reader, _ in halves]]

    statuses = [one.split()[1] for one in asyncio.run(answers()) if one]
    assert statuses == [b"400", b"400", b"408", b"500", *[b"200"] * 100] and not capsys.readouterr().err


def test_the_load_client_measures_it_in_both_loops(address: str) -> None:
    target = Target(f"http://{address}", "lm-mini", "anna", TOKEN, form="wav")
    order = Order(target, ("Rice.", "Milk."), requests=4, warm_up=1)
    closed, opened = (measure(order, one) for one in (Level(clients=2), Level(rate=4.0)))
    many = measure(replace(order, requests=8), Level(clients=8))
    for one in (closed, opened):
        row = one.row()
        assert row["failed"] == 0 and len(one.answered) == 4
        assert 0 < row["first_audio_p50"] <= row["latency_p50"] <= row["latency_p99"]
        assert row["latency_p50_interval"][0] <= row["latency_p50"] <= row["latency_p50_interval"][1]
        assert row["audio_seconds_per_second"] > 0 and all(reply.sample_rate == 24_000 for reply in one.answered)
    asked = {(one.text, one.seed) for one in closed.replies}
    assert asked == {(text, seed) for text in ("Rice.", "Milk.") for seed in (0, 1)}
    assert set(many.failures) == {"HTTP 429"}, "eight clients, of whom three may wait"


def test_the_command_measures_keeps_replies_and_says_what_fails(address: str, console: Console, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("Rice.\nMilk.\n")
    asked = "load", f"http://{address}/v1", "--clients", 1, "--requests", 2, "--text-file", tmp_path / "texts.txt"
    found = console.data(*asked, "--json", "--token", TOKEN, "--keep", tmp_path / "kept")
    assert found["loads"][0]["failed"] == 0 and len(found["texts_sha256"]) == 64
    kept = json.loads((tmp_path / "kept" / "load.json").read_text())["replies"]
    texts = (tmp_path / "kept" / "texts.txt").read_text().splitlines()
    assert texts == [kept[path.name] for path in sorted((tmp_path / "kept").glob("*.wav"))], "as judge takes them"
    assert sorted(kept.values()) == ["Milk.", "Rice."] and all((tmp_path / "kept" / name).is_file() for name in kept)
    assert "does not speak: HTTP 401. The token is missing or wrong; send it as" in console.refusal(*asked)
    file = tmp_path / "request.json"
    file.write_text('{"response_format": "wav", "voice": "nobody"}')
    refused = console.refusal(*asked, "--token", TOKEN, "--request", file)
    assert "There is no voice 'nobody'" in refused, "fields of a file are sent"
    file.write_text("[]")
    assert "one JSON object" in console.refusal(*asked, "--request", file)
    assert "none.json cannot be read: No such file" in console.refusal(*asked, "--request", tmp_path / "none.json")
    for field, instead in (("input=Milk.", "--text-file"), ("seed=3", "--seeds")):
        assert f"differs from request to request; give it by {instead}" in console.refusal(*asked, "--field", field)
    events = console.refusal(*asked, "--token", TOKEN, "--field", "stream_format=sse")
    assert "no sound. The answer is text/event-stream, not audio" in events, "their text is no samples"
    assert "not 'mp3'; give --format" in console.refusal(*asked, "--field", "response_format=mp3")
    assert "Give the address of a server" in console.refusal("load", "localhost:a")


def test_replies_are_judged_and_the_measurement_is_kept_for_the_window(address: str, console: Console) -> None:
    asked = "load", f"http://{address}", "--clients", 1, 2, "--requests", 2, "--token", TOKEN, "--voice", "bella"
    found = console.out(*asked, "--judge", "--record", "Mine")
    assert "1 client: Word error rate" in found and "Naturalness" in found
    ((kept,), problems) = read_all()
    with Library(data_folder() / "takes", read_only=True) as library:
        replies = {one.id: one for one in library.summaries()}
    assert [*replies] == [one for row in kept.loads[::-1] for one in row["takes"][::-1]] and len(replies) == 4
    assert all(one.is_reply and one.metrics.naturalness > 1 and one.voice == "bella" for one in replies.values())
    assert kept.title == "Mine" and [one["clients"] for one in kept.loads] == [1, 2] and not problems
    assert 0 <= kept.figures()["word_error_rate"].value < 0.5 and 2 < kept.figures()["naturalness"].value < 5


def test_a_study_asks_a_server_and_its_replies_are_takes(
    address: str, console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "served.toml"
    file.write_text(
        'sentences = ["Good morning.", "Rice."]\nmodel = "f5-mini"\nvoices = ["bella"]\njudges = ["words", "faults"]\n'
        f'[[server]]\nname = "Mine"\nurl = "http://{address}"\nclients = 3\nrate = 4\ntoken = true\n'
        'vary = { response_format = ["pcm", "wav"] }\n'
    )
    assert "set the environment variable PARETONE_SERVER_TOKEN" in console.refusal("study", "run", file)
    monkeypatch.setenv("PARETONE_SERVER_TOKEN", TOKEN)
    with monkeypatch.context() as patched:
        stop = lambda self, event: getattr(event, "done", 0) and signal.raise_signal(signal.SIGTERM)  # noqa: E731
        patched.setattr("paretone.commands.terminal.Terminal.hear", stop)
        said = console.refusal("study", "run", file, code=143)
    assert "of which all but the replies to an unfinished load are kept" in said
    said = console.out("study", "run", file)
    for words in "Mine, at 3 clients, response_format wav", "Mine, at 4 requests/s, ", "8 takes were made":
        assert words in said
    found = console.data("study", "status", file, "--json")
    assert [one["takes"] for one in found["settings"]] == [2] * 4 and not found["failures"]
    figures = found["settings"][0]["figures"]
    assert figures["first_audio_seconds"]["value"] > 0 and 0 <= figures["word_error_rate"]["value"] <= 1
    assert not {"ops_ratio", "backbone_seconds", "speed_up", "log_mel_distance"} & set(figures), "unknown from outside"
    console.out("study", "export", file)
    page = (tmp_path / "served.study" / "report" / "report.html").read_text()
    assert page.count("<audio") >= 8 and ">Server<" in page and TOKEN not in page
    assert "0 takes were made" in console.out("study", "run", file), "each reply once"
    assert "✗" not in console.out("study", "verify", file)


def test_requests_are_spoken_at_once_and_sound_as_alone(address: str) -> None:
    def heard(where: str, seed: int) -> bytes:
        body = json.dumps({"input": TEXT, "voice": "bella", "seed": seed, "response_format": "pcm"}).encode()
        return ask(where, body).read()

    with serving("--batch", "4") as together, ThreadPoolExecutor(4) as pool:
        alone = [heard(address, seed) for seed in range(4)]
        slow = long_speech(together)
        assert slow.read(1000)
        found = list(pool.map(lambda seed: heard(together, seed), range(4)))
        assert json.load(urllib.request.urlopen(f"http://{together}/health"))["speaking"], "the long one goes on"
        slow.close()
    for one, other in zip(alone, found, strict=True):
        samples = [np.frombuffer(data, "<i2").astype(float) for data in (one, other)]
        assert len(samples[0]) == len(samples[1]) and np.abs(samples[0] - samples[1]).max() < 33, "1e-3 of full scale"


def test_nobody_beyond_this_machine_is_served_without_a_token(console: Console) -> None:
    assert "must be a port, from 0 to 65535" in console.refusal("serve", "--port", 70_000, code=2)
    for host in ("0.0.0.0", "::"):
        assert "give a --token" in console.refusal("serve", "--speech-api", "--host", host, code=2)
    assert "No client can send this" in console.refusal("serve", "--speech-api", "--token", "a\nb", code=2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = console.refusal("serve", "--speech-api", "--port", taken.getsockname()[1], code=2)
    assert said.startswith("Nothing can listen on 127.0.0.1, port "), "before a model is loaded"
    assert "makes its own token" in console.refusal("serve", "--host", "0.0.0.0", "--token", "x", code=2)
    for given in (("--voice", "anna"), ("--batch", 4), ("--waiting", 3), ("--as", "published"), ("--no-stream",)):
        assert "to serve speech over HTTP, add --speech-api" in console.refusal("serve", *given, code=2)
    for given in (("--grace", 4), ("--stay",)):
        assert "for an engine only" in console.refusal("serve", "--speech-api", *given, code=2)


@pytest.mark.parametrize(("host", "words"), [("127.0.0.1", "in use"), ("a..b", "idna"), ("none.invalid", "")])
def test_a_place_where_nothing_can_listen_is_said(host: str, words: str) -> None:
    async def listen(port: int) -> None:
        async with listening(web.Application(), host, port, 0.0):
            raise AssertionError("two listen on one port")

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SettingError) as caught:
        asyncio.run(listen(taken.getsockname()[1]))
    assert str(caught.value).startswith(f"Nothing can listen on {host}, port ") and words in str(caught.value)
