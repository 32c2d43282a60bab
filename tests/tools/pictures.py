"""Pictures of the real window: ``python -m tests.tools.pictures FOLDER`` makes those of every workspace, and with
``--guides`` those that the guides show; ``--sheets`` makes contact sheets: all workspaces while they are empty, while
something runs, full, and after failures, to be looked at.

What is to be seen is done first: the main job for the workspaces, what each picture needs for the guides, by the
window's own actions and panels, on the bundled models and the example study. With ``--scale 1.5`` they are as a screen
at 150 % shows them; sizes are in the desktop's own pixels, as the window has them.
"""

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from safetensors.torch import save_file

from paretone.checks.speech import speech_of
from paretone.errors import PlainError
from paretone.extras import SEARCH, why_no_search
from paretone.listening.trials import MUSHRA
from paretone.models import catalogue
from paretone.models.base import FLOW, LANGUAGE, MASKED
from paretone.remote import ssh
from paretone_app.engines.dialogs import HostDialog
from paretone_app.engines.presenter import EnginesPresenter
from paretone_app.features.demasking.presenter import DemaskingPresenter
from paretone_app.features.lab.methods import MushraPage
from paretone_app.features.lab.panel import LIBRARY
from paretone_app.features.lab.presenter import LabPresenter
from paretone_app.features.listen.presenter import ListenPresenter
from paretone_app.features.palette import Palette
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import built
from paretone_app.features.roofline.presenter import RooflinePresenter
from paretone_app.features.servers.presenter import ServersPresenter
from paretone_app.features.setup.presenter import SetupPresenter
from paretone_app.features.studies.forms import Varied
from paretone_app.features.studies.presenter import StudiesPresenter
from paretone_app.features.take_grid.panel import Chosen
from paretone_app.features.take_grid.presenter import TakeGridPresenter
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.features.tradeoff.presenter import TradeoffPresenter
from paretone_app.features.tradeoff.scene import PlotOptions
from paretone_app.features.views.presenter import ViewsPresenter
from paretone_app.results.points import SERVER
from paretone_app.shell.headless_tour import finished, make_takes, perform, started, until
from paretone_app.shell.theme import Scheme
from paretone_app.shell.window import MainWindow
from paretone_app.widgets.invitation import Invited
from tests.app.sharing import cancel_all
from tests.engine.remote.elsewhere import Host, Local
from tests.peers.damage import DAMAGES
from tests.plugins.writing import install
from tests.tools.null_sink import sound_to_nobody

_until = partial(until, patience=60.0)
"""For what the window does by itself, which takes a second or two."""
Shown = AbstractAsyncContextManager[QWidget]

SETTLE_SECONDS = 0.6
"""What a panel has to lay itself out and to draw, in turns of the event loop."""
_TRIES = 8
"""Bars above and below a panel may take another room in another window: how often its size is asked for."""
_RATINGS = 100, 71, 22, 54
"""Of the first sounds on the page of MUSHRA; the others are still to be rated."""
_GRID = Chosen("guidance_interval.steps", "steps.steps", "log_mel_distance")
"""What the take grid shows of the example."""
_LOOP = 0.4, 1.4
"""The part that is repeated there, in seconds."""
_GRADED, _GRADES = "threshold", "0.1, 0.2, 0.3"
"""A knob that the proposed search varies where a technique has it, and its values."""


@dataclass(frozen=True)
class GuidePicture:
    """One picture, called ``name``; ``shown`` brings its widget about in the window, for as long as it is entered."""

    name: str
    shown: Callable[[MainWindow], Shown]
    scheme: Scheme = Scheme.LIGHT


@asynccontextmanager
async def _adding(window: MainWindow) -> AsyncIterator[QWidget]:
    """The list of techniques."""
    await _load(window, FLOW)
    window.action["add_technique"].trigger()
    found = window.findChild(Palette)
    assert found is not None
    try:
        await settled(window)
        yield found
    finally:
        found.reject()


