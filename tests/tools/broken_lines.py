"""Break the line to an engine elsewhere again and again, and count what was lost or doubled.

    python -m tests.tools.broken_lines --rounds 3 [--out lines.json]

A real host process and a client, with a relay between them that delays, stalls, resets and refuses, or in two network
namespaces whose link is taken down (as root, on Linux). Every job must give the same pieces, reports and rows as over a
good line, once and in order, with one ending; the table in ``resources/docs/gpu-server.md`` is its output.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from paretone.models.base import Utterance
from paretone.models.catalogue import entry
from paretone.models.voices import shipped_voices
from paretone.session import commands, events
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.store import Store
from paretone.techniques.ditreducio.record import CalibrationRequest
from paretone.techniques.guidance_free import GuidanceFreeRequest
from paretone.training.requests import TrainingProgress
from tests.engine.remote.elsewhere import Host, Relay, Window
from tests.engine.training.toy_model import toy_manifest, toy_model

VOICE = shipped_voices()[0]
TEXT = "The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background. Rice is often served."
STUDY = """
title = "Lines"
sentences = ["Good morning.", "Milk."]
voices = ["anna"]
[[setting]]
options = {steps = 2}
[[setting]]
options = {steps = 3}
"""


def setting(*techniques: UsedTechnique) -> Setting:
    return Setting("f5-mini", entry("f5-mini").options_with(steps=4), techniques, 7)


Hurt = Callable[[], tuple[float, float] | None]
"""Hurts the line, and says from when to when nothing came through, on the monotonic clock, unless the window says."""


def _mended(when: float, times: list[tuple[float, float]]) -> float:
    """The moment from which something comes through again, if it was sent at ``when``."""
    for first, last in sorted(times):
        when = last if first <= when < last else when
    return when


class Trial:
    """One job over one window, and what came of it."""

    def __init__(self, here: Window, folder: Path, relay: Relay) -> None:
        self._here, self._folder, self._relay, self._job = here, folder, relay, 1
        self._toy: dict[str, Any] = {}
        """What is trained, and on what."""
        self.unexplained = 0.0
        """Seconds that a piece of the last main job came after the engine had it and the line was whole again."""

    def _done(self, make: Callable[[int], commands.Command], hurt: Hurt) -> tuple[int, str]:
        self._job += 1
        self._here.engine.submit(make(self._job))
        self._hurt = hurt()
        ended = self._here.recorder.end_of(self._job)
        time.sleep(0.2)
        ends = [one for one in self._here.recorder.events if one.job == self._job and isinstance(one, events.ENDINGS)]
        assert len(ends) == 1, ends
        return self._job, type(ended).__name__

    def _of(self, job: int, kind: type) -> list[Any]:
        return [one for one in self._here.recorder.events if one.job == job and isinstance(one, kind)]

    def main_job(self, hurt_line: Hurt) -> list[object]:
        came: list[float] = []
        self._here.recorder.react = lambda one: (
            came.append(time.monotonic()) if isinstance(one, events.AudioReady) else None
        )

        def between_pieces() -> tuple[float, float] | None:
            self._here.recorder.wait_for_kind(events.AudioReady, self._job)
            return hurt_line()

        job, how = self._done(lambda job: commands.Synthesise(job, TEXT, VOICE, setting()), between_pieces)
        own = max(one.take.measurements.largest_gap_seconds for one in self._of(job, events.TakeReady))
        hurt = [*self._here.outages, *([self._hurt] if self._hurt else [])]
        late = (later - _mended(earlier + own, hurt) for earlier, later in pairwise(came))
        self.unexplained = max(0.0, max(late) - self._relay.delay)
        pieces = [one.samples.tobytes() for one in self._of(job, events.AudioReady)]
        return [how, *pieces, *(one.take.samples.tobytes() for one in self._of(job, events.TakeReady))]

    def calibration(self, hurt: Hurt) -> list[object]:
        request = CalibrationRequest((Utterance("Milk.", VOICE),), setting(UsedTechnique("ditreducio")))
        job, how = self._done(lambda job: commands.Prepare(job, "ditreducio", request), hurt)
        reports = [repr(one.report) for one in self._of(job, events.PreparationReport)]
        return [how, *reports, *(one.result.record.table.fingerprint for one in self._of(job, events.Prepared))]

    def training(self, hurt: Hurt) -> list[object]:
        if not self._toy:
            self._toy = {"manifest": str(toy_manifest(self._folder)), "folder": str(toy_model(self._folder / "toy"))}
        work = str(self._here.data / "training" / f"{self._job}")
        request = GuidanceFreeRequest(
            model="f5-mini", work=work, **self._toy, weight=0.5, steps=100, device="cpu", threads=1
        )

        def between_steps() -> tuple[float, float] | None:
            self._here.recorder.wait_for_kind(events.PreparationReport, self._job)
            return hurt()

        job, how = self._done(lambda job: commands.Prepare(job, "guidance_free", request), between_steps)
        told = [one.report for one in self._of(job, events.PreparationReport)]
        steps = [(one.step, *one.losses.items()) for one in told if isinstance(one, TrainingProgress)]
        return [how, *steps, *(one.result.steps for one in self._of(job, events.Prepared))]

    def study(self, hurt: Hurt) -> list[object]:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        (folder / "lines.toml").write_text(STUDY)
        results = folder / "lines"
        run = lambda job: commands.RunStudy(job, str(folder / "lines.toml"), str(results))  # noqa: E731
        job, how = self._done(run, hurt)
        told = sorted(str(one.take.cell) for one in self._of(job, events.StudyTakeDone))
        with Store(results, read_only=True) as store:
            return [how, *told, *sorted(map(str, store.cells()))]

    def cancel(self, hurt: Hurt) -> list[object]:
        def cancelled() -> None:
            hurt()
            self._here.engine.submit(commands.Cancel(0, self._job))

        _, how = self._done(lambda job: commands.Synthesise(job, TEXT * 8, VOICE, setting()), cancelled)
        return [how]


def faults(relay: Relay, draw: random.Random) -> dict[str, Hurt]:
    def reset() -> None:
        for _ in range(3):
            time.sleep(draw.uniform(0.1, 0.6))
            relay.reset()

    def stall() -> tuple[float, float]:
        time.sleep(draw.uniform(0.1, 0.6))
        started = time.monotonic()
        relay.stalled.set()
        time.sleep(draw.uniform(3.0, 10.0))  # Longer than the client waits, at times.
        relay.stalled.clear()
        return started, time.monotonic()

    def refuse() -> None:
        time.sleep(draw.uniform(0.1, 0.6))
        relay.refusing = True
        relay.reset()
        time.sleep(draw.uniform(1.0, 3.0))
        relay.refusing = False

    def delay() -> None:
        relay.delay = draw.uniform(0.05, 0.3)

    return {
        "reset three times": reset,
        "stalled 3 to 10 s": stall,
        "cut 1 to 3 s": refuse,
        "delayed 50 to 300 ms": delay,
    }


NETWORK = f"10.231.{os.getpid() % 256}"
"""Of this process, so that two of them can measure at once."""
FORWARD = """
import asyncio, sys
async def pump(reader, writer):
    try:
        while content := await reader.read(65536):
            writer.write(content)
            await writer.drain()
    finally:
        writer.transport.abort()
