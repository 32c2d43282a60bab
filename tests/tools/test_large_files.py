"""Large files between a window and a host: in parts, whole or not at all."""

import hashlib
import os
import re
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")

from paretone.models.base import Voice
from paretone.session import commands, events
from tests.disk import tiny_disk  # noqa: F401
from tests.engine.remote.elsewhere import Host, window
from tests.engine.remote.test_elsewhere import asked, setting

SIZE = 300_000_000
LARGER = f"""
import os
from paretone.remote.places import HostFiles
fetched = HostFiles.fetched
def larger(self, name):
    place = fetched(self, name)
    if place.suffix == ".safetensors":
        os.truncate(place, {SIZE})
    return place
HostFiles.fetched = larger
"""
"""Weights that are fetched are files of that size, though of a small model."""


def peak(process: int | str) -> int:
    """Bytes of memory that a process had at most."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())[1]) << 10


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads memory as Linux tells it")
def test_no_side_holds_a_large_file_and_what_cannot_be_kept_is_refused(tiny_disk: Path, tmp_path: Path) -> None:  # noqa: F811
    host = Host(tmp_path / "host", first=LARGER)
    both = "self", host.process.pid
    (recording := tmp_path / "large.wav").touch()
    os.truncate(recording, SIZE)
    speak = commands.Synthesise(3, "Milk.", Voice("large", "Large", str(recording), "Milk."), setting())
    with window(host.port, host.token, tmp_path) as here:
        here.recorder.finish(here.engine, commands.LoadModel(1, "lm-mini", device="cpu"))
        for one in both:
            Path(f"/proc/{one}/clear_refs").write_text("5")
        before = [*map(peak, both)]
        export = commands.ExportWeights(2, "lm-mini", "draft", "", str(tmp_path / "out"))
        here.recorder.finish(here.engine, export)
        here.engine.submit(speak)
        assert isinstance(here.recorder.end_of(3), events.JobFailed), "it has no sound"
        assert all(peak(one) < old + 50_000_000 for one, old in zip(both, before, strict=True)), before
        here.engine.submit(commands.ExportWeights(4, "lm-mini", "draft", "", str(tiny_disk / "out")))
        assert "could not be written: the disk is full; free some space" in here.recorder.end_of(4).sentence
    assert (tmp_path / "out" / "model.safetensors").stat().st_size == SIZE
    assert [one for one in (host.data / "remote" / "received").rglob("*.wav") if one.stat().st_size == SIZE]
    host.kill()
    full = Host(tiny_disk)
    right = f"{hashlib.sha256(bytes(9)).hexdigest()}/a.wav"
    for token, name, content, more, status, said in (
        ("wrong", right, bytes(9), {}, 401, "The token is missing"),
        (full.token, right, bytes(9), {}, 200, ""),
        (full.token, f"{'a' * 64}/../../engine.json", b"x", {}, 400, "is no name of a file that is sent"),
        (full.token, f"{'a' * 64}/a.wav", b"x", {}, 400, "a.wav arrived damaged; try again"),
        (full.token, f"{'a' * 64}/a.wav", iter([b"x"]), {}, 400, "more than 1 GiB"),
        (full.token, f"{'a' * 64}/a.wav", b"", {"Content-Length": str(1 << 31)}, 400, "more than 1 GiB"),
        (full.token, f"{'a' * 64}/a.wav", bytes(1 << 20), {}, 400, "kept on the host: the disk is full; free some"),
    ):
        found = asked(full.port, token, content, name, **more)
        assert found[0] == status and said in found[1].decode(), (name, found)
    assert [one.name for one in tiny_disk.rglob("*") if one.is_file() and one.name != "engine.json"] == ["a.wav"]
    full.kill()
