"""Large files between a window and a host: in parts, whole or not at all."""

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")

from paretone.models.base import Voice
from paretone.session import commands, events
from paretone.studies.store import Store
from tests.disk import tiny_disk  # noqa: F401
from tests.engine.remote.elsewhere import Host, Relay, Window, window
from tests.engine.remote.test_elsewhere import TEXT, asked, setting

SIZE = 300_000_000
LARGER = f"""
import os
from paretone.remote.places import HostFiles
fetched = HostFiles.fetched
def larger(self, name):
    place, size = fetched(self, name)
    if place.suffix == ".safetensors":
        os.truncate(place, {SIZE})
        size = {SIZE}
    return place, size
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
        (full.token, f"{'a' * 64}/a.wav", b"x", {}, 400, "a.wav arrived damaged, or changed while it was sent; try"),
        (full.token, f"{'a' * 64}/a.wav", iter([b"x"]), {}, 400, "a.wav arrived damaged, or changed while it was sent"),
        (full.token, f"{'a' * 64}/a.wav", bytes(1 << 20), {}, 400, "kept on the host: the disk is full; free some"),
    ):
        found = asked(full.port, token, content, name, **more)
        assert found[0] == status and said in found[1].decode(), (name, found)
    assert [one.name for one in tiny_disk.rglob("*") if one.is_file() and one.name != "engine.json"] == ["a.wav"]
    os.unlink(next(tiny_disk.rglob("a.wav")))
    with window(full.port, full.token, tmp_path) as here:
        here.engine.submit(speak)
        assert "large.wav could not be kept on the host: the disk is full" in here.recorder.end_of(3).sentence
    full.kill()


def test_a_large_file_says_its_bytes_is_cancelled_within_one_and_may_change(tmp_path: Path) -> None:
    host = Host(tmp_path / "host")
    relay = Relay(host.port)
    relay.pause = 0.025
    made, received = host.data / "remote" / "made", host.data / "remote" / "received"
    (recording := tmp_path / "large.wav").touch()

    def send(job: int) -> commands.Command:
        os.truncate(recording, SIZE)
        return commands.Synthesise(job, "Milk.", Voice("large", "Large", str(recording), "Milk."), setting())

    def fetch(job: int) -> commands.Command:
        return commands.ExportWeights(job, "lm-mini", "draft", "", str(tmp_path / f"out {job}"))

    def interrupted(here: Window, job: commands.Command, by: Callable[[], object]) -> events.Event:
        """The end of a job that something happens to once there is an estimate."""
        here.engine.submit(job)
        told = here.recorder.wait_for(
            lambda one: isinstance(one, events.Progress) and one.job == job.job and bool(one.seconds_left)
        )
        assert re.fullmatch(r"(Sending files to|Fetching files from) 127.0.0.1: [\d,.]+ of [\d,.]+ MB", told.text)
        assert 0 < told.done < told.total
        by()
        return here.recorder.end_of(job.job)

    with window(relay.port, host.token, tmp_path) as here:
        for job in (send(1), fetch(2)):
            end = interrupted(here, job, lambda job=job: here.engine.submit(commands.Cancel(0, job.job)))
            assert isinstance(end, events.JobCancelled), end
        for job in (send(3), fetch(4)):

            def shorten(job: commands.Command = job) -> None:
                for one in (recording, *(made / str(job.job)).rglob("*.safetensors")):
                    os.truncate(one, 1_000)

            end = interrupted(here, job, shorten)
            assert isinstance(end, events.JobFailed) and "or changed while it was sent; try again" in end.sentence, end
        relay.pause = 0.0
        here.recorder.finish(here.engine, fetch(5))
        left = lambda: [one.name for place in (made, received) for one in place.rglob("*") if one.is_file()]  # noqa: E731
        assert any(not left() or time.sleep(0.1) for _ in range(600)), left()
        assert [one.parent.name for one in tmp_path.rglob("speculative.json")] == ["out 5"]
        # The results of a study: they stay on the host, and come with the next run.
        (file := tmp_path / "study.toml").write_text(f"sentences = ['{TEXT}']\n[[setting]]\noptions = {{steps = 2}}\n")
        study = lambda job: commands.RunStudy(job, str(file), str(tmp_path / "study"))  # noqa: E731
        relay.pause = 0.3

        def cancel_twice() -> None:
            here.engine.submit(commands.Cancel(0, 6))
            count = len(here.recorder.of(6, events.Progress))
            fetching = lambda: here.recorder.of(6, events.Progress)[count:]  # noqa: E731
            here.recorder.wait_for(lambda _: any(one.text.startswith("Fetching") for one in fetching()))
            here.engine.submit(commands.Cancel(0, 6))

        assert isinstance(interrupted(here, study(6), cancel_twice), events.JobCancelled)
        assert not list(tmp_path.rglob("study/**/*.wav"))
        relay.pause = 0.0
        here.recorder.finish(here.engine, study(7))
        assert here.recorder.wait_for_kind(events.StudyEnded, 7).made == 0
        with Store(tmp_path / "study", read_only=True) as store:
            assert len(store.cells()) == 1 and not store.lost()
        # A window that is closed meanwhile does not wait, either.
        relay.pause = 0.025
        interrupted(here, send(8), threading.Thread(target=here.close).start)
        assert isinstance(here.recorder.end_of(8), events.JobCancelled)
    relay.close()
    host.kill()