@asynccontextmanager
async def _alone(window: MainWindow, name: str, width: int, height: int) -> AsyncIterator[QWidget]:
    """The panel called ``name`` without the others, as large as is wanted."""
    workspaces, wanted = window.workspaces, QSize(width, height)
    workspaces.go_to(name)
    workspaces.maximise()
    panel = workspaces.panels[name]
    try:
        for _ in range(_TRIES):
            await settled(window)
            if panel.size() == wanted:
                break
            window.resize(window.size() + wanted - panel.size())
        yield panel
    finally:
        workspaces.maximise()


async def settled(window: MainWindow) -> None:
    """Wait until nothing runs, or the queue is paused, and everything is drawn."""
    await asyncio.sleep(SETTLE_SECONDS)
    await until(lambda: window.jobs.stopped or not window.jobs.busy, window)
    await asyncio.sleep(SETTLE_SECONDS)


async def _load(window: MainWindow, family: str) -> None:
    """Have the first model of ``family`` that comes with Paretone loaded, unless one of that family is."""
    selection = window.state.selection
    if selection.ready and selection.entry.family == family:
        return
    model = next(one.id for one in catalogue.models() if one.family == family and one.bundled)
    await finished(window, lambda: window.features.find(SetupPresenter).choose_model(model))


_OWN_MODEL = "phone-flow"
"""The model of the tutorial, a plug-in."""


def _plug_in(folder: Path) -> None:
    """Install the tutorial's model into ``folder``, with random weights, and let this process find it."""
    for module in (Path(__file__).parents[1] / "plugins" / "phone_flow").glob("paretone_*.py"):
        shutil.copy(module, folder)
    entries = {"phone_flow": "paretone_phone_flow:MODEL"}
    install(folder, "paretone_phone_flow", "paretone-phone-flow", "1.0", entries, catalogue.GROUP)
    sys.path.insert(0, str(folder))
    catalogue.catalogue.cache_clear()
    (folder / _OWN_MODEL).mkdir()
    network = import_module("paretone_phone_flow_network").Velocity()
    save_file(network.state_dict(), folder / _OWN_MODEL / "model.safetensors")


@asynccontextmanager
async def _own_model(window: MainWindow) -> AsyncIterator[QWidget]:
    """Setup with the model of the tutorial and a technique of its family."""
    folder = str(Path(import_module("paretone_phone_flow").__file__ or "").parent / _OWN_MODEL)
    await finished(window, lambda: window.features.find(SetupPresenter).load(_OWN_MODEL, folder))
    for name in ("ditreducio", "steps"):
        window.state.editing.switch(name, name == "steps")
    async with _alone(window, "setup", 520, 680) as panel:
        yield panel


async def _compared(window: MainWindow) -> None:
    """The main job of the flow model is done: take A, calibration, take B."""
    await _load(window, FLOW)
    if not window.state.synthesis.accelerated_is_current:
        await make_takes(window, 0, print)


async def _example(window: MainWindow) -> None:
    """The example study is open, and its settings are points."""
    if not window.results.studies:
        window.action["open_example"].trigger()
        await _until(lambda: window.features.find(StudiesPresenter).summary is not None, window)


# --- What is seen ----------------------------------------------------------------------------------------------------
@asynccontextmanager
async def _menu(window: MainWindow) -> AsyncIterator[QWidget]:
    """A menu with the highlight on one of its entries."""
    await _compared(window)
    menus = {one.title(): one for one in window.menuBar().findChildren(QMenu)}
    menu, chosen = menus["&Compare"], window.action["play"]
    menu.popup(window.mapToGlobal(window.rect().topLeft()))
    menu.setActiveAction(chosen)
    try:
        yield menu
    finally:
        menu.close()


@asynccontextmanager
async def _view(window: MainWindow, name: str) -> AsyncIterator[QWidget]:
    await _compared(window)
    views = built(window.features.find(ViewsPresenter).views)
    views.choose(name)
    await finished(window, views.compute_button.click)
    async with _alone(window, "views", 1000, 560) as panel:
        yield panel


@asynccontextmanager
async def _roofline(window: MainWindow) -> AsyncIterator[QWidget]:
    await _compared(window)
    presenter = window.features.find(RooflinePresenter)
    for side in "AB":
        await finished(window, partial(presenter.measure, side))
    async with _alone(window, "roofline", 1200, 800) as panel:
        built(presenter.roofline).table.setFocus(Qt.FocusReason.OtherFocusReason)
        yield panel


