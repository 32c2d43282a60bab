"""Measured servers as kept: knee and saturation, the curve, and files that are damaged."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paretone.errors import PlainError, SettingError
from paretone.serving import records
from paretone.serving.records import Order, ServerRecord, Target, inverse, latency_over_load, marks


def load(clients: int, throughput: float, latency: float, **more: Any) -> dict[str, Any]:
    figures: dict[str, Any] = {"load": f"{clients} clients", "clients": clients, "rate": 0.0, "requests": 20}
    for name, value in (("first_audio_p50", 0.2), ("first_audio_p95", 0.3), ("latency_p50", latency)):
        figures |= {name: value, f"{name}_interval": [0.9 * value, 1.1 * value]}
    return {**figures, "failed": 0, "failures": {}, "audio_seconds_per_second": throughput, **more}


LOADS = (load(1, 3.0, 0.7), load(2, 5.5, 0.8), load(4, 7.0, 1.6), load(8, 7.1, 3.0), load(16, 7.1, 6.1))


def record(loads: tuple[dict[str, Any], ...] = LOADS) -> ServerRecord:
    order = Order(Target("http://host:1"), ("Rice.", "Milk."), title="A server")
    return replace(ServerRecord.of(order), loads=loads)


def test_the_knee_has_most_throughput_per_waiting_and_saturation_needs_a_later_load() -> None:
    assert marks(LOADS) == {1: "knee", 2: "saturated"}
    assert marks(LOADS[::-1]) == {3: "knee", 2: "saturated"}, "whatever the order"
    assert marks(LOADS[:2]) == {} and marks(LOADS[:3]) == {1: "knee"}, "more might still come"
    assert marks(({**LOADS[0], "clients": 0},) * 4) == {}, "open loops have no clients"


def test_a_server_that_reports_the_inverse_is_found_out() -> None:
    measured = load(1, 4.0, 0.5, real_time_factor_p50=0.25)
    assert "inverse RTF: 4, where wall over audio is 0.25" in inverse({**measured, "reported_rtf": 4.0})
    assert not any(inverse({**measured, "reported_rtf": reported}) for reported in (0.2, 0.4, 0.0, -1.0))


def test_the_curve_has_both_panels_with_marks_and_says_them() -> None:
    figure = latency_over_load([record()])
    waiting, throughput = figure.panels
    assert [one.x for one in waiting.curves] == [(1.0, 2.0, 4.0, 8.0, 16.0)] * 2
    assert throughput.curves[0].y[3] == 7.1 and throughput.curves[0].notes[1:3] == ("knee", "saturated")
    assert "knee is at 2 clients and it is saturated from 4 clients" in figure.caption
    assert "A server" in figure.to_csv() and figure.to_json()["provenance"]["line"].startswith("A server, 2 texts")
    with pytest.raises(SettingError, match="No server was measured with clients"):
        latency_over_load([record(({**LOADS[0], "clients": 0},))])


def test_a_record_is_read_as_written_and_stands_at_eight_clients(tmp_path: Path) -> None:
    one = record((*LOADS[:3], LOADS[3] | {"judged": {"word_error_rate": (0.02, 0.0, 0.05)}}))
    path = records.write(one, tmp_path)
    ((found,), problems) = records.read_all(tmp_path)
    assert found.key == one.key and not problems and found.typical["clients"] == 8
    figures = found.figures()
    assert figures["first_audio_seconds"].ends == (0.2, pytest.approx(0.18), pytest.approx(0.22))
    assert figures["word_error_rate"].ends == (0.02, 0.0, 0.05) and "naturalness" not in figures
    time.sleep(0.002)
    records.write(record(), tmp_path)
    records.forget(found, tmp_path)
    assert not path.exists() and len(records.read_all(tmp_path)[0]) == 1, "the next one replaced nothing"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "newer version"),
        ({"loads": []}, "without its figures"),
        ({"loads": [{**LOADS[0], "latency_p50": "fast"}]}, "without its figures"),
        ({"loads": [{**LOADS[0], "latency_p50_interval": [1]}]}, "without its figures"),
        ({"title": 3}, "is not the record of a measured server"),
        ({"more": 1}, "unknown field"),
    ],
)
def test_a_damaged_record_is_a_sentence_and_hides_no_other(tmp_path: Path, change: dict, words: str) -> None:
    good = records.write(record(), tmp_path)
    bad = tmp_path / "bad.json"
    about = json.loads(good.read_text())
    bad.write_text(json.dumps({name: about[name] for name in about if name != "reference"}))
    assert records.read(bad).title == "A server", "of an earlier version"
    bad.write_text(json.dumps(about | change))
    with pytest.raises(PlainError, match=words):
        records.read(bad)
    found, (problem,) = records.read_all(tmp_path)
    assert len(found) == 1 and str(bad) in problem
