"""The presenter of the take grid: arranges takes around a reference; plays, compares and makes cells."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from paretone.errors import PlainError, SettingError
from paretone.measure.metrics import METRICS, Metric
from paretone.models import catalogue
from paretone.setting.library import TakeSummary
from paretone_app.audio.sound import Sound, is_silent
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import Presenter, Services, built
from paretone_app.features.tradeoff.presenter import TradeoffPresenter
from paretone_app.numbers import counted, rough_duration
from paretone_app.results.reader import Results
from paretone_app.shell.bridge import arrived
from paretone_app.state.cost import LONG_SECONDS
from paretone_app.state.differences import keeps_timing
from paretone_app.state.editing import Edit
from paretone_app.state.playing import setting_title
from paretone_app.state.synthesis import Wanted, wanted_take

if TYPE_CHECKING:
    from paretone.setting.setting import Setting
    from paretone_app.features.take_grid.grid import Asked, Dimension, TakeGrid, Value
    from paretone_app.features.take_grid.panel import Cell, Chosen, TakeGridPanel


class CellHearing(QObject):
    """Plays takes through the common player."""

    failed = Signal(str)
    """A take could not be read or is silent, as a sentence."""

    def __init__(self, player: PlayerPresenter, results: Results, parent: QObject) -> None:
        super().__init__(parent)
        self._player, self._results = player, results
        self.sounds: OrderedDict[str, Sound] = OrderedDict()
        self._row: tuple[Sound, ...] = ()
        self._wanted = ""

    @property
    def heard(self) -> str:
        """Id of the take being heard; ``""`` if none of these."""
        deck = self._player.deck
        ours = bool(self._row) and deck.row is self._row and self._player.player.busy
        return deck.sound.key if ours and deck.sound is not None else ""

    def hear(self, take: TakeSummary) -> None:
        """Play ``take``: at the current position if it has the same text as the one before, else from its beginning."""
        if self._player.why_not_hear() or (self.heard and take.id == self._wanted):
            return
        self._wanted = take.id
        if take.id == self.heard:
            return
        if take.id in self.sounds:
            self._play(take, self.sounds[take.id])
            return
        load, player = self._results.load_audio(), self._player.player

        def read() -> Sound:
            samples, rate = load(take.id)
            player.prepare(samples, rate)
            return Sound(samples, rate, setting_title(take.setting, "Grid"), take.text, take.id).worked_out()

        self._player.deck.analyser.background.run(read, lambda made: self._take_over(take, made))

    def stop(self) -> None:
        """Stop if one of these is heard."""
        self._wanted = ""
        if self.heard:
            self._player.player.pause()

    def _take_over(self, take: TakeSummary, made: Sound | BaseException) -> None:
        if not arrived(made, self.failed.emit):
            return
        if is_silent(made.samples):
            self.failed.emit(f"{made.title} is silent: there is nothing to hear in this take.")
        self.sounds[take.id] = made
        while len(self.sounds) > 48:
            self.sounds.popitem(last=False)
        if self._wanted == take.id:
            self._play(take, made)

    def _play(self, take: TakeSummary, sound: Sound) -> None:
        deck = self._player.deck
        if deck.lent:
            return  # A listening test started meanwhile.
        if self.heard and deck.sound is not None and deck.sound.detail == take.text:
            if all(one is not sound for one in self._row):
                others = [one for one in self._row if one is not deck.sound][-12:]  # The most that the player holds.
                self._row = (*others, deck.sound, sound)
                deck.exchange_row(self._row, len(self._row) - 2)
            deck.go_in_row(next(place for place, one in enumerate(self._row) if one is sound))
        else:
            self._row = (sound,)
            self._player.hear_row(self._row, 0, keeps_timing(take.setting))
            deck.set_loop((0.0, sound.seconds))


_SHOWN = "take grid/shown"
_FIGURES: tuple[Metric, ...] = tuple(one for one in METRICS if one.of is not None and not one.of_runs)


class TakeGridPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._player = services.features.find(PlayerPresenter)
        self._tradeoff = services.features.find(TradeoffPresenter)
        self._settings = services.settings
        self._making = services.state.making
        self._reference = ""  # Id of the take.
        self._chosen: Chosen | None = None
        self._shown: Chosen | None = None
        self._known: dict[str, Dimension] = {}
        self._takes: tuple[TakeSummary, ...] = ()
        self.take_grid: TakeGridPanel | None = None
        self.hearing = CellHearing(self._player, self._results, self)
        self.hearing.failed.connect(services.notices.warn)
        self.later = {"take_grid": self._build}
        self._soon = QTimer(self, singleShot=True, interval=0)
        for signal in (self._results.takes.changed, self._making.changed):
            signal.connect(self._note_change)
        services.state.playing.changed.connect(self._show_playing)
        actions = services.actions
        for name, do, why_not in (
            ("grid_hear", lambda: self._toggle(self._cursor), self._why_no_grid),
            ("grid_reference", lambda: self.set_reference(self._take_at(self._cursor).id), self._why_no_grid),
            ("grid_make", lambda: self.make(self.grid.empty if self.grid is not None else ()), self._why_not_make),
            ("grid_point", self._from_point, lambda: "" if self.take_grid else "The take grid is not there yet."),
        ):
            actions.bind(actions[name], do, why_not)

    def _build(self) -> QWidget:
        from paretone_app.features.take_grid.panel import TakeGridPanel

        actions = self._actions
        self.take_grid = panel = TakeGridPanel(self._theme.colours, actions["grid_point"], actions["grid_make"])
        self._results.watch(panel)
        cells, attempt = panel.cells, actions.attempt
        panel.when_seen(self._show)
        self._soon.timeout.connect(partial(panel.when_seen, self._show))
        self._results.points_changed.connect(partial(panel.when_seen, self._note_points))
        panel.chosen.connect(lambda chosen: attempt(lambda: self.choose(chosen)))
        panel.sentence_chosen.connect(self._go_to_sentence)
        panel.pages.offer(actions.baseline, "Make take A")
        panel.pages.offer(actions["open_example"], "Open example")
        cells.moved.connect(self._cursor_moved)
        cells.pointed.connect(self._pointed)
        cells.left.connect(self._pointed)
        cells.activated.connect(lambda *cell: attempt(lambda: self._toggle(cell)))
        cells.reference_chosen.connect(lambda *cell: attempt(lambda: self.set_reference(self._take_at(cell).id)))
        cells.take_asked.connect(lambda *cell: attempt(lambda: self.make([cell])))
        cells.side_chosen.connect(lambda side, *cell: attempt(lambda: self.set_side(side, cell)))
        return panel

    def refresh(self) -> None:
        for name in ("grid_hear", "grid_reference", "grid_make", "grid_point"):
            self._actions[name].refresh()

    def _why_no_grid(self) -> str:
        return "" if self.grid is not None else "There is no grid yet."

    def _why_not_make(self) -> str:
        if self.grid is not None and not self.grid.empty:
            return "Every cell has a take; type further values for rows or columns."
        return self._why_no_grid()

    @property
    def grid(self) -> TakeGrid | None:
        return None if self.take_grid is None else self.take_grid.cells.grid

    def _note_points(self) -> None:
        if self._takes != self._results.all_takes:
            self._note_change()

    def _note_change(self) -> None:
        self._soon.start()

    def _show(self) -> None:
        from paretone_app.features.take_grid.grid import Asked, dimensions, over_sentences, take_grid

        panel = built(self.take_grid)
        takes = self._takes = self._results.all_takes
        reference = self._reference_of(takes)
        if reference is None:
            panel.show_grid(None, {})
            self.refresh()
            return
        self._reference = reference.id
        known = dimensions([Asked.of(one) for one in takes], reference.setting.model)
        self._known = {one.name: one for one in known}
        self._shown = chosen = self._in_force()
        rows, columns = self._known[chosen.rows], self._known[chosen.columns]
        figure = next((one for one in _FIGURES if one.name == chosen.figure), _FIGURES[0])
        panel.show_choices(known, _FIGURES, chosen)
        remark = ""
        more: tuple[Sequence[Value], Sequence[Value]] = (), ()
        try:
            more = self._read(rows, chosen.more_rows), self._read(columns, chosen.more_columns)
        except SettingError as error:
            remark = str(error)
        arrange = over_sentences if chosen.mean else take_grid
        grid = arrange(takes, reference, (rows, columns, figure), more)
        left = len(self._making.waiting)
        panel.show_grid(grid, self._states(grid), remark or (f"Making takes: {left} left." if left else ""))
        self._show_playing()
        self.refresh()

    def _in_force(self) -> Chosen:
        """The user's choices if valid for the reference; else the first knobs in which takes differ."""
        from paretone_app.features.take_grid.grid import TEXT, VOICE
        from paretone_app.features.take_grid.panel import Chosen

        chosen, names = self._chosen or self._recalled() or Chosen("", "", "real_time_factor"), list(self._known)
        if chosen.rows == chosen.columns or chosen.rows not in names or chosen.columns not in names:
            knobs = names[: names.index(TEXT)]
            first, second = (*knobs, TEXT, VOICE)[:2] if len(knobs) != 1 else (TEXT, knobs[0])
            chosen = replace(chosen, rows=first, columns=second, more_rows="", more_columns="")
        return chosen

    def _recalled(self) -> Chosen | None:
        from paretone_app.features.take_grid.panel import Chosen

        try:
            found = json.loads(str(self._settings.value(_SHOWN, "")))
            words = {name: str(value) for name, value in found.items() if name != "mean"}
            return Chosen(**words, mean=bool(found.get("mean")))
        except (ValueError, TypeError, AttributeError):
            return None  # Never chosen, or from another version.

    def _reference_of(self, takes: Sequence[TakeSummary]) -> TakeSummary | None:
        """The reference; if missing or not chosen: A, else the newest take without techniques."""
        known, compared = {one.id: one for one in takes}, self._state.comparison.take_a
        plain = next((one for one in takes if not one.setting.techniques), takes[0] if takes else None)
        return known.get(self._reference) or known.get(compared.id if compared is not None else "") or plain

    def _states(self, grid: TakeGrid) -> dict[Cell, tuple[str, str]]:
        from paretone_app.features.take_grid.panel import FAILED, WAITING

        waiting = {_key(one.text, one.voice.id, one.setting) for one in self._making.waiting}
        failed = {_key(one.text, one.voice.id, one.setting): text for one, text in self._making.problems.items()}
        found: dict[Cell, tuple[str, str]] = {}
        for row, column in grid.empty:
            asked = grid.asked[row][column]
            if asked is None:
                continue
            key = _key(asked.text, asked.voice, asked.setting)
            if key in waiting:
                found[row, column] = WAITING, "It is being made."
            elif key in failed:
                found[row, column] = FAILED, f"It could not be made: {failed[key]}"
        return found

    def _show_playing(self) -> None:
        if self.take_grid is not None:
            now = self._state.playing.now
            self.take_grid.cells.show_playing(now.key if now.sounding else "")

    # --- User input ---------------------------------------------------------------------------------------------------
    def choose(self, chosen: Chosen) -> None:
        """Change dimensions, values or figure. Raises :class:`SettingError` for invalid values."""
        before = self._shown or chosen
        if chosen.rows == chosen.columns:
            # Swap them instead of showing one twice.
            chosen = replace(chosen, rows=before.columns, columns=before.rows)
        if chosen.rows != before.rows and chosen.more_rows == before.more_rows:
            chosen = replace(chosen, more_rows="")
        if chosen.columns != before.columns and chosen.more_columns == before.more_columns:
            chosen = replace(chosen, more_columns="")
        if chosen == before:
            return
        self._state.undo_stack.push(Edit("choose what the take grid shows", before, chosen, self._put_chosen))
        for name, words in ((chosen.rows, chosen.more_rows), (chosen.columns, chosen.more_columns)):
            if name in self._known:
                self._read(self._known[name], words)

    def _read(self, dimension: Dimension, words: str) -> tuple[Value, ...]:
        """Parse typed values, voices and models by name. Raises :class:`SettingError` for an invalid one."""
        from paretone_app.features.take_grid.grid import MODEL, VOICE

        named: dict[str, str] = {}
        if dimension.name == VOICE:
            named |= {one.voice.casefold(): one.voice for one in self._results.all_takes}
            for one in self._state.selection.voices:
                for name in (one.id, one.id.rpartition("/")[2], one.title):
                    named[name.casefold()] = one.id
        elif dimension.name == MODEL:
            for entry in catalogue.models():
                named |= dict.fromkeys((entry.id.casefold(), entry.title.casefold()), entry.id)
        return dimension.read(words, named)

    def _put_chosen(self, chosen: Chosen) -> None:
        self._chosen = chosen
        self._settings.setValue(_SHOWN, json.dumps(asdict(chosen)))
        self._note_change()

    def set_reference(self, take: str) -> None:
        if take != self._reference:
            self._state.undo_stack.push(Edit("choose the grid's reference", self._reference, take, self._put_reference))

    def _put_reference(self, take: str) -> None:
        self._reference = take
        self._note_change()

    def _go_to_sentence(self, text: str) -> None:
        """Make the take of another sentence with the reference's setting the reference."""
        reference = next((one for one in self._results.all_takes if one.id == self._reference), None)
        if reference is None:
            return
        around = reference.voice, reference.setting.model, reference.setting.seed, reference.checkpoint
        said = [
            one
            for one in self._results.all_takes
            if one.text == text and (one.voice, one.setting.model, one.setting.seed, one.checkpoint) == around
        ]
        alike = next((one for one in said if one.setting.bare == reference.setting.bare), None)
        plain = next((one for one in said if not one.setting.techniques), None)
        found = alike or plain or next(iter(said), None)
        if found is not None:
            self.set_reference(found.id)
        if alike is None:
            self._notices.say("The reference's setting has not said this sentence; another is the reference.", "info")
            self._note_change()

    def _from_point(self) -> None:
        panel = self._tradeoff.tradeoff
        sound = None if panel is None else panel.details.sound
        if sound is None:
            raise SettingError("Select a point with audio in Trade-off first.")
        self._workspaces.go_to("take_grid")
        self.set_reference(sound.take)

    @property
    def _cursor(self) -> Cell:
        return built(self.take_grid).cells.cursor_cell

    def _known_at(self, cell: Cell) -> TakeSummary | None:
        return None if self.grid is None else self.grid.takes[cell[0]][cell[1]]

    def _take_at(self, cell: Cell) -> TakeSummary:
        take = self._known_at(cell)
        if take is None:
            raise SettingError("The cell is empty: press M to make its take first.")
        return take

    # --- Playing ------------------------------------------------------------------------------------------------------
    def _toggle(self, cell: Cell) -> None:
        take = self._take_at(cell)
        if reason := self._player.why_not_hear():
            raise SettingError(f"The take cannot be played: {reason}")
        if self.hearing.heard == take.id:
            self.hearing.stop()
        else:
            self.hearing.hear(take)

    def _pointed(self, *cell: int) -> None:
        """The mouse rests on a cell, or has left all."""
        if built(self.take_grid).hover_box.isChecked():
            take = self._known_at((cell[0], cell[1])) if cell else None
            if take is None:
                self.hearing.stop()
            else:
                self.hearing.hear(take)

    def _cursor_moved(self, row: int, column: int) -> None:
        """While a cell is heard, the cursor plays others."""
        take = self._known_at((row, column))
        if self.hearing.heard and take is not None:
            self.hearing.hear(take)

    def set_side(self, side: str, cell: Cell) -> None:
        """Compare a cell's take as ``"A"`` or ``"B"``. Raises :class:`PlainError` if it cannot be read."""
        take = self._results.take_reader(self._take_at(cell).id)()
        (self._state.comparison.set_a if side == "A" else self._state.comparison.set_b)(take)

    # --- Making ------------------------------------------------------------------------------------------------------
    def make(self, cells: Sequence[Cell]) -> None:
        """Make the takes of these cells, after a question if that takes minutes. Raises :class:`PlainError`."""
        grid, wanted, problem = self.grid, [], ""
        if grid is None:
            return
        for row, column in cells:
            asked = grid.asked[row][column]
            if grid.takes[row][column] is None:
                try:
                    if asked is None:
                        raise SettingError(grid.cell_in_words(row, column))
                    wanted.append(self._wanted(asked, grid))
                except PlainError as error:
                    problem = str(error)
        if not wanted and problem:
            raise SettingError(problem)
        if not wanted:
            return
        if problem:
            self._notices.warn(f"Not every cell can be made. {problem}")
        known = [one.measurements.seconds for line in grid.takes for one in line if one and one.measurements.seconds]
        seconds = len(wanted) * (median(known) if known else 10.0)
        if seconds <= LONG_SECONDS:
            self._making.ask(wanted)
            return
        question = (
            f"{counted(len(wanted), 'take', 'takes')} take about {rough_duration(seconds)}. "
            "That can be cancelled at any time (Esc)."
        )
        self._notices.ask(question, ("Make them",), lambda _: self._making.ask(wanted), "info")

    def _wanted(self, asked: Asked, grid: TakeGrid) -> Wanted:
        from paretone_app.features.take_grid.grid import MODEL

        setting, artefacts = self._results.prepared(asked.setting)
        reference = next((one for one in self._results.all_takes if one.id == self._reference), None)
        # A take with other weights does not fit the grid, unless the grid has several models.
        alike = reference is not None and MODEL not in (grid.rows.name, grid.columns.name)
        checkpoint = reference.checkpoint if reference is not None and alike else ""
        return wanted_take(self._state.selection, asked.text, asked.voice, setting, artefacts, checkpoint)


def _key(text: str, voice: str, setting: Setting) -> tuple[str, str, Setting, int]:
    """Identity of a take, artefacts ignored."""
    return text, voice, setting.bare, setting.seed