@asynccontextmanager
async def _servers(window: MainWindow, clients: str = "1 2 4 8 16") -> AsyncIterator[QWidget]:
    """A real server of the bundled language model, measured with so many ``clients``, and its replies judged."""
    command = [sys.executable, "-m", "paretone", "serve", "--speech-api", "--model", "lm-mini", "--port", "0"]
    server = subprocess.Popen([*command, "--batch", "8"], stderr=subprocess.PIPE, text=True)
    try:
        said = await asyncio.to_thread(lambda: next((one for one in server.stderr or () if "http://" in one), ""))
        presenter = window.features.find(ServersPresenter)
        window.workspaces.go_to("servers")
        panel = built(presenter.servers)
        panel.url.setText(f"http://{said.partition('http://')[2].partition('/v1')[0]}")
        panel.clients.setText(clients)
        presenter.measure()
        await until(lambda: panel.state.text() == "Measured and judged.", window)
        async with _alone(window, "servers", 1240, 420) as shown:
            yield shown
    finally:
        server.send_signal(signal.SIGINT)
        await asyncio.to_thread(server.communicate)


@asynccontextmanager
async def _servers_front(window: MainWindow) -> AsyncIterator[QWidget]:
    """A measured server next to the settings of the example study: first audio against word errors."""
    if not any(one.kind == SERVER for one in window.results.points):
        async with _servers(window, "8"):  # One load is enough for a point, and five are five times as long to judge.
            pass
    panel = built(window.features.find(TradeoffPresenter).tradeoff)
    async with _points(window) as shown:
        _show_axes(panel, "first_audio_seconds", "word_error_rate")
        await _until(lambda: any(one.kind == SERVER for one in panel.scene.points), window)
        panel.choose(next(one.key for one in panel.scene.points if one.kind == SERVER))
        try:
            yield shown
        finally:
            _show_axes(panel, PlotOptions.x, PlotOptions.y)


@asynccontextmanager
async def _host(window: MainWindow) -> AsyncIterator[QWidget]:
    """The dialog that asks for another machine."""
    window.action["add_host"].trigger()
    dialog = next(one for one in window.findChildren(HostDialog) if one.isVisible())
    dialog.host.setText("gpu1.example.org")
    dialog.start.setText("srun --gres=gpu:1 paretone serve")
    try:
        yield dialog
    finally:
        dialog.reject()


def _show_axes(panel: TradeoffPanel, x: str, y: str) -> None:
    line = panel.options_line
    for choice, name in ((line.x_choice, x), (line.y_choice, y)):
        choice.setCurrentIndex(choice.findData(name))
        choice.activated.emit(choice.currentIndex())


@asynccontextmanager
async def _studies(window: MainWindow) -> AsyncIterator[QWidget]:
    await _example(window)
    panel = built(window.features.find(StudiesPresenter).studies)
    seen = panel.summary
    if seen is None or seen.left:
        raise PlainError("The example study is not finished; `python -m tests.tools.example_study` makes them.")
    # The baseline's row is the first.
    panel.table.selectRow(1)
    async with _alone(window, "studies", 1240, 420) as shown:
        panel.table.setFocus(Qt.FocusReason.OtherFocusReason)
        yield shown


@asynccontextmanager
async def _new_study(window: MainWindow) -> AsyncIterator[QWidget]:
    """A search over steps and the first techniques of the flow model that features of the window belong to."""
    await _example(window)
    if why_no_search():
        raise PlainError(why_no_search())
    window.action["new_study"].trigger()
    presenter = window.features.find(StudiesPresenter)
    maker = built(presenter.maker)
    try:
        maker.title.setText("The fastest that sounds as good")
        maker.kind.setCurrentIndex(maker.kind.findData(SEARCH))
        maker.axes.lines[0].values.setText("4..12")
        applying = {one.name: one for one in window.state.selection.techniques}
        featured = dict.fromkeys(one.technique for one in window.declared if one.technique in applying)
        for name in islice(featured, 2):  # More would have to be scrolled to.
            graded = any(knob.name == _GRADED for knob in applying[name].knobs)
            maker.axes.add(Varied(name, _GRADED, _GRADES, True) if graded else Varied(name, "", "", True))
        maker.title.setFocus(Qt.FocusReason.OtherFocusReason)
        maker.resize(1080, 620)
        await _until(maker.save_button.isEnabled, window)
        await settled(window)
        yield maker
    finally:
        maker.reject()


