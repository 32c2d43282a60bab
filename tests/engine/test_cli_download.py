"""``paretone download`` as people run it, from a server on this machine."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from paretone import cli
from tests.engine.command_line import Console, Outcome
from tests.engine.models.hub import CONTENT, WEIGHTS, Hub, assert_complete

constants = pytest.importorskip("huggingface_hub.constants")
MODEL = "F5TTS_v1_Base"
LICENCE = "CC-BY-NC-4.0"


@pytest.fixture
def download(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: Console) -> Callable[..., Outcome]:
    """Runs the command line in this process, for which the Hub is the server on this machine."""
    template = f"{hub.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "data"))
    return partial(console, "download")


def test_the_licence_is_shown_and_asked_for(download: Callable[..., Outcome], hub: Hub, tmp_path: Path) -> None:
    refused = download(MODEL, "--folder", tmp_path / "m")
    assert (refused.code, refused.out) == (2, "")
    err = refused.err
    assert "CC-BY-NC-4.0: use, share and adapt with attribution, for non-commercial purposes only." in err
    assert "https://creativecommons.org/licenses/by-nc/4.0/" in err
    assert "https://huggingface.co/SWivid/F5-TTS: F5TTS_v1_Base/model_1250000.safetensors, 1.6 MB" in err
    assert "https://opensource.org/license/mit" in err
    assert f'paretone download {MODEL} --accept-licence "CC-BY-NC-4.0" --folder "{tmp_path / "m"}"' in err
    assert not hub.transfers()
    assert not (tmp_path / "m").exists()


def test_a_server_out_of_reach_does_not_hide_the_licence(download: Callable[..., Outcome], hub: Hub) -> None:
    hub.status[WEIGHTS] = 500
    refused = download(MODEL)
    assert refused.code == 2
    assert "status 500" in refused.err
    assert "for non-commercial purposes only" in refused.err


def test_fetching_into_its_usual_place(download: Callable[..., Outcome], tmp_path: Path) -> None:
    fetched = download(MODEL, "--accept-licence", LICENCE, "--json")
    assert fetched.code == 0, fetched.err
    assert_complete(tmp_path / "data" / "models" / MODEL)
    found = fetched.data
    assert found["folder"] == str(tmp_path / "data" / "models" / MODEL)
    assert len(found["files"]) == 4
    assert found["bytes"] == sum(Path(path).stat().st_size for path in found["files"])
    assert "Downloading model_1250000.safetensors" in fetched.err
    assert "100 %" in fetched.err


def test_ctrl_c_keeps_what_came_for_the_next_time(download: Callable[..., Outcome], hub: Hub, tmp_path: Path) -> None:
    # More than one block, which is what a client writes at once.
    hub.break_off_after = [1_300_000]

    def interrupt_once_something_is_written() -> None:
        while not any(part.stat().st_size for part in (tmp_path / "m").glob("model*.part")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    hub.before_break_off = interrupt_once_something_is_written
    cancelled = download(MODEL, "--folder", tmp_path / "m", "--accept-licence", LICENCE)
    assert cancelled.code == 130
    assert "Cancelled. The downloaded part is kept" in cancelled.err
    (part,) = (tmp_path / "m").glob("*.part")
    assert 0 < part.stat().st_size < len(CONTENT[WEIGHTS])

    offset = part.stat().st_size
    hub.requests.clear()
    resumed = download(MODEL, "--folder", tmp_path / "m", "--accept-licence", LICENCE)
    assert resumed.code == 0, resumed.err
    assert f'--folder "{tmp_path / "m"}" --variant {MODEL} --text' in resumed.out
    assert hub.transfers() == [f"bytes={offset}-"]
    assert_complete(tmp_path / "m")


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 2)])
@pytest.mark.usefixtures("download")
def test_at_a_terminal_it_asks(tmp_path: Path, answer: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pytest.importorskip("pty", reason="pseudo-terminals are POSIX").openpty()
    shown: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # Linux says so when the other end is closed.
            while some := os.read(ours, 4096):
                shown.append(some)

    os.write(ours, f"{answer}\n".encode())
    reader = threading.Thread(target=read)
    reader.start()
    with open(theirs, closefd=False) as typed, open(theirs, "w") as screen, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", typed)
        patch.setattr(sys, "stderr", screen)
        assert cli.main(["download", MODEL, "--folder", str(tmp_path / "m")]) == code
    reader.join()
    os.close(ours)
    assert "[y/N]" in b"".join(shown).decode()
    assert (tmp_path / "m").exists() is (code == 0)
