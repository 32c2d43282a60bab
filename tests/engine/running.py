"""An engine thread for tests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paretone.models.base import SpeechModel
from paretone.session.commands import LoadModel, ShutDown
from paretone.session.engine_thread import EngineThread
from tests.engine.recorder import PATIENCE_SECONDS, Recorder


@contextmanager
def running(
    recorder: Recorder, load: Callable[..., SpeechModel] | None = None, model: LoadModel | None = None
) -> Iterator[EngineThread]:
    """A started engine that posts to ``recorder``, with ``model`` loaded; shut down at the end."""
    engine = EngineThread(recorder.post, load)
    engine.start()
    if model is not None:
        recorder.finish(engine, model)
    yield engine
    recorder.react = lambda event: None
    engine.submit(ShutDown(0))
    assert engine.join(PATIENCE_SECONDS)