@asynccontextmanager
async def _points(window: MainWindow) -> AsyncIterator[QWidget]:
    """The settings of the example study."""
    await _example(window)
    panel = built(window.features.find(TradeoffPresenter).tradeoff)
    async with _alone(window, "tradeoff", 1100, 600) as shown:
        await _until(lambda: bool(panel.scene.points), window)
        panel.plot.setFocus(Qt.FocusReason.OtherFocusReason)
        yield shown


@asynccontextmanager
async def _chosen_point(window: MainWindow) -> AsyncIterator[QWidget]:
    """One on the front is chosen."""
    async with _points(window) as shown:
        for _ in range(3):
            window.action["front_on"].trigger()
        yield shown


@asynccontextmanager
async def _brushed(window: MainWindow) -> AsyncIterator[QWidget]:
    """Parallel axes of the example study, on which the slower settings are brushed away."""
    await _example(window)
    tradeoff = window.features.find(TradeoffPresenter)
    axes = built(tradeoff.parallel).axes
    async with _alone(window, "parallel", 1100, 340) as shown:
        await _until(lambda: bool(axes.shown.points), window)
        axes.setFocus(Qt.FocusReason.OtherFocusReason)
        speed = next(at for at, one in enumerate(axes.shown.axes) if one.name == "speed_up")
        axes.ranges_changed.emit(axes.shown.brushed(speed, 2.0, float(axes.shown.ends[speed, 1])))
        try:
            yield shown
        finally:
            built(tradeoff.tradeoff).clear_filter()


@asynccontextmanager
async def _grid(window: MainWindow) -> AsyncIterator[QWidget]:
    """The take grid of the example study: two knobs and what each did, around its baseline."""
    await _example(window)
    tradeoff = built(window.features.find(TradeoffPresenter).tradeoff)
    presenter = window.features.find(TakeGridPresenter)
    async with _points(window):
        plain = next(one for one in tradeoff.scene.points if not one.techniques)
        tradeoff.choose(plain.key)
        window.action["grid_point"].trigger()
    async with _alone(window, "take_grid", 1100, 420) as shown:
        await _until(lambda: presenter.grid is not None, window)
        presenter.choose(_GRID)
        await _until(lambda: presenter.grid is not None and presenter.grid.figure.name == _GRID.figure, window)
        cells = built(presenter.take_grid).cells
        cells.set_cursor(0, cells.grid.shape[1] - 1 if cells.grid is not None else 0)
        cells.setFocus(Qt.FocusReason.OtherFocusReason)
        yield shown


@asynccontextmanager
async def _published(window: MainWindow) -> AsyncIterator[QWidget]:
    """As ratios, with what papers published; a setting with a technique of theirs is chosen."""
    panel = built(window.features.find(TradeoffPresenter).tradeoff)
    line = panel.options_line
    async with _points(window) as shown:
        _show_axes(panel, PlotOptions.x, "ops_ratio")
        for box in (line.boxes["ratios"], line.boxes["published"]):
            box.setChecked(True)
        theirs = {name for one in panel.scene.points if one.published for name in one.techniques}
        own = (one.key for one in panel.scene.points if not one.published and theirs & set(one.techniques))
        panel.choose(next(own, ""))
        try:
            yield shown
        finally:
            for box in (line.boxes["ratios"], line.boxes["published"]):
                box.setChecked(False)


