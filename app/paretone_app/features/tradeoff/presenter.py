"""The trade-off presenter: links the points with Takes, Strategy, A and B, and Setup."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from paretone.errors import SettingError
from paretone.models.base import LANGUAGE
from paretone.setting.take import Take
from paretone_app.audio.sound import Sound as PlayerSound
from paretone_app.audio.sound import is_silent
from paretone_app.features.lab.presenter import LabPresenter
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.presenter import Part, Presenter, Services, built
from paretone_app.features.studies.presenter import StudiesPresenter
from paretone_app.features.takes.panel import TakesPanel
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.results.reader import Results
from paretone_app.shell import file_dialogs
from paretone_app.shell.bridge import arrived
from paretone_app.state.app_state import AppState
from paretone_app.state.comparison import Comparison
from paretone_app.state.differences import family_of
from paretone_app.state.playing import Origin
from paretone_app.state.synthesis import why_not_loaded

if TYPE_CHECKING:
    from paretone_app.features.tradeoff.along_front import AlongFront
    from paretone_app.features.tradeoff.panel import TradeoffPanel
    from paretone_app.features.tradeoff.parallel_panel import ParallelPanel
    from paretone_app.results.points import Point, Sound
    from paretone_app.results.study import OpenStudy


_SETUP = "Setup"  # Mark of points with the setting in Setup.


class TradeoffLinks(QObject):
    """Synchronises the selection with Takes and Strategy; marks A, B and the setting in Setup."""

    followed = Signal()
    """A change elsewhere chose another point."""

    def __init__(self, panel: TradeoffPanel, results: Results, state: AppState, takes: TakesPanel) -> None:
        super().__init__(panel)
        self._panel, self._results, self._state, self._takes = panel, results, state, takes
        self._linking = False
        self._wanted: tuple[Point, ...] = ()
        self._follow_in_takes = QTimer(self, singleShot=True, interval=0)
        self._follow_in_takes.timeout.connect(self._select_takes)
        self._in_setup: tuple[str, str] | None = None
        panel.chosen.connect(self._point_chosen)
        panel.selection_changed.connect(self._points_selected)
        takes.table.selectionModel().selectionChanged.connect(self._takes_selected)
        state.comparison.changed.connect(self.show_sides)
        state.selection.changed.connect(self.show_setup)

    @contextmanager
    def _linked(self) -> Iterator[None]:
        """Within the block, ignore selections caused by this synchronisation."""
        before, self._linking = self._linking, True
        try:
            yield
        finally:
            self._linking = before

    # --- To others ----------------------------------------------------------------------------------------------------
    def _point_chosen(self, point: Point | None) -> None:
        self._state.artefacts.compare_with(self._results.table_of(point) if point is not None else None)

    def _points_selected(self, points: tuple[Point, ...]) -> None:
        """Select in Takes in a later turn, so that thousands of points are drawn first."""
        if not self._linking:
            self._wanted = points
            self._follow_in_takes.start()

    def _select_takes(self) -> None:
        with self._linked():
            self._takes.select(self._results.takes_of(self._wanted))

    # --- From others --------------------------------------------------------------------------------------------------
    def _takes_selected(self) -> None:
        if self._linking:
            return
        selected = self._takes.selected()
        with self._linked():
            self._panel.select(self._results.of_takes({one.id for one in selected}, self._panel.scene.index.keys()))
        point = self._panel.plot.current
        if len(selected) == 1 and point is not None:
            self._state.artefacts.compare_with(self._results.table_of(point))
        self.followed.emit()

    def show_sides(self) -> None:
        """Mark A, B and the setting in Setup; A is also the reference for differences."""
        from paretone_app.features.tradeoff.words import Reference

        a, b = self._state.comparison.take_a, self._state.comparison.take_b
        self._panel.set_a(None if a is None else Reference("A", a.setting, a.text, a.voice, a.id))
        marks = dict.fromkeys(self._results.of_setup(), _SETUP)
        for side, take in (("A", a), ("B", b)):
            for key in () if take is None else self._results.of_take.get(take.id, ()):
                marks[key] = f"{marks[key]}/{side}" if marks.get(key, _SETUP) != _SETUP else side
        self._panel.plot.marks.set_letters(marks)

    def show_setup(self) -> None:
        self._panel.when_seen(self._show_setup)

    def _show_setup(self) -> None:
        """Choose the point of the setting in Setup and Strategy, as soon as it exists."""
        self.show_sides()
        setup = self._results.setup
        if setup == self._in_setup:
            return
        first, self._in_setup = self._in_setup is None, setup
        found = [] if first else self._results.of_setup()
        if found:
            with self._linked():
                self._panel.choose(found[0])
            self.followed.emit()


REST_MILLISECONDS = 150
"""How long a point stays chosen before its take is read, to skip points on the way."""


class ChosenTake(QObject):
    """Passes the chosen point's take to Decoding, for language models."""

    def __init__(self, panel: TradeoffPanel, results: Results, comparison: Comparison, player: PlayerPresenter) -> None:
        super().__init__(panel)
        self._panel, self._results, self._comparison, self._player = panel, results, comparison, player
        self._wanted = ""
        self._rest = QTimer(self, singleShot=True, interval=REST_MILLISECONDS)
        self._rest.timeout.connect(self._read)
        for signal in (panel.chosen, panel.scene_changed, panel.details.sentence.activated):
            signal.connect(lambda: self._rest.start())

    def _read(self) -> None:
        point, sound = self._panel.plot.current, self._panel.details.sound
        seen = point is not None and point.setting is not None and family_of(point.setting) == LANGUAGE
        if not seen or sound is None:
            self._wanted = ""
            self._comparison.set_chosen(None)
        elif sound.take != self._wanted:
            self._wanted = wanted = sound.take
            take = self._results.take_reader(wanted)
            self._player.deck.analyser.background.run(take, lambda found: self._take_over(wanted, found))

    def _take_over(self, wanted: str, found: Take | BaseException) -> None:
        if wanted == self._wanted:
            # Playback reports unreadable takes.
            self._comparison.set_chosen(found if arrived(found, lambda _: None) else None)


