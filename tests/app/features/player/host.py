"""Listen and the player in one small window, connected as in the application's, and its fixtures."""

from collections.abc import Iterator
from itertools import zip_longest

import numpy as np
import pytest
import soundfile
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from paretone.models.catalogue import voice
from paretone.setting.setting import Setting
from paretone.setting.take import Take
from paretone_app.features.listen.panel import ListenPanel
from paretone_app.features.player.control import PlayerControl
from paretone_app.shell.colours import LIGHT
from paretone_app.state.comparison import Comparison
from paretone_app.state.playing import LANES, Playing
from tests.app.conftest import in_front

RATE = 24000


class Host(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.playing = Playing(self)
        self.control = PlayerControl(self, self.playing, LIGHT, self)
        self.playback, self.bar = self.control.playback, self.control.bar
        self.deck, self.player = self.control.deck, self.playback.player
        self.compared = Comparison(self)
        self.listen = ListenPanel(self.deck, self.playing, self.compared, LIGHT)
        self.listen.seek_wanted.connect(self.deck.seek_in_takes)
        self.listen.loop_wanted.connect(self.deck.loop_in_takes)
        self.canvas = self.listen.canvas
        layout = QVBoxLayout(self)
        layout.addWidget(self.listen, 1)
        layout.addWidget(self.bar)

    def begin_take(self, side: str) -> None:
        self.playback.begin_stream(RATE, f"Take {side}, streaming", "Text", side)
        self.listen.begin_take(side, RATE)

    def add_to_take(self, samples: np.ndarray) -> None:
        self.deck.append(samples)
        self.listen.add_to_take(samples)
        self.listen.show_lanes()
        self.playback.follow()


def take(samples: np.ndarray, label: str) -> Take:
    return Take(label, "2026-01-01T00:00:00Z", "Text", "voice", Setting("f5-mini"), RATE, samples, label=label)


def set_takes(host: Host, qtbot, *takes: Take | None) -> None:
    with qtbot.waitSignal(host.deck.analysed):
        host.compared.arrange(takes)
        for lane, one in zip_longest(LANES, takes):
            host.deck.set_take(lane, one)


def press(host: QWidget, keys: str) -> None:
    for key in keys:
        QTest.keyClick(QApplication.focusWidget() or host, key)


def named(host: QWidget, name: str) -> QWidget:
    return next(one for one in host.findChildren(QWidget) if one.accessibleName() == name)


def text(host: QWidget, name: str) -> str:
    return named(host, name).text()


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
