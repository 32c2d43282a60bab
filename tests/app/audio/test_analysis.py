"""Takes are analysed off the window's thread, and only what was asked for last is reported."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Take
from paretone_app.audio.analysis import Analyser, Analysis, analysed

RATE = 24000


def take(level: float) -> Take:
    noise = np.random.default_rng(3).standard_normal(RATE).astype(np.float32)
    return Take("one", "2026-11-21", "Text.", "anna", Setting("f5-mini"), RATE, level * noise, Measurements(1.0, 1.0))


@pytest.fixture
def threads() -> list[int]:
    return []


@pytest.fixture
def analyser(threads: list[int], qapp) -> Iterator[Analyser]:
    made = Analyser(lambda samples, rate: threads.append(threading.get_ident()))
    yield made
    made.shut_down(wait=True)


def test_gains_make_both_equally_loud_and_none_louder() -> None:
    quiet, loud = take(0.02), take(0.1)
    found = analysed((quiet, loud), Analysis(), lambda samples, rate: None)
    assert found.gains[0] / found.gains[1] == pytest.approx(5.0, rel=1e-3)
    assert analysed((quiet, None), Analysis(), lambda samples, rate: None).gains == (1.0, 1.0)


def test_takes_over_full_scale_are_turned_down_alike() -> None:
    quiet, loud = take(0.1), take(1.0)
    alone = analysed((loud, None), Analysis(), lambda samples, rate: None)
    assert np.abs(loud.samples * alone.gains[0]).max() <= 1
    both = analysed((quiet, loud), Analysis(), lambda samples, rate: None)
    assert both.headroom == alone.headroom < 1, "one factor, so that a difference in level is heard as it is"


def test_what_is_known_is_not_found_out_again() -> None:
    prepared: list[int] = []
    first, second = take(0.05), take(0.1)
    before = analysed((first, None), Analysis(), lambda samples, rate: prepared.append(1))
    after = analysed((second, first), before, lambda samples, rate: prepared.append(2))
    assert prepared == [1, 2]
    assert after.mels[1] is before.mels[0]


def test_only_the_last_takes_are_reported_and_from_another_thread(
    analyser: Analyser, threads: list[int], qtbot: QtBot
) -> None:
    reported: list[Analysis] = []
    analyser.done.connect(reported.append)
    first, second = take(0.05), take(0.1)
    analyser.analyse((first, None))
    analyser.analyse((first, second))
    assert analyser.busy
    qtbot.waitUntil(lambda: bool(reported))
    assert [one.takes for one in reported] == [(first, second)]
    assert not analyser.busy
    assert threads
    assert threading.get_ident() not in threads


def test_a_failure_is_told_and_raised(qtbot: QtBot) -> None:
    def refuse(samples: np.ndarray, rate: int) -> None:
        raise MemoryError("no room for the samples")

    analyser = Analyser(refuse)
    try:
        with qtbot.captureExceptions() as raised, qtbot.waitSignal(analyser.failed):
            analyser.analyse((take(0.1), None))
        assert [kind for kind, _, _ in raised] == [MemoryError]
        assert not analyser.busy
    finally:
        analyser.shut_down(wait=True)
