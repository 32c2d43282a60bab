"""What a round of an endurance run does: the window's own actions, on every bundled model, as people use them.

Each round visits the models in the same order, so that the same is loaded and shown whenever something is read. The
main job is done on each. What takes longer is done on each in the first round, then on one, and on the next in the next
round. Which techniques, knobs, texts, voices, views and targets come up is drawn.
"""

import asyncio
import random
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QApplication, QDialog, QMessageBox

from paretone.errors import PlainError, SettingError, StudyError
from paretone.export.targets import targets
from paretone.files import write_atomically
from paretone.models import catalogue
from paretone.models.base import FLOW
from paretone.session.commands import CaptureAttention
from paretone.session.events import Event, JobFailed
from paretone.setting.knobs import Choice, Knob, Number, Switch, Values
from paretone.studies import definition
from paretone.studies.definition import to_toml
from paretone.techniques.base import Technique
from paretone.views import views
from paretone_app.features.export import ProfileExport
from paretone_app.features.lab.presenter import LabPresenter
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import built
from paretone_app.features.roofline.presenter import RooflinePresenter
from paretone_app.features.setup.presenter import SetupPresenter
from paretone_app.features.studies.presenter import StudiesPresenter
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.features.tradeoff.presenter import TradeoffPresenter
from paretone_app.features.views.presenter import ViewsPresenter
from paretone_app.shell.headless_tour import finished, perform, until
from paretone_app.shell.theme import Scheme
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind
from tests.app.sharing import cancel_all

SIZES = ((1440, 900), (1024, 768))
DIALOGS = ("keys", "first_steps", "about", "glossary", "doctor", "extras", "new_study")
PATIENCE = 900.0
"""Seconds for what takes a moment on an idle machine. A take that is being judged is finished first."""
LONGEST_VIEW = 15.0
"""Seconds after which a view is given up."""
_FRONT = 3
_MOMENT = 0.05


def dialogs() -> list[QDialog]:
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
                cancel_all(window.jobs)
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
        for box in (tradeoff.options_line.boxes["ratios"], tradeoff.options_line.boxes["published"]):
            box.setChecked(True)
            await asyncio.sleep(_MOMENT)
            box.setChecked(False)
        (self._folder / "trade-off.svg").unlink()
        await self._close_study()

    async def run_study(self, path: Path) -> None:
        """Open the study in ``path``, run and close it. Raises :class:`paretone.errors.PlainError` when it fails."""
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
        lab.can["abandon"].trigger()
        await asyncio.sleep(_MOMENT)

    async def _dialogs(self) -> None:
        """Those of the menus, opened and closed again."""
        for name in DIALOGS:
            self._window.action[name].trigger()
            await asyncio.sleep(2 * _MOMENT)
            for dialog in dialogs():
                dialog.close()
            await asyncio.sleep(0)


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
        self._models = list(models) or [one.id for one in catalogue.models() if one.bundled]
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
        """Two takes with the techniques whose turn it is, each alone and with one knob changed. In the second round,
        the last of the warm-up, a take with each technique and each of its choices. Those that would have to be
        prepared are passed over."""
        everything, made = self._rounds == 1, 0
        for technique in self._all_techniques() if everything else self._next_techniques(6):
            if made == 2 and not everything:
                break
            self._use_alone(technique.name)
            before = self._window.state.selection.knobs(technique.name)
            choices = [(knob, one) for knob in technique.knobs if isinstance(knob, Choice) for one in knob.values]
            if everything and choices:
                for knob, value in choices:
                    if self._give(technique.name, knob, value):
                        await self._made_accelerated(technique.name, before)
                continue
            if technique.knobs and not everything:
                self._turn(technique.name, self._draw.choice(technique.knobs))
            made += await self._made_accelerated(technique.name, before)

    async def _made_accelerated(self, technique: str, usual: Values) -> bool:
        """Whether it could be asked for."""
        window, state = self._window, self._window.state
        if state.availability.why_not_accelerate():  # The knob's value asks for a preparation.
            for name, value in usual.items():
                state.editing.set_knob(technique, name, value)
        if state.availability.why_not_accelerate():
            return False
        try:
            await perform(window, window.action.accelerated)
        except PlainError as error:  # Such as one that is slower on this machine.
            self.refused.append(f"{technique} with {state.selection.model_id}: {error}")
        return True

    def _use_alone(self, technique: str) -> None:
        state = self._window.state
        for one in state.selection.techniques:
            state.editing.switch(one.name, one.name == technique)

    def _next_techniques(self, count: int) -> list[Technique]:
        """Those whose turn it is: each comes up once before any comes up again."""
        selection = self._window.state.selection
        waiting = self._turns.setdefault(selection.model_id, [])
        if len(waiting) < count:
            fresh = self._all_techniques()
            self._draw.shuffle(fresh)
            waiting += fresh
        taken, waiting[:count] = waiting[:count], []
        return taken

    def _all_techniques(self) -> list[Technique]:
        selection = self._window.state.selection
        return [one for one in selection.techniques if one.slot != _COMPILING and not one.needs]

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
        if not self._give(technique, knob, wanted):
            editing.set_knob(technique, knob.name, value)

    def _give(self, technique: str, knob: Knob, value: object) -> bool:
        """Whether the knob takes the value."""
        try:
            self._window.state.editing.set_knob(technique, knob.name, value)
        except SettingError:
            return False
        return True

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
                cancel_all(window.jobs)
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
            export.profile().save(folder / "profile.json")
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
        newest = [one.id for one in window.results.takes.all]
        panel.select(newest[:1])
        panel.star()
        panel.star()
        panel.can["set_b"].trigger()
        panel.can["use"].trigger()
        panel.select(newest[KEPT:])
        if len(newest) > KEPT:
            panel.delete()
            box = next((one for one in dialogs() if isinstance(one, QMessageBox)), None)
            if box is None:
                raise PlainError("Nothing asked whether the takes shall be deleted.")
            box.button(QMessageBox.StandardButton.Yes).click()

    async def _tidy(self) -> None:
        """Nothing runs, plays or asks any more, the judges have heard every take, and the first model is loaded anew: a
        model keeps its weights in every precision that it was used in."""
        window = self._window
        for dialog in dialogs():
            dialog.close()
        await until(lambda: not window.jobs.busy, window, PATIENCE)
        judging = window.features.find(TakesPresenter).judging
        await until(lambda: not judging.busy, window, PATIENCE)
        await self._load(self._models[0])
        window.workspaces.switch(window.workspaces.there[0])
        window.notices.banner.clear()
        await asyncio.sleep(0.5)