_SHOWN = "tradeoff/shown"
_LOOKS = tuple(f"point_{one}" for one in ("dominated", "intervals", "ratios", "published", "log_x", "log_y"))
"""Actions that switch options of the plot."""


class TradeoffPresenter(Presenter):
    """Owns Trade-off. Nothing is read before the panel is visible."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        find = services.features.find
        self._player, self._takes = find(PlayerPresenter), find(TakesPresenter)
        self._lab, self._of_studies = find(LabPresenter), find(StudiesPresenter)
        self._settings = services.settings
        self._links: TradeoffLinks | None = None
        self._shown: tuple[object, object] = None, None  # The points and staircases that the panel shows.
        self.along: AlongFront | None = None
        self.tradeoff: TradeoffPanel | None = None
        self.parallel: ParallelPanel | None = None
        self.later = {"tradeoff": self._build_tradeoff, "parallel": self._build_parallel}
        self._state.playing.changed.connect(self._show_playing)
        self._bind()

    def _bind(self) -> None:
        actions, panel = self._actions, lambda: built(self.tradeoff)
        of_points: dict[str, Callable[[], object]] = {
            "front_back": lambda: panel().plot.walk(-1),
            "front_on": lambda: panel().plot.walk(1),
            "point_nearer": lambda: panel().plot.zoom(panel().plot.nearer),
            "point_farther": lambda: panel().plot.zoom(panel().plot.farther),
            "point_everything": lambda: panel().plot.show_everything(),
            "selection_save": self._ask_where_to_save_selection,
            "selection_open": partial(
                self._ask_for_file, "Open a selection of points", file_dialogs.JSON, self.open_selection
            ),
            "front_play": partial(self._do_along, lambda along: along.toggle()),
            "front_mark": partial(self._do_along, lambda along: along.mark()),
            "front_heard": partial(self._do_along, lambda along: along.find()),
            **{f"point_{ending}": partial(self._ask_for_sheet, ending) for ending in file_dialogs.PLOTS},
        }
        empty = lambda: "" if built(self.tradeoff).scene.points else "There are no points."  # noqa: E731
        for name, do in of_points.items():
            actions.bind(actions[name], do, lambda: self._why_not_built() or empty())
        actions.bind(actions["shown_study"], self.study_within, self._why_not_within)
        why_not = lambda: self._why_not_built() or ("" if self.along is None else self.along.why_not_rank())  # noqa: E731
        actions.bind(actions["shown_rank"], self._rank, why_not)
        of_point: dict[str, tuple[Callable[[Point, Sound | None], object], Callable[[], str]]] = {
            "point_hear": (self.hear, self._player.why_not_hear),
            "point_a": (partial(self.set_side, "A"), str),
            "point_b": (partial(self.set_side, "B"), str),
            "point_keep": (self.keep, self._why_not_keep),
            "point_use": (self.use, self._why_not_use),
        }
        for name, (of, why_not) in of_point.items():
            actions.bind(actions[name], partial(self._with_point, of), self._why_not_heard)
            actions[name].explain(why_not)
        for name in _LOOKS:
            actions[name].explain(self._why_not_built)
        self._own = {name: actions[name] for name in (*_LOOKS, *of_points, *of_point, "shown_study", "shown_rank")}
        self._open = actions.add(
            "&Open study…",
            lambda: self._ask_for_folder("Folder of a study’s results", self.open_study),
            "Open the folder of a finished study",
        )

    def _with_point(self, do: Callable[[Point, Sound | None], object]) -> None:
        panel = built(self.tradeoff)
        if panel.plot.current is not None:
            do(panel.plot.current, panel.details.sound)

    def _why_not_built(self) -> str:
        return "" if self.tradeoff is not None else "Trade-off is not there yet."

    def _why_not_within(self) -> str:
        brushed = self.tradeoff is not None and self.tradeoff.filter.ranges
        return "" if brushed else "Brush ranges on Parallel axes first."

    def _why_not_heard(self) -> str:
        point = self.tradeoff.plot.current if self.tradeoff is not None else None
        return "Select a point first." if point is None else _why_silent(point)

    def _why_not_keep(self) -> str:
        panel = built(self.tradeoff)
        point, sound = panel.plot.current, panel.details.sound
        of_study = point is not None and point.folder is not None
        kept = not of_study or (sound is not None and sound.take in self._results.taken)
        return "This take is already in Takes." if kept else ""

    def _why_not_use(self) -> str:
        point = built(self.tradeoff).plot.current
        if point is not None and point.setting is None and point.sounds:
            return "A server runs elsewhere; Setup has settings of models that are loaded here."
        if point is None or point.setting is None or point.setting.model == self._state.selection.model_id:
            return ""
        return f"The point is from {point.model}. {why_not_loaded(point.setting.model)}"

    def refresh(self) -> None:
        for action in self._own.values():
            action.refresh()

    def _show_playing(self) -> None:
        now = self._state.playing.now
        if self.tradeoff is not None:
            self.tradeoff.details.show_playing(now.key if now.origin is Origin.SOUND and now.sounding else "")

    def _do_along(self, do: Callable[[AlongFront], object]) -> None:
        if self.along is not None:
            try:
                do(self.along)
            finally:
                self._show_along()

    def _rank(self) -> None:
        self._do_along(lambda along: along.rank())

    def _show_along(self) -> None:
        self._actions["front_play"].setChecked(self.along is not None and self.along.row.on)

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        panel, example = built(self.tradeoff), self._actions["open_example"]
        before = panel.plot.current

        def walked() -> bool:
            point = panel.plot.current
            return point is not None and (before is None or point.key != before.key)

        return (
            Part(
                "open the example, a finished study (Ctrl+Alt+E).",
                lambda: panel.pages.empty.buttons[0] if panel.invitation else panel.open_button,
                # Takes are points too, and vanish when the study's points arrive.
                lambda: any(point.folder in self._results.studies for point in panel.scene.points),
                example.trigger,
                lambda: "" if example.isEnabled() else example.toolTip(),
            ),
            Part(
                "click a point on the line, or go from one to the next with the right and left arrow keys.",
                lambda: panel.plot,
                walked,
                lambda: panel.plot.walk(1),
            ),
        )

    def _build_tradeoff(self) -> QWidget:
        from paretone_app.features.tradeoff.along_front import AlongFront, FrontRow
        from paretone_app.features.tradeoff.panel import TradeoffPanel
        from paretone_app.results.points import published_points

        can = {**self._own, "open": self._open}
        self.tradeoff = panel = TradeoffPanel(self._theme.colours, can, published_points())
        self._results.watch(panel)
        self._results.points_changed.connect(partial(panel.when_seen, self._show_points))
        panel.pages.offer(self._actions["open_example"], "Open example")
        panel.pages.offer(self._open)
        attempt = self._actions.attempt
        panel.plot.activated.connect(lambda: attempt(partial(self._with_point, self.hear)))
        panel.plot.side_chosen.connect(lambda side: attempt(partial(self._with_point, partial(self.set_side, side))))
        panel.plot.marked.connect(self._actions["front_mark"].trigger)
        panel.recall(str(self._settings.value(_SHOWN, "")))
        panel.scene_changed.connect(self.refresh)
        # At once, to survive a crash.
        panel.scene_changed.connect(lambda: self._settings.setValue(_SHOWN, panel.remembered))
        panel.details.sentence.activated.connect(self.refresh)
        self._links = TradeoffLinks(panel, self._results, self._state, self._takes.takes)
        row = FrontRow(self._results, self._player, self._state, self)
        row.failed.connect(lambda sentence: self._notices.say(sentence, "error"))
        row.changed.connect(self._show_along)
        self.along = AlongFront(panel, row, self._lab, self._state.undo_stack)
        ChosenTake(panel, self._results, self._state.comparison, self._player)
        for signal in (panel.chosen, panel.selection_changed, self._links.followed):
            signal.connect(self.refresh)
        self._state.selection.changed.connect(self._suit)
        self._suit()
        self._links.show_setup()
        if self.parallel is not None:
            self.parallel.follow(panel)
        return panel

    def study_within(self) -> None:
        """Start a study within the brushed ranges. Raises :class:`SettingError` if they make none."""
        from paretone_app.features.tradeoff.parallel import parallel, within

        panel = built(self.tradeoff)
        self._of_studies.begin_within(within(parallel(panel.pool, panel.filter)))

    def _build_parallel(self) -> ParallelPanel:
        from paretone_app.features.tradeoff.parallel_panel import ParallelPanel

        rank, study = self._actions["shown_rank"], self._actions["shown_study"]
        self.parallel = ParallelPanel(self._theme.colours, self._state.undo_stack, rank, study)
        self.parallel.follow(self.tradeoff)
        self.parallel.axes.activated.connect(lambda: self._actions.attempt(self._rank))
        self._results.watch(self.parallel)
        self._results.points_changed.connect(partial(self.parallel.when_seen, self._show_points))
        return self.parallel

    def _suit(self) -> None:
        if self._state.selection.ready:
            built(self.tradeoff).suit(self._state.selection.entry.title)

    def _show_points(self) -> None:
        now, before = (self._results.points, self._results.heard), self._shown
        if self._links is not None and any(one is not other for one, other in zip(now, before, strict=True)):
            self._shown = now
            built(self.tradeoff).show_points(*now)
            self._links.show_sides()
            self.refresh()

    # --- Opening -----------------------------------------------------------------------------------------------------
    def open_study(self, folder: Path) -> None:
        """Show the study in ``folder`` and bring the panel to the front."""

        def opened(study: OpenStudy) -> None:
            if study.results is None:
                # It stays open there, to set damaged results aside.
                self._notices.say(f"{study.folder_problem} Open it in the panel Studies.".strip(), "error")

        self._workspaces.bring_forward("tradeoff")
        self._of_studies.opened.open(folder, in_front=False, then=opened)

    # --- Files -------------------------------------------------------------------------------------------------------
    def _ask_for_sheet(self, ending: str) -> None:
        name = f"trade-off.{ending}"
        self._ask_where_to_write("Save the trade-off view", file_dialogs.PLOTS[ending], name, self.write)

    def write(self, path: Path) -> None:
        """Write the view in the format of ``path``'s suffix. Raises :class:`PlainError` on failure."""
        built(self.tradeoff).write(path)
        self._notices.note(f"Wrote {path}")

    def _ask_where_to_save_selection(self) -> None:
        _ = built(self.tradeoff).selection  # Raises if there is none.
        self._ask_where_to_write("Save the selection", file_dialogs.JSON, "selection.json", self.save_selection)

    def save_selection(self, path: Path) -> None:
        """Write the selected points of studies. Raises :class:`PlainError` on failure."""
        from paretone_app.features.tradeoff import saved

        saved.write(built(self.tradeoff).selection, path)
        self._notices.note(f"Wrote {path}")

    def open_selection(self, path: Path) -> None:
        """Apply a saved selection. Raises :class:`SettingError` if it is unreadable or none of its points is here."""
        from paretone_app.features.tradeoff import saved

        if remark := built(self.tradeoff).take_up(saved.read(path)):
            self._notices.warn(remark)

    # --- Actions on a point -------------------------------------------------------------------------------------------
    def hear(self, point: Point, sound: Sound | None) -> None:
        """Play one of a point's takes, or stop it. Raises :class:`PlainError` on failure."""
        if self.along is not None and self.along.has_arrived(point):
            return
        sound = _audible(point, sound)
        if reason := self._player.why_not_hear():
            raise SettingError(f"The point cannot be played: {reason}")
        if self._player.sounds(sound.take):
            self._player.player.pause()
            return
        take = self._results.take_of(point, sound)
        source = f"Study “{point.source}”" if point.folder is not None else "Take"
        title = " · ".join((source, point.title, point.model))
        if is_silent(take.samples):
            self._notices.warn(f"{title} is silent: there is nothing to hear in this take.")
        self._player.hear_sound(PlayerSound(take.samples, take.sample_rate, title, sound.text, sound.take))

    def set_side(self, side: str, point: Point, sound: Sound | None) -> None:
        """Compare one of a point's takes as ``"A"`` or ``"B"``. Raises :class:`PlainError` if it cannot be read."""
        take = self._results.take_of(point, _audible(point, sound))
        (self._state.comparison.set_a if side == "A" else self._state.comparison.set_b)(take)

    def keep(self, point: Point, sound: Sound | None) -> None:
        """Copy a study's take into the library. Raises :class:`PlainError` on failure."""
        self._results.takes.add(self._results.take_of(point, _audible(point, sound)))
        self._notices.say(f"Added “{point.title}” to Takes.", "info")

    def use(self, point: Point, sound: Sound | None) -> None:
        """Load a point's setting into Setup, with its strategy table. Raises :class:`PlainError` on failure."""
        take, table = self._results.take_of(point, _audible(point, sound)), self._results.table_of(point)
        if caution := self._state.editing.use_setting(take):
            self._notices.warn(caution)
        if table is not None:
            self._state.artefacts.adopt(take.setting, table, f"use table of {point.title}")
        self._workspaces.go_to("setup")


def _why_silent(point: Point) -> str:
    """Why ``point`` has no audio, as a sentence, or ``""``."""
    if point.sounds:
        return ""
    if point.published:
        return f"{point.title} was measured by others: there is no audio of it."
    done = "no take of it is finished yet" if not point.finished else "its takes are without audio"
    return f"{point.title} cannot be heard: {done}."


def _audible(point: Point, sound: Sound | None) -> Sound:
    """``sound`` of ``point``. Raises :class:`SettingError` with the reason if it is missing."""
    if sound is None:
        raise SettingError(_why_silent(point))
    return sound
