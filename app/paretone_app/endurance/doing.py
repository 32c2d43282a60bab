"""What a round of an endurance run does: the window's own actions, on every bundled model, as people use them.

Each round visits the models in the same order, so that the same is loaded and shown whenever something is read. The
main job is done on each. What takes longer is done on each in the first round, then on one, and on the next in the next
round. Which techniques, knobs, texts, voices, views and targets come up is drawn.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QMessageBox

from paretone.errors import PlainError, SettingError, StudyError
from paretone.export.targets import targets
from paretone.files import write_atomically
from paretone.models import catalogue
from paretone.session.events import Event, JobFailed
from paretone.setting.knobs import Choice, Knob, Number, Switch
from paretone.studies import definition
from paretone.studies.writing import to_toml
from paretone.techniques.base import Technique
from paretone_app.endurance.panels import PATIENCE, Panels, dialogs
from paretone_app.features.export.presenter import ProfileExport
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.setup.presenter import SetupPresenter
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.shell.headless_tour import finished, perform, until
from paretone_app.shell.window import MainWindow

TEXTS = (
    "The salt breeze came across from the sea.",
    "Seven candles.",
    "In the morning she found a letter at the window, and read it twice.",
    "Is anybody there?",
    "Silver rivers run slowly through the old market.",
)
STEPS = (2, 3, 4, 6)
KEPT = 12
"""Takes of the library that stay when a round has ended."""
_COMPILING = "launching"
"""The slot of techniques that compile, which takes minutes and stays by design."""


class Doing:
    """``folder`` takes what is written, and is emptied again."""

    def __init__(
        self,
        window: MainWindow,
        folder: Path,
        seed: int = 0,
        models: Sequence[str] = (),
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._window, self._folder, self._say = window, folder, say
        self._draw = random.Random(seed)
        self._models = list(models) or [one.id for one in catalogue.MODELS if one.bundled]
        self._panels = Panels(window, folder, self._draw)
        self._turns: dict[str, list[Technique]] = {}
        self._rounds = 0
        self.done = self.takes = 0
        self.seconds: dict[str, float] = {}
        """By action, what it took since this was emptied."""
        self.failures: list[str] = []
        self.refused: list[str] = []
        """Why techniques were not applied, in sentences; that is no failure."""
        window.state.synthesis.take_added.connect(self._count_take)
        window.bridge.happened.connect(self._note_failure)
        window.unexpected_happened.connect(lambda summary, _: self.failures.append(f"unexpected: {summary}"))

    def _count_take(self, _: object) -> None:
        self.takes += 1

    def _note_failure(self, event: Event) -> None:
        if isinstance(event, JobFailed) and event.details:
            self.failures.append(f"unexpected: {event.sentence}")

    async def round(self, only: Sequence[str] = ()) -> None:
        """The main job on each model, and everything else once, on one model or the other, in the first round on each;
        ``only`` these actions, by their names."""
        once = self._once
        for place, model in enumerate(self._models):
            await self._do("model", partial(self._load, model))
            mine = {
                name: action
                for number, (name, action) in enumerate(once.items())
                if not self._rounds or (number + self._rounds) % len(self._models) == place
            }
            for name, action in {**self._on_each, **mine}.items():
                if not only or name in only:
                    await self._do(name, action)
        await self._do("tidy", self._tidy)
        self._rounds += 1

    @property
    def _on_each(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Done on each model."""
        return {
            "setting": self._change_setting,
            "baseline": lambda: perform(self._window, self._window.action.baseline),
            "accelerated": self._accelerated,
            "listen": self._listen,
            "undo": self._undo,
            "takes": self._use_takes,
        }

    @property
    def _once(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Done on one model in each round, and on the next one in the next round."""
        return {
            "calibrate": self._calibrate,
            "export": self._export,
            "cancel": self._cancel,
            "study": self._study,
            **self._panels.actions,
        }

    async def _do(self, name: str, action: Callable[[], Awaitable[None]]) -> None:
        """A sentence that says why something cannot be done is a failure, too: nothing is asked for that cannot."""
        began = time.monotonic()
        try:
            await action()
        except PlainError as error:
            self.failures.append(f"{name} with {self._window.state.selection.model_id}: {error}")
        self.done += 1
        seconds = time.monotonic() - began
        self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 1)
        self._say(f"  {self._window.state.selection.model_id}: {name}, {seconds:.1f} s")

    # --- Takes -------------------------------------------------------------------------------------------------------
    async def _load(self, model: str) -> None:
        selection = self._window.state.selection
        if not selection.ready or selection.model_id != model:
            await finished(self._window, lambda: self._window.features.find(SetupPresenter).choose_model(model))

    async def _change_setting(self) -> None:
        editing, selection = self._window.state.editing, self._window.state.selection
        editing.set_text(self._draw.choice(TEXTS))
        editing.choose_voice(self._draw.choice(selection.voices).id)
        editing.set_seed(self._draw.randrange(10_000))
        if "steps" in selection.options:
            editing.set_option("steps", self._draw.choice(STEPS))

    async def _accelerated(self) -> None:
        """Two takes with the technique whose turn it is, each alone and with one knob changed; those that would have to
        be prepared are passed over."""
        window, state, made = self._window, self._window.state, 0
        for technique in self._next_techniques(6):
            if made == 2:
                break
            self._use_alone(technique.name)
            before = state.selection.knobs(technique.name)
            if technique.knobs:
                self._turn(technique.name, self._draw.choice(technique.knobs))
            if state.availability.why_not_accelerate():  # The knob's value asks for a preparation.
                for name, value in before.items():
                    state.editing.set_knob(technique.name, name, value)
            if not state.availability.why_not_accelerate():
                try:
                    await perform(window, window.action.accelerated)
                except PlainError as error:  # Such as one that is slower on this machine.
                    self.refused.append(f"{technique.name} with {state.selection.model_id}: {error}")
                made += 1

    def _use_alone(self, technique: str) -> None:
        state = self._window.state
        for one in state.selection.techniques:
            state.editing.switch(one.name, one.name == technique)

    def _next_techniques(self, count: int) -> list[Technique]:
        """Those whose turn it is: each comes up once before any comes up again."""
        selection = self._window.state.selection
        waiting = self._turns.setdefault(selection.model_id, [])
        if len(waiting) < count:
            fresh = [one for one in selection.techniques if one.slot != _COMPILING and not one.needs]
            self._draw.shuffle(fresh)
            waiting += fresh
        taken, waiting[:count] = waiting[:count], []
        return taken

    def _turn(self, technique: str, knob: Knob) -> None:
        """Give the knob another value near the present one; one that is refused stays as it was."""
        editing, value = self._window.state.editing, self._window.state.selection.knobs(technique)[knob.name]
        wanted: object = value
        if isinstance(knob, Switch):
            wanted = not value
        elif isinstance(knob, Choice):
            wanted = self._draw.choice(knob.values)
        elif isinstance(knob, Number):
            wanted = value + self._draw.choice((-1, 1)) * knob.step
        try:
            editing.set_knob(technique, knob.name, wanted)
        except SettingError:
            editing.set_knob(technique, knob.name, value)

    async def _calibrate(self) -> None:
        """With the technique that it prepares, where the model has that."""
        state = self._window.state
        prepared = [one.name for one in state.selection.techniques if state.artefacts.source(one.name) is not None]
        if prepared:
            self._use_alone(prepared[0])
        if self._window.action["calibrate"].isEnabled():
            await perform(self._window, self._window.action["calibrate"])

    async def _cancel(self) -> None:
        """A take, and a view where there is one, that are given up a moment after they began."""
        window = self._window
        for action in (window.action.baseline, window.action["calibrate"]):
            await until(lambda: not window.jobs.busy, window)
            if action.isEnabled():
                action.trigger()
                await asyncio.sleep(self._draw.uniform(0.0, 0.4))
                window.jobs.cancel_all()
                await until(lambda: not window.jobs.busy, window)

    async def _listen(self) -> None:
        """A and B, switched while they play, forwards and backwards; nothing where no device can play."""
        window = self._window
        player = window.features.find(PlayerPresenter).player
        if not player.usable or not window.action.compare.isEnabled():
            return
        await until(lambda: not player.streaming and not player.playing, window, PATIENCE)
        for _ in range(4):
            window.action.compare.trigger()
            await asyncio.sleep(self._draw.uniform(0.1, 0.5))
        if player.playing:
            window.action.play.trigger()
        if player.problem:
            raise PlainError(player.problem)

    # --- What is made of them ----------------------------------------------------------------------------------------
    async def _undo(self) -> None:
        """Back as far as it goes, at most twenty steps, and on again."""
        done = 0
        while self._window.action.undo.isEnabled() and done < 20:
            self._window.action.undo.trigger()
            done += 1
            await asyncio.sleep(0)
        for _ in range(done):
            self._window.action.redo.trigger()
            await asyncio.sleep(0)

    async def _export(self) -> None:
        """The profile, A and B as WAV, and one form for other software."""
        window, folder = self._window, self._folder / "exports"
        if not window.state.availability.why_not_export():
            export = ProfileExport(window.state)
            folder.mkdir(exist_ok=True)
            export.write(folder / "profile.json")
            carried = [one for one in targets() if not export.account(one).why_not]
            if carried:
                chosen = self._draw.choice(carried)
                await finished(window, lambda: export.export(chosen, folder / chosen.name))
        folder.mkdir(exist_ok=True)
        window.features.find(TakesPresenter).save_wavs(folder)
        shutil.rmtree(folder)

    async def _study(self) -> None:
        """A technique and its baseline on one sentence: written, run, and closed."""
        window, folder = self._window, self._folder / "studies"
        model = window.state.selection.model_id
        folder.mkdir(exist_ok=True)
        path = folder / f"{model}.toml"
        write_atomically(path, to_toml(self._studied(model)).encode())
        await self._panels.run_study(path)
        shutil.rmtree(folder)

    def _studied(self, model: str) -> dict[str, object]:
        """The definition of a study with the first technique that needs nothing prepared. Raises
        :class:`paretone.errors.StudyError` if none does."""
        selection = self._window.state.selection
        given: dict[str, object] = {"title": "Endurance", "model": model, "sentences": [self._draw.choice(TEXTS)]}
        if "steps" in selection.options:
            given["options"] = {"steps": max(STEPS)}
        reason = ""
        for one in selection.techniques:
            if one.slot == _COMPILING or one.prepared_by:
                continue
            given["setting"] = [{"techniques": {one.name: dict(selection.knobs(one.name))}}]
            try:
                definition.parse(given)
                return given
            except StudyError as error:
                reason = str(error)
        raise StudyError(reason)

    async def _use_takes(self) -> None:
        """Stars, filters, takes as A and B, a setting taken up again, and all but the newest takes deleted."""
        window, panel = self._window, self._window.features.find(TakesPresenter).takes
        for words in (window.state.selection.model_id[:3], "nothing of the kind", ""):
            panel.search.setText(words)
            await asyncio.sleep(0)
        newest = [one.id for one in panel.all_takes]
        panel.select(newest[:1])
        panel.star()
        panel.star()
        panel.set_b()
        panel.rerun()
        panel.select(newest[KEPT:])
        if len(newest) > KEPT:
            panel.delete()
            box = next((one for one in dialogs() if isinstance(one, QMessageBox)), None)
            if box is None:
                raise PlainError("Nothing asked whether the takes shall be deleted.")
            box.button(QMessageBox.StandardButton.Yes).click()

    async def _tidy(self) -> None:
        """Nothing runs, plays or asks any more, and the judges have heard every take."""
        window = self._window
        for dialog in dialogs():
            dialog.close()
        await until(lambda: not window.jobs.busy, window, PATIENCE)
        judging = window.features.find(TakesPresenter).judging
        await until(lambda: not judging.busy, window, PATIENCE)
        window.workspaces.switch(window.workspaces.there[0])
        window.notices.clear()
        await asyncio.sleep(0.5)
