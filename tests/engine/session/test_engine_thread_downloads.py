"""Downloads as jobs of the engine thread, from a server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paretone.session.commands import DownloadModel
from paretone.session.engine_thread import EngineThread
from paretone.session.events import Event, JobCancelled, JobFailed, JobFinished, Progress
from tests.engine import small_speech
from tests.engine.models.hub import Hub, assert_complete
from tests.engine.recorder import Recorder
from tests.engine.running import running

constants = pytest.importorskip("huggingface_hub.constants")

MODEL = "F5TTS_v1_Base"
LICENCE = "CC-BY-NC-4.0"


@pytest.fixture
def engine(recorder: Recorder, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineThread]:
    """An engine for which the Hub is the server on this machine, as ``HF_ENDPOINT`` would say."""
    template = f"{hub.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    with running(recorder, small_speech.load) as engine:
        yield engine


def test_cancelled_download_is_resumed(engine: EngineThread, recorder: Recorder, tmp_path: Path) -> None:
    def cancel_halfway(event: Event) -> None:
        if isinstance(event, Progress) and event.job == 1 and event.done > event.total / 2:
            engine.cancel(1)

    recorder.react = cancel_halfway
    engine.submit(DownloadModel(1, MODEL, str(tmp_path / "m"), LICENCE))
    assert isinstance(recorder.end_of(1), JobCancelled)
    halfway = recorder.of(1, Progress)[-1]
    assert halfway.total / 2 < halfway.done < halfway.total, "cancelled between two blocks"

    engine.submit(DownloadModel(2, MODEL, str(tmp_path / "m"), LICENCE))
    assert isinstance(recorder.end_of(2), JobFinished)
    assert recorder.of(2, Progress)[0].done == halfway.done
    assert recorder.of(2, Progress)[-1].seconds_left == 0
    assert_complete(tmp_path / "m")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (DownloadModel(1, MODEL, "m", "MIT"), "is published under CC-BY-NC-4.0"),
        (DownloadModel(1, "F6", "m", LICENCE), "nothing to download for 'F6'"),
    ],
)
def test_refused_download(engine: EngineThread, recorder: Recorder, command: DownloadModel, words: str) -> None:
    engine.submit(command)
    failed = recorder.end_of(1)
    assert isinstance(failed, JobFailed)
    assert words in failed.sentence
    assert failed.details == ""
