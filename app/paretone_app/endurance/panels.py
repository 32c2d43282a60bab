"""What a round of an endurance run does in the panels: all are brought forward, and those that compute something do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QApplication, QDialog

from paretone.errors import PlainError
from paretone.models.base import FLOW
from paretone.session.commands import CaptureAttention
from paretone.views import views
from paretone_app.features.lab.presenter import LabPresenter
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import built
from paretone_app.features.roofline.presenter import RooflinePresenter
from paretone_app.features.studies.presenter import StudiesPresenter
from paretone_app.features.tradeoff.presenter import TradeoffPresenter
from paretone_app.features.views.presenter import ViewsPresenter
from paretone_app.shell.headless_tour import finished, perform, until
from paretone_app.shell.theme import Scheme
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind

SIZES = ((1440, 900), (1024, 768))
DIALOGS = ("keys", "first_steps", "about", "glossary", "doctor", "extras", "new_study")
PATIENCE = 900.0
"""Seconds for what takes a moment on an idle machine. A take that is being judged is finished first."""
LONGEST_VIEW = 15.0
"""Seconds after which a view is given up."""
_FRONT = 3
_MOMENT = 0.05


def dialogs() -> list[QDialog]:
    """The open dialogs."""
    return [one for one in QApplication.topLevelWidgets() if isinstance(one, QDialog)]


class Panels:
    """``folder`` takes what is written."""

    def __init__(self, window: MainWindow, folder: Path, draw: random.Random) -> None:
        self._window, self._folder, self._draw = window, folder, draw
        self._seen: set[tuple[str, str]] = set()
        """Models and views that the model has computed."""

    @property
    def actions(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """By name, everything that is done once a round and model."""
        return {
            "workspaces": self._show_all,
            "view": self._view,
            "attention": self._attention,
            "roofline": self._roofline,
            "example": self._example,
            "lab": self._lab,
            "dialogs": self._dialogs,
        }

    async def _show_all(self) -> None:
        """Every panel, in both schemes and sizes."""
        window = self._window
        schemes = list(Scheme)
        self._draw.shuffle(schemes)
        for scheme, size in zip(schemes, SIZES, strict=False):
            window.theme.apply(scheme)
            window.resize(*size)
            for workspace in window.workspaces.there:
                window.workspaces.switch(workspace)
                await asyncio.sleep(_MOMENT)
            for name in window.panels:
                window.workspaces.go_to(name)
                await asyncio.sleep(0)
        window.workspaces.maximise()
        await asyncio.sleep(_MOMENT)
        window.workspaces.maximise()
        window.resize(*SIZES[0])
        window.workspaces.default_layout()

    async def _view(self) -> None:
        """All that the model can answer, the first time, since the canvas keeps the frames of its largest figure; then
        one of them. One that takes long is cancelled."""
        window, panel = self._window, built(self._window.features.find(ViewsPresenter).views)
        loaded = window.state.selection.loaded
        fitting = [one.name for one in views() if loaded.family in one.families]
        for name in fitting:  # The knobs of a view stay once they were shown.
            panel.choose(name)
            await asyncio.sleep(0)
        new = [name for name in fitting if (loaded.id, name) not in self._seen]
        self._seen |= {(loaded.id, name) for name in new}
        for name in new or [self._draw.choice(fitting)] if fitting else ():
            panel.choose(name)
            if panel.compute_button.isEnabled():
                panel.compute_button.click()
                with suppress(PlainError):  # Without progress, nothing else is raised.
                    await until(lambda: not window.jobs.busy, window, LONGEST_VIEW)
                window.jobs.cancel_all()
                await until(lambda: not window.jobs.busy, window, PATIENCE)

    async def _attention(self) -> None:
        """What the panel does when a cell is chosen; it belongs to a technique, which others do not import."""
        window, chosen = self._window, self._window.state.selection
        if chosen.loaded.family == FLOW:
            text, voice, setting = chosen.text, chosen.speaker, replace(chosen.setting, techniques=())
            layer = self._draw.randrange(chosen.loaded.layers)
            capture = partial(CaptureAttention, text=text, voice=voice, setting=setting, layer=layer, step=0)
            await finished(window, lambda: window.state.jobs.start(Kind.ATTENTION, lambda job: capture(job)))

    async def _roofline(self) -> None:
        presenter = self._window.features.find(RooflinePresenter)
        if built(presenter.roofline).measure_buttons["A"].isEnabled():
            await finished(self._window, partial(presenter.measure, "A"))

    async def _example(self) -> None:
        """The example study is opened, walked along by ear, filtered and closed."""
        window, studies = self._window, self._window.features.find(StudiesPresenter)
        tradeoff = built(window.features.find(TradeoffPresenter).tradeoff)
        window.action["open_example"].trigger()
        await until(lambda: studies.summary is not None and bool(tradeoff.scene.points), window, PATIENCE)
        window.workspaces.go_to("tradeoff")
        for action in ["front_on"] * _FRONT + ["point_hear", "front_play", *["front_on"] * _FRONT, "front_play"]:
            if window.action[action].isEnabled():
                window.action[action].trigger()
            await asyncio.sleep(_MOMENT)
        player = window.features.find(PlayerPresenter).player
        if player.playing:
            player.pause()
        tradeoff.write(self._folder / "trade-off.svg")
        for box in (tradeoff.options_line.ratios_box, tradeoff.options_line.published_box):
            box.setChecked(True)
            await asyncio.sleep(_MOMENT)
            box.setChecked(False)
        (self._folder / "trade-off.svg").unlink()
        await self._close_study()

    async def run_study(self, path: Path) -> None:
        """Open the study in ``path``, run it, and close it. Raises :class:`paretone.errors.PlainError` when it
        fails."""
        window, studies = self._window, self._window.features.find(StudiesPresenter)
        studies.open(path)
        await until(lambda: studies.summary is not None and studies.summary.file == path, window, PATIENCE)
        await perform(window, window.action["run_study"])
        await until(lambda: studies.summary is not None and studies.summary.left == 0, window, PATIENCE)
        await self._close_study()

    async def _close_study(self) -> None:
        studies = self._window.features.find(StudiesPresenter)
        closed = studies.opened.chosen
        studies.close()
        await until(lambda: studies.opened.chosen != closed, self._window, PATIENCE)

    async def _lab(self) -> None:
        """A blind test of A and B begins, some sounds are heard, and it is given up."""
        window, presenter = self._window, self._window.features.find(LabPresenter)
        if not window.features.find(PlayerPresenter).player.usable:
            return
        lab = built(presenter.lab)
        window.action["listening_test"].trigger()
        lab.show_setup()
        lab.setup.choose_short_test(4)
        await asyncio.sleep(_MOMENT)
        if not lab.setup.begin_button.isEnabled():
            return  # A and B are of different sentences.
        presenter.begin()
        await until(lambda: lab.volume is not None, window, PATIENCE)
        built(lab.volume).begin_button.click()
        await until(lambda: lab.trial is not None, window, PATIENCE)
        await asyncio.sleep(10 * _MOMENT)
        lab.abandoned.emit()
        await asyncio.sleep(_MOMENT)

    async def _dialogs(self) -> None:
        """Those of the menus, opened and closed again."""
        for name in DIALOGS:
            self._window.action[name].trigger()
            await asyncio.sleep(2 * _MOMENT)
            for dialog in dialogs():
                dialog.close()
            await asyncio.sleep(0)
