"""Broken lines lose and double nothing: a round of every fault, and with the link of a network namespace taken down."""

import socket
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")

from paretone.remote.client import RemoteEngine
from paretone.remote.ssh import SshHost, SshLink
from paretone.session import commands, events
from tests.engine.recorder import Recorder
from tests.engine.remote.test_ssh import SSHD, Sshd, sshd  # noqa: F401
from tests.tools.broken_lines import NETWORK, Found, measured, measured_by_link, namespace, why_no_namespaces
from tests.workload import only_in_full

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600), only_in_full("repetitions")]


def wrong(found: Found) -> float:
    return sum(count for jobs in found.values() for _, count, _ in jobs.values())


def test_nothing_is_lost_or_doubled_by_any_fault_of_a_relay():
    found = measured(rounds=2)
    assert len(found) == 4 and wrong(found) == 0


def test_nothing_is_lost_or_doubled_while_a_link_is_down():
    if reason := why_no_namespaces():
        pytest.skip(reason)
    assert wrong(measured_by_link(rounds=2)) == 0


@pytest.mark.skipif(SSHD is None, reason="sshd is not installed here (openssh-server)")
def test_an_engine_that_a_scheduler_starts_on_another_machine_is_reached(
    sshd: Sshd,  # noqa: F811
    tmp_path: Path,
) -> None:
    """As on a cluster: that machine has a loopback of its own, and the host reaches its sshd."""
    if why := why_no_namespaces():
        pytest.skip(why)
    gpu, recorder = (sshd.folder / "config").read_text(), Recorder()
    node = gpu.replace("gpu", socket.gethostname()).replace("127.0.0.1", f"{NETWORK}.2")
    (tmp_path / "config").write_text(f"{gpu}{node}  HostKeyAlias [127.0.0.1]:{sshd.port}\n")
    with namespace() as (name, _):
        there = f"ip netns exec {name}"
        listening = f"{there} {SSHD} -D -f {sshd.folder}/sshd_config -o ListenAddress={NETWORK}.2 -o PidFile=none"
        second = subprocess.Popen(listening.split(), stderr=subprocess.DEVNULL)
        link = SshLink(SshHost("gpu", f"{there} {sshd.serve}", ("-F", str(tmp_path / "config"))))
        engine = RemoteEngine(recorder.post, link, tmp_path)
        engine.start()
        assert recorder.wait_for_kind(events.EngineReady).device
        engine.submit(commands.ShutDown(0))
        assert engine.join(60)
        second.kill()
        second.wait()
