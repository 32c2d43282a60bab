"""Servers in the real window, against a real server on the loopback."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from pytestqt.qtbot import QtBot

from paretone.audio.recording import read_recording
from paretone.audio.resampling import resample
from paretone.errors import StudyError
from paretone.models import catalogue
from paretone.models.voices import own_voice
from paretone.serving.speech_api import pcm
from paretone_app.features.servers.panel import ServersPanel
from paretone_app.features.takes.presenter import voice_of
from paretone_app.features.tradeoff import words
from paretone_app.results.points import SERVER, Point
from paretone_app.shell.window import MainWindow
from tests.app.conftest import SMALL
from tests.app.features.studies.studying import finish, opened, texts, write
from tests.engine.serving.answering import answering

_ANNA = read_recording(catalogue.voice("anna", "f5-mini").audio)
SPOKEN = pcm(resample(_ANNA.samples, _ANNA.sample_rate, 24_000))
"""Somebody speaks."""
PARTS = f"{SMALL} lab studies tradeoff servers"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server that answers with a second of sound in two pieces, the voice *slow* after a minute."""

    async def speech(request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        if asked.get("voice") == "slow":
            await asyncio.sleep(60)
        if asked.get("voice") == "anna":
            return web.Response(body=SPOKEN, headers={"X-RTF": "90"})
        if asked.get("voice") == "nobody":
            return web.json_response({"error": {"message": "There is no such voice."}}, status=400)
        answer = web.StreamResponse(headers={"X-Sample-Rate": "24000"})
        await answer.prepare(request)
        for _ in range(2):
            await answer.write(b"\1\0" * 12_000)
            await asyncio.sleep(0.05)
        return answer

    with answering(speech) as found:
        yield found


def filled_in(window: MainWindow, address: str, clients: str, asked: str, keeps: bool, voice: str = "") -> ServersPanel:
    window.action["measure_server"].trigger()
    panel = window.panels["servers"]
    fields = panel.url, panel.clients, panel.requests, panel.voice
    for field, text in zip(fields, (address, clients, asked, voice), strict=True):
        field.setText(text)
    panel.keeps.setChecked(keeps)
    return panel


def measured(window: MainWindow, qtbot: QtBot) -> str:
    panel = window.panels["servers"]
    with qtbot.waitSignal(window.features["servers"].changed, timeout=60_000):
        panel.measure.trigger()
    qtbot.waitUntil(lambda: not panel.cancel.isEnabled())
    return panel.state.text()


def test_a_server_is_measured_with_one_and_two_clients(borrowed_window: MainWindow, qtbot: QtBot, address: str) -> None:
    panel = filled_in(borrowed_window, address, "1 2 20/s", "3", keeps=False)
    for field, text, reason in (
        (panel.url, "", "Give the address"),
        (panel.url, "box:port", "not 'box:port'"),
        (panel.clients, "1" * 5000, "numbers of clients"),
        (panel.reference, "a" * 300, "no recording aaa"),
        (panel.clients, "1 none", "numbers of clients"),
        (panel.requests, "soon", "number of requests"),
    ):
        typed = field.text()
        field.setText(text)
        assert reason in panel.measure.reason and panel.state.text() == panel.measure.reason
        field.setText(typed)
    panel.requests.setText("2 s")
    assert (panel.wanted().seconds, panel.measure.reason) == (2.0, "")
    panel.requests.setText("3")
    assert measured(borrowed_window, qtbot) == "Measured."
    cells = [[panel.table.item(row, column).text() for column in range(12)] for row in range(panel.table.rowCount())]
    loads = "1 client", "2 clients", "20 requests/s"
    assert [one[:3] for one in cells] == [[address, load, "3 of 3"] for load in loads]
    assert all(float(one[6]) > 0 and one[10:] == ["", ""] for one in cells)
    assert [one.x for one in panel.canvas.figure.panels[1].curves] == [(1.0, 2.0)], "latency over load"


def test_a_server_is_a_point_until_it_is_forgotten(borrowed_window: MainWindow, qtbot: QtBot, address: str) -> None:
    borrowed_window.workspaces.go_to("tradeoff")
    panel, results = filled_in(borrowed_window, address, "1 4", "2", keeps=False), borrowed_window.results
    before = panel.table.rowCount()
    assert measured(borrowed_window, qtbot) == "Measured."
    borrowed_window.workspaces.go_to("tradeoff")

    def points() -> list[Point]:
        return [one for one in results.points if one.kind == SERVER]

    qtbot.waitUntil(lambda: any("at 4 clients" in one.title for one in points()))
    point = points()[0]
    assert point.figures["first_audio_seconds"].value > 0 and point.setting is None and not point.published
    assert words.origin(point).startswith("A server at 4 clients") and results.takes_of([point]) == set()
    panel.table.selectRow(0)
    panel.forget.trigger()
    qtbot.waitUntil(lambda: point.key not in {one.key for one in points()})
    assert panel.table.rowCount() == before


def test_replies_are_takes_and_are_judged(borrowed_window: MainWindow, qtbot: QtBot, address: str) -> None:
    borrowed_window.workspaces.go_to("tradeoff")
    panel, results = filled_in(borrowed_window, address, "2", "4", True, "anna"), borrowed_window.results
    panel.reference.setText("nowhere.wav")
    assert "no recording nowhere.wav" in panel.problem
    panel.reference.setText(catalogue.voice("anna", "f5-mini").audio)
    before = len(results.takes.all)
    assert measured(borrowed_window, qtbot) == "Measured and judged."
    assert float(panel.table.item(0, 9).text().removesuffix(" %")) > 50, "it says something else"
    assert panel.table.item(0, 10).text() == "reports the inverse RTF"
    takes = results.takes.all[: len(results.takes.all) - before]
    assert len(takes) == 4 == len({one.text for one in takes}) and not set(takes) & set(results.takes.measured)
    assert all(one.metrics.naturalness > 2 and one.metrics.voice_similarity > 0.9 for one in takes)
    assert {one.voice for one in takes} == {own_voice(panel.reference.text()).id}, "by its recording"
    assert takes[0].label.endswith(", 2 clients") and takes[0].setting.options["clients"] == 2
    borrowed_window.workspaces.go_to("tradeoff")
    qtbot.waitUntil(lambda: any("naturalness" in one.figures for one in results.points if one.kind == SERVER))
    point = next(one for one in results.points if one.sounds and one.kind == SERVER)
    assert {one.take for one in point.sounds} == {one.id for one in takes}
    tradeoff = borrowed_window.panels["tradeoff"]
    tradeoff.options_line.y_choice.setCurrentIndex(tradeoff.options_line.y_choice.findData("naturalness"))
    tradeoff.options_line.chosen.emit()
    qtbot.waitUntil(lambda: point.key in {one.key for one in tradeoff.scene.points})
    qtbot.waitUntil(lambda: not results.busy)
    tradeoff.choose(point.key)
    borrowed_window.features["tradeoff"].refresh()
    assert tradeoff.legend.offered["server:"].text().startswith("Servers ")
    assert "runs elsewhere" in borrowed_window.action["point_use"].reason
    assert borrowed_window.action["point_a"].isEnabled(), "its replies are takes"
    assert not {one.id for one in takes} & {one.key for one in results.points}, "one point for all of them"


def test_judging_can_be_cancelled(borrowed_window: MainWindow, qtbot: QtBot, address: str) -> None:
    panel = filled_in(borrowed_window, address, "1", "8", True, "anna")
    panel.reference.setText(catalogue.voice("anna", "f5-mini").audio)
    panel.measure.trigger()
    assert "being measured" in panel.measure.reason and panel.progress.isVisible()
    qtbot.waitUntil(lambda: panel.state.text().startswith("Judging"))
    panel.cancel.trigger()
    qtbot.waitUntil(lambda: panel.state.text() == "Cancelled; finished loads are listed.")
    assert panel.table.item(0, 9).text() == "–" and not panel.cancel.isEnabled()
    takes = borrowed_window.results.takes
    voice = voice_of(takes.library.load(takes.all[0].id), borrowed_window.features["takes"].voices())
    assert voice.audio == panel.reference.text(), "whom it is compared with when it is judged later"


def test_a_refusal_is_told_and_cancel_ends_it(borrowed_window: MainWindow, qtbot: QtBot, address: str) -> None:
    panel = filled_in(borrowed_window, address, "1", "1", True, "nobody")
    assert "does not speak: HTTP 400" in measured(borrowed_window, qtbot)
    panel.voice.setText("slow")
    panel.measure.trigger()
    assert "being measured" in panel.measure.reason
    panel.cancel.trigger()
    qtbot.waitUntil(lambda: not panel.cancel.isEnabled())
    assert panel.state.text().startswith("Cancelled")


def test_a_server_can_be_in_a_study(borrowed_window: MainWindow, qtbot: QtBot, address: str, tmp_path: Path) -> None:
    file = write(
        tmp_path, "served", grid=f'steps.steps = [2]\n[[server]]\nurl = "{address}"\nname = "Box"\nclients = 2'
    )
    panel = opened(borrowed_window, file, qtbot)
    borrowed_window.workspaces.go_to("tradeoff")
    finish(borrowed_window, borrowed_window.action["run_study"].trigger, qtbot)
    row = next(one for one in texts(panel) if "Box, at 2 clients" in one)
    assert "2/2" in row, "it waits for no model"
    results = borrowed_window.results
    qtbot.waitUntil(lambda: any(one.kind == SERVER and one.folder for one in results.points))
    point = next(one for one in results.points if one.kind == SERVER and one.folder)
    assert point.model == "server Box" and words.origin(point).startswith("Small: 2 finished takes")
    assert point.figures["real_time_factor"].value > 0 and "ops_ratio" not in point.figures
    assert len(results.take_of(point, point.sounds[0]).samples) == len(SPOKEN) // 2, "its replies can be heard"
    with pytest.raises(StudyError, match="is a server"):
        borrowed_window.features["studies"].use(point.key.partition("#")[2])
