"""The meters show what the engine says, live and afterwards."""

from dataclasses import replace

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from paretone.session.events import Telemetry
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements, Metrics, Take
from paretone_app.features.meters.panel import MetersPanel
from paretone_app.shell.colours import LIGHT
from tests.app.conftest import on_screen


def take(seconds: float) -> Take:
    measured = Measurements(seconds, 2.0, 0.7, 0.0, 0.1, seconds - 0.3, 0.2, peak_memory_bytes=3 * 2**30, device="cpu")
    said, samples = ("one", "2026-11-21", "Text.", "anna"), np.zeros(48000, np.float32)
    return Take(*said, Setting("f5-mini"), 24000, samples, measurements=measured)


def telemetry(job: int, elapsed: float, factor: float | None) -> Telemetry:
    return Telemetry(job, 0, 2, 3, 8, 0.1, 9.5, elapsed, 1.0, factor, 0.4, 200 * 2**20)


@pytest.fixture
def meters(qtbot: QtBot) -> MetersPanel:
    return on_screen(MetersPanel(LIGHT), qtbot)


def test_live_figures_and_curve(meters: MetersPanel) -> None:
    meters.show_telemetry(telemetry(1, 0.5, None))
    assert meters.factor.text() == "–"
    meters.show_telemetry(telemetry(1, 1.0, 0.62))
    meters.show_telemetry(telemetry(1, 1.5, 0.55))
    assert meters.factor.text() == "0.550" and list(meters.plot.series[0].y) == [0.62, 0.55]
    assert meters.figures["step"].value.text() == "4 of 8"
    assert meters.figures["first"].value.text() == "0.40 s"
    meters.show_telemetry(telemetry(2, 0.2, 0.9))
    assert list(meters.plot.series[0].y) == [0.9], "another job begins another curve"
    meters.hide()
    meters.show_telemetry(telemetry(2, 0.3, 0.8))
    assert meters.factor.text() == "0.900", "nobody sees it"
    meters.show()
    assert meters.factor.text() == "0.800" and list(meters.plot.series[0].y) == [0.9, 0.8]


def test_waits_that_were_heard_are_shown_in_place_of_predicted_ones(meters: MetersPanel) -> None:
    pause = meters.figures["pause"].value
    for heard, text in (((0, 0.0), "0.00 s"), ((1, 0.42), "0.42 s (1 wait)")):
        meters.show_telemetry(telemetry(1, 0.5, 0.6), heard)
        assert pause.text() == text
    for heard, text in (((2, 0.5), "0.50 s (2 waits)"), ((0, 0.0), "–")):
        meters.show_take(take(1.0), heard)
        assert pause.text() == text


def test_the_estimate_of_a_cancelled_synthesis_goes_with_it(meters: MetersPanel) -> None:
    meters.show_telemetry(telemetry(7, 0.5, 0.6))
    meters.forget(6, "cancelled")
    assert meters.factor.text() == "0.600", "that was another job"
    meters.forget(7, "cancelled")
    assert (meters.factor.text(), meters.factor_note.text()) == ("–", "The last synthesis was cancelled")
    assert {one.value.text() for name, one in meters.figures.items() if name != "device"} == {"–"}
    assert list(meters.plot.series[0].y) == []


def test_an_estimate_and_a_measured_factor_are_told_apart(meters: MetersPanel) -> None:
    meters.show_telemetry(telemetry(1, 0.1, 1.4))
    assert (meters.factor.text(), meters.factor_note.text()) == ("1.40", "running estimate")
    assert "estimate from the steps done" in meters.factor.toolTip()
    meters.show_take(take(2.0))
    assert (meters.factor.text(), meters.factor_note.text()) == ("1.00", "measured: F5 mini, last take")
    assert "estimate" not in meters.factor.toolTip()


def test_models_with_tokens_are_measured_in_tokens(meters: MetersPanel) -> None:
    live = Telemetry(1, 0, 1, 40, 120, 0.01, 9.5, 1.0, 0.8, 1.2, 0.31, 2**20, 41, 52.5, 0.12, 0.03)

    def shown(*names: str) -> list[str]:
        return [meters.figures[name].value.text() for name in names]

    meters.show_telemetry(live)
    assert meters.figures["rate"].name.text() == "Tokens/s"
    expected = ["52.5", "41 of about 120", "0.12 s", "0.03 s", "0.31 s"]
    assert shown("rate", "step", "gap", "pause", "first") == expected
    spoken = replace(take(2.0), measurements=Measurements(3.0, 2.0, 0.4, 0.25, 0.1, 2.0, 0.5, tokens=90))
    meters.show_take(spoken)
    assert shown("rate", "gap", "pause") == ["45.0", "0.25 s", "–"]
    meters.show_take(replace(spoken, measurements=replace(spoken.measurements, pause_seconds=0.0)))
    assert shown("pause", "streaming") == ["0.00 s", "exact"]
    meters.show_take(replace(spoken, measurements=replace(spoken.measurements, streaming_difference=-24.3)))
    assert shown("streaming") == ["−24 dB"]
    meters.show_take(take(2.0))
    assert shown("streaming") == ["–"]
    meters.show_comparison(spoken, None)
    assert "45 tokens/s" in meters.summaries["A"].text()
    assert meters.summaries["A"].text().endswith("TTFA 0.40 s")
    assert meters.summaries["A"].toolTip().endswith("Backbone RTF 1.00")
    meters.show_comparison(spoken, replace(spoken, metrics=Metrics(timbre_distance=0.314)))
    assert meters.summaries["B"].toolTip().endswith("Backbone RTF 1.00\nTimbre 0.31 dB from its baseline")
    split = replace(spoken, measurements=replace(spoken.measurements, decoder_seconds=0.5, vocoder_seconds=0.1))
    meters.show_comparison(split, None)
    assert meters.parts["A"].toolTip().endswith("of the decoder, flow 0.40 s and vocoder 0.10 s")
    meters.show_telemetry(telemetry(2, 0.2, 0.9))
    assert meters.figures["rate"].name.text() == "Steps/s"
