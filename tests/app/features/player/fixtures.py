"""Fixtures of tests that have a :class:`tests.app.features.player.host.Host`."""

from collections.abc import Iterator

import numpy as np
import pytest
import soundfile

from paretone.models.catalogue import voice
from tests.app.conftest import in_front
from tests.app.features.player.host import RATE, Host, set_takes, take


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    samples, rate = soundfile.read(voice().audio, dtype="float32")
    assert rate == RATE
    return samples


@pytest.fixture
def empty(qtbot) -> Iterator[Host]:
    """A host without takes, with the focus in Listen."""
    host = in_front(Host(), qtbot, 900, 660)
    host.listen.setFocus()
    yield host
    host.playback.shut_down()
    host.listen.shut_down(wait=True)


@pytest.fixture
def panel(empty: Host, speech: np.ndarray, qtbot) -> Host:
    """The same with takes of the same speech as A and B, B half as loud."""
    set_takes(empty, qtbot, take(speech, "baseline"), take(0.5 * speech, "accelerated"))
    return empty