async def relay(reader, writer):
    there, away = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    await asyncio.gather(pump(reader, away), pump(there, writer), return_exceptions=True)
async def main():
    server = await asyncio.start_server(relay, sys.argv[2], 7000)
    print("up", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
"""From the namespace's end of the link to the loopback there, where the engine listens."""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def namespace() -> Iterator[tuple[str, str]]:
    """A network namespace joined to this one by veth: its name, and this end of the link."""
    name = f"par{os.getpid() % 10000}"
    ip("netns", "add", name)
    try:
        ip("link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name)
        ip("addr", "add", f"{NETWORK}.1/24", "dev", f"{name}a")
        ip("-n", name, "addr", "add", f"{NETWORK}.2/24", "dev", f"{name}b")
        ip("link", "set", f"{name}a", "up")
        ip("-n", name, "link", "set", f"{name}b", "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield name, f"{name}a"
    finally:
        with suppress(subprocess.CalledProcessError):
            ip("link", "del", f"{name}a")
        ip("netns", "del", name)


def why_no_namespaces() -> str:
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None:
        return "needs root and ip (iproute2)"
    try:
        with namespace():
            return ""
    except (subprocess.CalledProcessError, OSError) as error:
        return f"no namespaces joined by veth here: {error}"


Found = dict[str, dict[str, list[float]]]
JOBS = ("main_job", "calibration", "training", "study", "cancel")


def measured(rounds: int, seed: int = 1) -> Found:
    """For each fault and job: rounds, rounds in which something was lost, doubled or else than over a good line, and
    the longest wait for audio that the fault does not explain, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder) / "host")
        relay = Relay(host.port)
        try:
            return _tried(host, relay, faults(relay, random.Random(seed)), rounds, Path(folder))
        finally:
            relay.close()
            host.kill()


def measured_by_link(rounds: int, seed: int = 1) -> Found:
    """The same, with the host in a network namespace whose link is taken down for 1 to 12 s."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, namespace() as (name, link):
        within = ("ip", "netns", "exec", name)
        host = Host(Path(folder) / "host", within=within)
        command = [*within, sys.executable, "-c", FORWARD, str(host.port), f"{NETWORK}.2"]
        forwarder = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert forwarder.stdout is not None and forwarder.stdout.readline()
        relay = Relay(7000, f"{NETWORK}.2")

        def down() -> tuple[float, float]:
            time.sleep(draw.uniform(0.1, 0.6))
            started = time.monotonic()
            ip("link", "set", link, "down")
            time.sleep(draw.choice([1.0, 3.0, 12.0]))
            ip("link", "set", link, "up")
            return started, time.monotonic()

        try:
            return _tried(host, relay, {"link down 1 to 12 s": down}, rounds, Path(folder))
        finally:
            relay.close()
            forwarder.kill()
            forwarder.wait()
            forwarder.stdout.close()
            host.kill()


def _tried(host: Host, relay: Relay, hurts: dict[str, Hurt], rounds: int, folder: Path) -> Found:
    found: Found = {}
    here = Window(relay.port, host.token, folder / "here", stall=6.0)
    try:
        here.engine.submit(commands.LoadModel(1, "f5-mini", device="cpu"))
        here.recorder.end_of(1)
        trial = Trial(here, folder, relay)
        wanted = {name: getattr(trial, name)(lambda: None) for name in JOBS}
        for _ in range(rounds):
            for title, hurt in hurts.items():
                for name in JOBS:
                    counts = found.setdefault(title, {}).setdefault(name, [0, 0, 0.0])
                    counts[0] += 1
                    came = getattr(trial, name)(hurt)
                    counts[1] += came != wanted[name]
                    if came != wanted[name]:
                        print(f"{len(came)} parts in place of {len(wanted[name])}, beginning with {came[0]}")
                    if name == "main_job":
                        counts[2] = max(counts[2], trial.unexplained)
                    relay.delay = 0.0
                    print(f"{title}, {name}: {counts[0]} rounds, {counts[1]} wrong", flush=True)
    finally:
        here.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    found = measured(options.rounds, options.seed)
    if reason := why_no_namespaces():
        print(f"Link down: not tried, {reason}.")
    else:
        found |= measured_by_link(options.rounds, options.seed)
    print(f"| The line is | {' | '.join(JOBS)} | unexplained wait |\n|---{'|---' * len(JOBS)}|---|")
    for title, jobs in found.items():
        counts = " | ".join(f"{wrong:g} of {rounds:g}" for rounds, wrong, _ in jobs.values())
        print(f"| {title} | {counts} | {jobs['main_job'][2]:.3f} s |")
    if options.out:
        Path(options.out).write_text(json.dumps(found), encoding="utf-8")
    sys.exit(any(wrong for jobs in found.values() for _, wrong, _ in jobs.values()))


if __name__ == "__main__":
    main()