@asynccontextmanager
async def _mushra(window: MainWindow) -> AsyncIterator[QWidget]:
    """A page on takes of the example study, some of whose sounds are rated already."""
    await _example(window)
    lab = built(window.features.find(LabPresenter).lab)
    window.workspaces.default_layout()
    window.resize(1200, 760)
    window.action["listening_test"].trigger()
    setup = lab.setup
    setup.method.setCurrentIndex(setup.method.findData(MUSHRA))
    setup.source.setCurrentIndex(setup.source.findData(LIBRARY))
    setup.practice.setValue(0)
    await _until(lambda: setup.ticks.count() > 3, window)
    for row in range(setup.ticks.count()):
        setup.ticks.item(row).setCheckState(Qt.CheckState.Checked if row < 4 else Qt.CheckState.Unchecked)
    window.features.find(LabPresenter).begin()
    await _until(lambda: lab.volume is not None, window)
    built(lab.volume).begin_button.click()
    try:
        page = lab.trial
        if not isinstance(page, MushraPage):
            raise PlainError("The test did not begin.")
        page.hear(0)
        for button, rating in enumerate(_RATINGS, start=1):
            page.hear(button)
            page.sliders[button - 1].setValue(rating)
        page.time_line.region_drawn.emit(*_LOOP)
        yield window
    finally:
        lab.can["abandon"].trigger()


@asynccontextmanager
async def _decoding(window: MainWindow) -> AsyncIterator[QWidget]:
    """A take of the language model without a draft, and one with it."""
    await _load(window, LANGUAGE)
    (technique,) = (one.technique for one in window.declared if one.name == "decoding")
    window.state.selection.switch(technique, True)
    for action in (window.action["baseline"], window.action["accelerated"]):
        await perform(window, action)
    async with _alone(window, "decoding", 1000, 500) as panel:
        yield panel


@asynccontextmanager
async def _layers(window: MainWindow) -> AsyncIterator[QWidget]:
    await _load(window, LANGUAGE)
    async with _alone(window, "layers", 1000, 560) as panel:
        yield panel


@asynccontextmanager
async def _demasking(window: MainWindow) -> AsyncIterator[QWidget]:
    """The canvas of a take of the masked model, three quarters of its steps on."""
    await _load(window, MASKED)
    window.state.comparison.set_b(None)
    await perform(window, window.action["baseline"])
    panel = built(window.features.find(DemaskingPresenter).demasking)
    async with _alone(window, "demasking", 1100, 460) as shown:
        if panel.passage is not None:
            panel.go_to(panel.passage.steps * 3 // 4 - 1)
        yield shown


@asynccontextmanager
async def _faulty(window: MainWindow) -> AsyncIterator[QWidget]:
    """A take that was damaged in three places, as the player shows it."""
    await _load(window, FLOW)
    await perform(window, window.action["baseline"])
    take = window.state.comparison.take_a
    if take is None:
        raise PlainError("No take was made.")
    speech, draw = speech_of(take, take.text), np.random.default_rng(4)
    for damage in DAMAGES:
        if damage.fault in ("gap", "click", "burst"):
            speech = damage.do(speech, damage.strengths[1], draw) or speech
    damaged = replace(take, id="fa" * 16, samples=speech.sound, label="damaged")
    presenter = window.features.find(TakesPresenter)
    bar = window.features.find(PlayerPresenter).control.bar
    window.results.takes.add(damaged)
    window.state.comparison.set_a(damaged)
    presenter.judging.add(damaged)
    window.workspaces.default_layout()
    window.resize(1240, 700)
    window.workspaces.go_to("takes")
    await until(lambda: "Burst" in bar.strip.accessibleDescription(), window, patience=300.0)
    yield bar


@asynccontextmanager
async def _queued(window: MainWindow) -> AsyncIterator[QWidget]:
    """The queue with a take that is paused, and jobs of two models."""
    await _load(window, FLOW)
    chosen, jobs, before = window.state.selection, window.jobs, dict(window.state.selection.choices)
    chosen.set_option("steps", 128)
    for text in islice(catalogue.sentences(), 3):
        chosen.set_text(text)
        window.action.baseline.trigger()
    chosen.switch("ditreducio", True)
    window.action["calibrate"].trigger()
    window.action.accelerated.trigger()
    await _until(lambda: "step 4" in window.status.text.lower(), window)
    jobs.stop(True)
    window.action.model_wanted.emit("lm-mini")
    window.action.baseline.trigger()
    window.action.model_wanted.emit("f5-mini")
    window.workspaces.go_to("queue")
    window.workspaces.maximise()
    window.resize(1100, 420)
    await asyncio.sleep(SETTLE_SECONDS)
    try:
        yield window.panels["queue"]
    finally:
        window.workspaces.maximise()
        cancel_all(jobs)
        jobs.stop(False)
        await _until(lambda: not jobs.busy, window)
        chosen.put_choices(before)


@asynccontextmanager
async def _lanes(window: MainWindow) -> AsyncIterator[QWidget]:
    """Four takes of one sentence as lanes, the third subtracted from the first, and a note."""
    await _load(window, FLOW)
    selection, comparison = window.state.selection, window.state.comparison
    comparison.arrange((None, None))
    for steps in (32, 12, 7, 4):
        selection.set_option("steps", steps)
        await perform(window, window.action["baseline"])
        comparison.arrange((None, *(one for one in comparison.lanes if one is not None)))
    takes, panel = comparison.lanes[:0:-1], built(window.features.find(ListenPresenter).listen)
    comparison.arrange(takes, 0, 2)
    window.features.find(TakesPresenter).note(takes[2].id if takes[2] else "", "Harsh s #steps")
    async with _alone(window, "listen", 1200, 820) as shown:
        await _until(lambda: not panel.finder.busy, window)
        window.features.find(PlayerPresenter).deck.seek(1.0)
        yield shown


@asynccontextmanager
async def _elsewhere(window: MainWindow) -> AsyncIterator[QWidget]:
    """The header with an engine in another process, reached as a host is, but without ssh."""
    engines, machine = window.features.find(EnginesPresenter), window.state.machine
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder))
        try:
            with patch.object(ssh, "SshLink", lambda target: Local(host.port, host.token, target.target)):
                engines.add("gpu1")
            await _until(lambda: machine.round_trip is not None and window.state.selection.ready, window)
            window.resize(1280, 800)
            await asyncio.sleep(SETTLE_SECONDS)
            yield window.header
        finally:
            engines.forget()
            await _until(lambda: window.state.selection.ready and not window.jobs.busy, window)
            host.kill()


