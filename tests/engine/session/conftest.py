"""Shared by tests of the engine thread."""

import dataclasses
import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from paretone.session.engine_thread import EngineThread
from paretone.session.events import ENDINGS
from tests.engine import small_speech
from tests.engine.recorder import Recorder
from tests.engine.running import running


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def engine(recorder: Recorder) -> Iterator[EngineThread]:
    """A started engine with the small model; what it posted is checked when the test is over."""
    with running(recorder, small_speech.load) as engine:
        yield engine
    for job in {event.job for event in recorder.events} - {0}:
        assert sum(isinstance(event, ENDINGS) for event in recorder.of(job)) == 1, f"job {job} must end exactly once"
        assert isinstance(recorder.of(job)[-1], ENDINGS), f"nothing may follow the end of job {job}"
    for event in recorder.events:
        assert_equal(pickle.loads(pickle.dumps(event)), event)


def assert_equal(left: object, right: object) -> None:
    """Equality of events, arrays included (which dataclasses leave out or cannot compare)."""
    assert type(left) is type(right)
    if dataclasses.is_dataclass(left):
        for one in dataclasses.fields(left):
            assert_equal(getattr(left, one.name), getattr(right, one.name))
    elif isinstance(left, np.ndarray):
        np.testing.assert_array_equal(left, right)
    else:
        assert left == right
