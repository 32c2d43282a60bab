"""Servers that answer otherwise than they were asked: what they send is understood, or said in a sentence."""

import asyncio
import io
import re
import shutil
import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import numpy as np
import pytest
import soundfile
from aiohttp import web

from paretone import files
from paretone.errors import PlainError, SettingError
from paretone.models import catalogue
from paretone.models.voices import own_voice
from paretone.paths import data_folder
from paretone.serving import load
from paretone.serving.load import Measured, Reply, measure
from paretone.serving.records import Level, Order, Target, address, heard_voices, read_all
from paretone.serving.speech_api import pcm, wav_head
from paretone.setting.library import Library
from tests.engine.command_line import Console
from tests.engine.serving.answering import answering, hanging_up

ANNA = catalogue.voice("anna", "f5-mini").audio
SOUND = np.sin(np.arange(8_000) / 10).astype(np.float32)


def measured(address: str, requests: int, clients: int = 1, **target: str) -> Measured:
    return measure(Order(Target(address, **target), ("Rice.",), requests=requests), Level(clients))


def asked(body: bytes, headers: dict[str, str], form: str = "pcm", status: int = 200, **more: str) -> Reply:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, headers=headers, status=status)

    with answering(answer) as address:
        found = measured(address, 1, form=form, **more)
    assert found.row()["failed"] == 0 and "reported_rtf" not in found.row()
    return found.answered[0]


@pytest.mark.parametrize(
    ("body", "kind", "form", "words"),
    [
        (b'{"error": {"message": "No such voice."}}', "application/json", "pcm", "json, not audio: No such voice"),
        (b'{"error": "busy"}', "application/problem+json; charset=nonsense", "pcm", "not audio: {.error.: .busy.}"),
        (b'{"error": "busy"}', "application/octet-stream", "pcm", "no pcm: it begins with b'{.error"),
        (b"OggS and more", "audio/ogg", "wav", "no wav: it begins with b'OggS"),
        (b"\xff\xfb", "text/html", "pcm", "text/html, not audio"),
        (b"", "audio/pcm", "pcm", "The answer is empty"),
        (b"RIFF1234WAVEfmt ", "audio/wav", "wav", "a WAV file without samples"),
        (files.wav(SOUND, 16_000).replace(b"\x12\0\0\0\3", b"\x12\0\0\0\x63"), "audio/wav", "wav", "Malformed"),
    ],
)
def test_an_answer_that_is_no_sound_is_said(body: bytes, kind: str, form: str, words: str) -> None:
    with pytest.raises(PlainError, match=f"does not speak: no sound.*{words}"):
        asked(body, {"Content-Type": kind}, form)


def test_sound_in_another_form_than_asked_for_is_measured_as_what_it_is() -> None:
    streamed = wav_head(16_000) + pcm(SOUND)
    for body, accuracy in ((streamed, 1 / 32768), (files.wav(SOUND, 16_000), 0)):
        found = asked(body, {"Content-Type": "audio/pcm", "X-RTF": "nan"})
        assert found.sample_rate == 16_000 and np.abs(found.samples - np.clip(SOUND, -1, 1)).max() <= accuracy
        assert found.arrivals[-1][1] == len(SOUND)
    assert asked(pcm(SOUND), {"X-Sample-Rate": "0", "X-RTF": "-"}).sample_rate == 24_000
    with pytest.raises(PlainError, match=r"no sound. The answer's sample rate is 999999 Hz, by its headers."):
        asked(pcm(SOUND), {"X-Sample-Rate": "999999"})
    with pytest.raises(PlainError, match=r"no sound. The answer is silent."):
        asked(bytes(4800), {})


def refusal(address: str) -> str:
    with pytest.raises(PlainError) as caught:
        measured(address, 1)
    return str(caught.value)


def test_a_wav_file_is_what_came_whatever_its_header_claims() -> None:
    for subtype, channels in (("PCM_U8", 2), ("FLOAT", 1), ("PCM_16", 2), ("PCM_24", 1)):
        soundfile.write(file := io.BytesIO(), np.stack([SOUND / 2] * channels, 1), 48_000, subtype, format="WAV")
        body = file.getvalue()
        at = body.index(b"data") + 4
        for claimed, after in ((0, b""), (64, b""), (2**32 - 1, b""), (len(body) - at - 4, b"LIST\4\0\0\0INFO")):
            found = asked(body[:at] + claimed.to_bytes(4, "little") + body[at + 4 :] + after, {}, "wav")
            assert found.sample_rate == 48_000 and found.arrivals[-1][1] == len(found.samples) == len(SOUND)
            assert np.abs(found.samples - SOUND / 2).max() < 0.01


HEAD = b"Content-Type: audio/pcm; rate=16000\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(pcm(SOUND))


