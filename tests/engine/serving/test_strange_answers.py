"""Servers that answer otherwise than they were asked: what they send is understood, or said in a sentence."""

import numpy as np
import pytest
from aiohttp import web

from paretone import files
from paretone.errors import PlainError
from paretone.serving.load import Load, Reply, Target
from paretone.serving.records import Level, is_address, read_all
from paretone.serving.speech_api import pcm, wav_head
from tests.engine.command_line import Console
from tests.engine.serving.answering import answering

SOUND = np.sin(np.arange(8_000) / 10).astype(np.float32)


def asked(body: bytes, headers: dict[str, str], form: str = "pcm", status: int = 200, **more: str) -> Reply:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, headers=headers, status=status)

    with answering(answer) as address:
        load = Load(Target(address, form=form, **more), ["Rice."], requests=1, warm_up=1)
        (found,) = load.run([Level(clients=1)])
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
        (b"RIFF1234WAVEfmt ", "audio/wav", "wav", "without a description of its samples"),
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


def test_a_token_that_no_header_can_hold_is_a_sentence() -> None:
    with pytest.raises(PlainError, match="does not speak: no connection"):
        asked(pcm(SOUND), {}, token="a\nb")
    assert asked(pcm(SOUND), {}, token="two words, ключ").audio_seconds > 0


def test_of_a_server_that_goes_away_the_finished_loads_are_shown_and_kept(console: Console) -> None:
    left = 3

    async def answer(request: web.Request) -> web.Response:
        nonlocal left
        left -= 1
        return web.Response(body=pcm(SOUND), status=200 if left >= 0 else 503)

    with answering(answer) as address:
        done = console(
            "load", address, "--clients", 1, 2, "--requests", 2, "--warm-up", 1, "--record", "Away", "--judge"
        )
    assert done.code == PlainError.exit_code and "2 clients" not in done.out and "\n1 client" in done.out
    assert "Stopped after 1 client. " in done.err and "does not speak: HTTP 503" in done.err
    assert len(read_all()[0][0].loads) == 1


def test_an_address_has_a_host_and_nothing_after_its_path() -> None:
    assert all(map(is_address, ("http://box", "HTTPS://box:1/a/v1", "http://[::1]:8880", "http://me:word@box")))
    wrong = "box:8880", "http://", "ftp://box", "http://box:99999", "http://[::1", "http://a b", "http://box?x=1", ""
    assert not any(map(is_address, wrong))