# Takes, once there are some, would be among the example's points: its pictures come first. Those of one model follow
# each other, so that each is loaded once.
PICTURES = (
    GuidePicture("servers", _servers),
    GuidePicture("servers-front", _servers_front),
    GuidePicture("add-host", _host),
    GuidePicture("studies", _studies),
    GuidePicture("studies-new", _new_study),
    GuidePicture("trade-off", _chosen_point),
    GuidePicture("parallel", _brushed),
    GuidePicture("take-grid", _grid),
    GuidePicture("trade-off-published", _published, Scheme.DARK),
    GuidePicture("lab-mushra", _mushra, Scheme.DARK),
    GuidePicture("views-light", lambda window: _view(window, "tables")),
    GuidePicture("views-dark", lambda window: _view(window, "temporal-redundancy"), Scheme.DARK),
    GuidePicture("add-technique", _adding),
    GuidePicture("menu-light", _menu),
    GuidePicture("menu-dark", _menu, Scheme.DARK),
    GuidePicture("roofline", _roofline),
    GuidePicture("decoding", _decoding),
    GuidePicture("layers", _layers),
    GuidePicture("demasking", _demasking),
    GuidePicture("lanes", _lanes),
    GuidePicture("faults", _faulty),
    GuidePicture("own-model", _own_model),
    GuidePicture("queue", _queued),
    GuidePicture("engine-elsewhere", _elsewhere),
)


SIZES = ((1024, 768), (1440, 900), (1920, 1080))
SCHEMES = (Scheme.LIGHT, Scheme.DARK)
_QUALITY = 85
_FINE_QUALITY = 60
"""Of WebP: text stays sharp, also of screens at 200 % and more, and all pictures together stay below 3 MB."""
_SECONDS = 1.5
"""What a workspace has until its picture is taken: plots are drawn in turns of their own."""