@pytest.mark.parametrize("first", [b"HTTP/1.1 200 OK\r\n" + LENGTH, b"HTTP/1.0 200 OK\r\n"])
def test_a_server_may_hang_up_after_each_answer(first: bytes) -> None:
    with hanging_up(first + HEAD + b"\r\n" + pcm(SOUND)) as address:
        found = measured(address, 6, clients=2)
    assert not found.failures and {one.sample_rate for one in found.answered} == {16_000}


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"HTTP/1.1 301 Moved\r\nLocation: https://box/\r\n\r\n", "sends on to 'https://box/'; measure that"),
        (b"SSH-2.0-OpenSSH\r\n", "no connection. Bad status line: Expected HTTP/"),
        (b"HTTP/1.1 201 Created\r\n" + HEAD + LENGTH + b"\r\n" + pcm(SOUND), "speak: HTTP 201."),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n" + HEAD + b"\r\nRice", "cut off. Can not decode content-enc"),
        (b"", "no connection. Server disconnected"),
    ],
)
def test_an_answer_that_is_not_to_be_used_is_said(reply: bytes, words: str) -> None:
    with hanging_up(reply) as address:
        assert words in refusal(address)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed here")
def test_a_certificate_that_is_not_trusted_is_said_with_what_to_do(tmp_path: Path) -> None:
    made = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out mine.pem -subj /CN=localhost"
    subprocess.run(made.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "mine.pem", tmp_path / "key.pem")
    with hanging_up(b"HTTP/1.0 200 OK\r\n" + HEAD + b"\r\n" + pcm(SOUND), context) as address:
        command = f"SSL_CERT_FILE={tmp_path}/mine.pem {sys.executable} -m paretone load {address} --requests 1"
        assert subprocess.run(command, shell=True, capture_output=True).returncode == 0
        assert "not trusted: self-signed certificate; name its file in SSL_CERT_FILE" in refusal(address)


def test_an_answer_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        await (response := web.StreamResponse()).prepare(request)
        while True:
            await response.write(b"\1")
            await asyncio.sleep(0.05)

    monkeypatch.setattr(load, "LONGEST_SECONDS", 0.5)
    with answering(answer) as address:
        assert "timeout. No end within 0.5 s" in refusal(address)
        monkeypatch.setattr(load, "LARGEST_BYTES", 3)
        assert "no end. More than" in refusal(address)


def test_a_token_that_no_header_can_hold_is_a_sentence() -> None:
    with pytest.raises(PlainError, match="does not speak: no connection"):
        asked(pcm(SOUND), {}, token="a\nb")
    assert asked(pcm(SOUND), {}, token="two words, ключ").measurements.audio_seconds > 0


def test_a_server_that_goes_away_ends_the_command_with_1_unless_each_load_has_an_answer(console: Console) -> None:
    left = 3

    async def answer(request: web.Request) -> web.Response:
        nonlocal left
        left -= 1
        return web.Response(body=pcm(SOUND), status=200 if left >= 0 else 503)

    with answering(answer) as address:
        asked = "load", address, "--clients", 1, 2, "--requests", 2, "--warm-up"
        done = console(*asked, 1, "--record", "Away", "--judge", "--reference", ANNA)
        left = 2
        silent = console(*asked, 0)
        left = 3
        some = console(*asked, 0, "--judge")
    assert done.code == PlainError.exit_code and "2 clients" not in done.out and "\n1 client" in done.out
    assert "Failed after 1 client. " in done.err and "does not speak: HTTP 503" in done.err
    assert len(read_all()[0][0].loads) == 1
    with Library(data_folder() / "takes", read_only=True) as library:
        kept = library.summaries()
    assert {one.voice for one in kept} == {own_voice(ANNA).id} and "ref_audio" not in kept[0].setting.options
    assert [one.audio for one in heard_voices()] == [ANNA], "whom the window compares with"
    assert silent.code == PlainError.exit_code and "No request was answered at 2 clients." in silent.err
    assert some.code == 0 and "Failed at 2 clients: HTTP 503 (1)." in some.out and "2 clients: means of one" in some.out


def test_an_address_has_a_host_and_nothing_after_its_path() -> None:
    for right in ("http://box", "HTTPS://box:1/a/v1", "http://[::1]:8880", "http://me:word@box"):
        assert address(right) == right
    assert [address(one) for one in ("box:8880", "localhost/v1")] == ["http://box:8880", "http://localhost/v1"]
    wrong = "http://", "ftp://box", "http:/box", "http://box:99999", "http://[::1", "a b", "http://box?x=1", "box:x", ""
    for one in wrong:
        with pytest.raises(SettingError, match=r"such as http://127.0.0.1:8880"):
            address(one)


@pytest.mark.parametrize("dated", [False, True])
def test_a_server_that_says_when_to_ask_again_is_asked_then_and_the_wait_is_said(console: Console, dated: bool) -> None:
    came: list[float] = []

    async def answer(request: web.Request) -> web.Response:
        came.append(time.monotonic())
        when = format_datetime(datetime.now(UTC) + timedelta(seconds=2.5), usegmt=True) if dated else "1"
        return web.Response(body=pcm(SOUND), status=429 if len(came) > 1 else 200, headers={"Retry-After": when})

    with answering(answer) as address:
        done = console("load", address, "--clients", 1, "--requests", 3, "--warm-up", 0)
    said = re.search(r"HTTP 429 .2.*For Retry-After, clients waited ([0-9.]+) s in all", done.out)
    assert len(came) == 3 and came[2] - came[1] >= 1.0 > came[1] - came[0], "speech is no refusal"
    assert said and 0.9 < float(said[1]) <= 2.5, "once: after the last request nobody waits"
