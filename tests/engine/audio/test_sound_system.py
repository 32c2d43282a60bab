import os
import sys
from pathlib import Path

import pytest

from paretone import own_process
from paretone.audio.sound_system import OutputDevice, Sound, ask, probe


def test_devices_are_found_by_default_index_and_name() -> None:
    devices = OutputDevice(3, "Speaker", "ALSA", 2, 44100), OutputDevice(7, "USB Headset", "ALSA", 2, 48000)
    sound = Sound(devices, default=7)
    assert sound.usable and sound.device() is sound.device("headset") is devices[1]
    assert sound.device(3) is devices[0] and sound.device("nothing") is None


def test_the_probe_answers_and_leaves_this_process_alone() -> None:
    sound = probe()
    assert sound.usable == bool(sound.devices)
    assert sound.usable or sound.reason.endswith("everything else works.")


@pytest.mark.skipif(os.name == "nt" or not Path("/usr/share/alsa").is_dir(), reason="ALSA is found on Linux only")
def test_a_broken_sound_configuration_is_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "alsa.conf"
    broken.write_text("pcm.!default { type nonsense\n")
    monkeypatch.setenv("ALSA_CONFIG_PATH", str(broken))
    sound = probe()
    assert not sound.usable and "everything else works" in sound.reason


def test_a_probe_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "hanging.py"
    hanging.write_text("import time\ntime.sleep(3600)\n")
    monkeypatch.setattr(own_process, "command", lambda module: [sys.executable, str(hanging)])
    sound = probe(timeout=0.2)
    assert not sound.usable and "did not answer" in sound.reason


def test_the_probe_reads_the_answer_of_a_child_asked_early(monkeypatch: pytest.MonkeyPatch) -> None:
    started, command = [], own_process.command
    monkeypatch.setattr(own_process, "command", lambda module: started.append(module) or command(module))
    ask()
    assert probe().reason == probe().reason
    assert len(started) == 2, "one asked early, one for the second probe"