def arranged(
    window: MainWindow, sizes: Sequence[tuple[int, int]] = SIZES, schemes: Sequence[Scheme] = SCHEMES
) -> Iterator[str]:
    """Bring each workspace into view in each size and scheme, in its default layout; the name of its picture."""
    for width, height in sizes:
        window.resize(width, height)
        window.workspaces.default_layout()
        window.notices.banner.clear()
        for scheme in schemes:
            window.theme.apply(scheme)
            for workspace in window.workspaces.there:
                window.workspaces.switch(workspace)
                yield f"{workspace.name}-{width}x{height}-{scheme.value}"


async def take(window: MainWindow, folder: Path, sizes: Sequence[tuple[int, int]], steps: int) -> None:
    """Do the main job, with ``steps`` solver steps if that is not 0, and save all pictures in ``folder``. Raises
    :class:`paretone.errors.PlainError` with the reason when a job fails."""
    folder.mkdir(parents=True, exist_ok=True)
    window.show()
    await make_takes(window, steps, print)
    window.action["open_example"].trigger()
    await until(lambda: bool(window.results.studies), window)
    for name in arranged(window, sizes):
        await asyncio.sleep(_SECONDS)
        save(window, folder / f"{name}.webp")


# --- Contact sheets --------------------------------------------------------------------------------------------------
_SHEET_SIZES = ((1024, 700), (1440, 900))
_ACROSS, _SHARE = 2, 0.5
"""Pictures next to each other on a sheet, and their size over the window's."""
_LONG = " ".join(["The birch canoe slid on the smooth planks, and the stray cat gave birth to kittens."] * 40)


async def _nothing_yet(window: MainWindow) -> None:
    await started(window)


async def _working(window: MainWindow) -> None:
    """A long text is being spoken."""
    window.state.selection.set_text(_LONG)
    window.action.baseline.trigger()
    await asyncio.sleep(_SECONDS)


async def _filled(window: MainWindow) -> None:
    """The main job is done, the example is open, figures are drawn."""
    window.action["cancel"].trigger()
    await until(lambda: not window.jobs.busy, window)
    window.state.selection.set_text("Good morning. The birch canoe slid on the smooth planks.")
    await make_takes(window, 0, print)
    await _example(window)
    window.workspaces.go_to("tradeoff")  # What nobody sees is not drawn.
    await _until(lambda: bool(built(window.features.find(TradeoffPresenter).tradeoff).scene.points), window)
    await finished(window, built(window.features.find(ViewsPresenter).views).compute_button.click)


async def _failed(window: MainWindow) -> None:
    """A model that is not there is chosen, and a folder that is no study was opened."""
    missing = next(one for one in catalogue.models() if not one.bundled and not one.available)
    window.features.find(SetupPresenter).choose_model(missing.id)
    with tempfile.TemporaryDirectory() as folder:
        window.features.find(StudiesPresenter).opened.open(Path(folder), in_front=False)
        await asyncio.sleep(_SECONDS)


_STATES = {"empty": _nothing_yet, "running": _working, "full": _filled, "error": _failed}


async def take_sheets(window: MainWindow, folder: Path, sizes: Sequence[tuple[int, int]], steps: int) -> None:
    """Save a sheet of all workspaces for each state, size and scheme in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    window.show()
    await started(window)
    if steps:
        window.state.selection.set_option("steps", steps)
    for state, bring_about in _STATES.items():
        await bring_about(window)
        message = window.notices.banner.text
        seen: dict[str, list[QImage]] = {}
        for name in arranged(window, sizes):
            if state == "error":
                window.notices.say(message, "error")
            await asyncio.sleep(_SECONDS)
            seen.setdefault(name.partition("-")[2], []).append(window.grab().toImage())
        for name, pictures in seen.items():
            save_sheet(pictures, folder / f"{state}-{name}.webp")


def save_sheet(pictures: Sequence[QImage], path: Path) -> None:
    size = pictures[0].size() * _SHARE
    sheet = QImage(size.width() * _ACROSS, size.height() * -(-len(pictures) // _ACROSS), QImage.Format.Format_RGB32)
    sheet.fill(Qt.GlobalColor.gray)
    with QPainter(sheet) as painter:
        for number, one in enumerate(pictures):
            row, column = divmod(number, _ACROSS)
            smooth = one.scaled(size, mode=Qt.TransformationMode.SmoothTransformation)
            smooth.setDevicePixelRatio(1.0)  # Else a sheet of a scaled screen shows them at half their size.
            painter.drawImage(column * size.width(), row * size.height(), smooth)
    if not sheet.save(str(path), quality=_QUALITY):
        raise PlainError(f"{path} could not be written.")
    print(f"Wrote {path}")


async def take_for_guides(window: MainWindow, folder: Path, names: Collection[str] = (), steps: int = 0) -> None:
    """Save the pictures of the guides in ``folder``: all, or ``names``, with ``steps`` solver steps unless 0. Raises
    :class:`paretone.errors.PlainError` at the end where a job failed, or a panel had nothing to show."""
    failed: list[str] = []
    folder.mkdir(parents=True, exist_ok=True)
    window.show()
    await started(window)
    if steps:
        window.state.selection.set_option("steps", steps)
    for one in PICTURES:
        if names and one.name not in names:
            continue
        try:
            async with one.shown(window) as widget:
                window.theme.apply(one.scheme)
                window.notices.banner.clear()
                await settled(window)
                require_content(widget)
                save(widget, folder / f"{one.name}.webp")
        except PlainError as error:
            failed.append(f"{one.name}: {error}")
    if failed:
        raise PlainError("\n".join(failed))


def require_content(widget: QWidget) -> None:
    """Raise :class:`paretone.errors.PlainError` where ``widget`` still shows how it would be filled."""
    for one in (widget, *widget.findChildren(Invited)):
        if isinstance(one, Invited) and one.isVisibleTo(widget) and one.is_empty:
            raise PlainError(f"There is nothing to take a picture of yet: {one.empty.words.text()}")


def save(widget: QWidget, path: Path) -> None:
    """Save ``widget`` as it is now. Raises :class:`paretone.errors.PlainError` when ``path`` cannot be written."""
    quality = _QUALITY if widget.devicePixelRatioF() < 2 else _FINE_QUALITY
    if not widget.grab().toImage().save(str(path), quality=quality):
        raise PlainError(f"{path} could not be written.")
    print(f"Wrote {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the pictures; the process's exit code."""
    options = parse(arguments)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    if options.scale != 1.0:
        os.environ["QT_SCALE_FACTOR"] = f"{options.scale:g}"
    import qasync

    application = QApplication(sys.argv[:1])
    application.setQuitOnLastWindowClosed(False)
    with sound_to_nobody(), asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        return runner.run(_run(application, options))


async def _run(application: QApplication, options: argparse.Namespace) -> int:
    from paretone_app.__main__ import make_window, tell_qt_messages

    with tempfile.TemporaryDirectory(prefix="paretone-") as data:
        if options.guides is not None:
            (Path(data) / "plug-in").mkdir()
            _plug_in(Path(data) / "plug-in")
        window = make_window(application, data)
        tell_qt_messages(window)
        closed = asyncio.get_running_loop().create_future()
        window.closed.connect(lambda: closed.set_result(None))
        code = 0
        try:
            folder = Path(options.folder)
            if options.sheets:
                await take_sheets(window, folder, options.sizes or _SHEET_SIZES, options.steps)
            elif options.guides is None:
                await take(window, folder, options.sizes or SIZES, options.steps)
            else:
                await take_for_guides(window, folder, options.guides, options.steps)
        except Exception as error:  # The window has to close in any case.
            if not isinstance(error, PlainError):
                traceback.print_exc()
            print(f"The pictures stopped: {error}", file=sys.stderr)
            code = 1
        window.close()
        await closed
    return code


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.pictures", description="Pictures of the real window.")
    parser.add_argument("folder", help="where they are saved")
    parser.add_argument("--sizes", type=_size, nargs="+", metavar="WIDTHxHEIGHT", help="sizes of the window")
    parser.add_argument("--scale", type=float, default=1.0, metavar="FACTOR", help="scale of the desktop, such as 1.5")
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="solver steps (default: the model's)")
    parser.add_argument(
        "--guides", nargs="*", metavar="NAME", help="make the pictures of the guides instead: all, or those called so"
    )
    parser.add_argument("--sheets", action="store_true", help="make contact sheets of every state instead")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
