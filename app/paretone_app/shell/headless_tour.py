"""The headless tour: the main job through the window's own actions, for machines without a display."""

import asyncio
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from paretone.errors import PlainError
from paretone_app.features.export import ExportPresenter
from paretone_app.features.feature import main_job
from paretone_app.features.player.presenter import PlayerPresenter
from paretone_app.features.takes.presenter import TakesPresenter
from paretone_app.numbers import percent
from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Outcome
from paretone_app.widgets.action import Action

PATIENCE_SECONDS = 1800


async def headless_tour(window: MainWindow, folder: Path, steps: int, say: Callable[[str], None]) -> None:
    """Make A and B, compare them and export everything to ``folder``. ``steps`` replaces the model's number of solver
    steps unless it is 0. Raises :class:`PlainError` with the reason if a job fails."""
    folder.mkdir(parents=True, exist_ok=True)
    window.resize(1440, 900)
    window.workspaces.default_layout()
    await make_takes(window, steps, say)
    take_a, take_b = window.state.comparison.take_a, window.state.comparison.take_b
    if take_a is None or take_b is None:
        raise PlainError("No takes were made.")
    window.workspaces.go_to("listen")
    wavs = window.features.find(TakesPresenter).save_wavs(folder)
    profile = folder / "profile.json"
    window.features.find(ExportPresenter).write(profile)
    await listen(window)
    window.notices.say("")
    window.workspaces.switch(window.workspaces.there[0])
    await asyncio.sleep(0.2)
    picture = folder / "window.png"
    window.grab().save(str(picture))
    for name, take in (("A", take_a), ("B", take_b)):
        measured = take.measurements
        say(
            f"{name}  {take.label:<22} RTF {measured.real_time_factor:.3f}   {measured.seconds:.2f} s for "
            f"{measured.audio_seconds:.2f} s of speech   {percent(measured.ops_ratio)} of the operations"
        )
    if take_b.log_mel_distance is not None:
        say(f"Log-mel distance of B to A: {take_b.log_mel_distance:.3f}")
    for path in (*wavs, profile, picture):
        say(f"Wrote {path}")
    say(f"Everything is in {folder.resolve()}")


async def started(window: MainWindow) -> None:
    """Wait until the panels are built and a model is loaded. Raises :class:`PlainError` on failure."""
    await until(lambda: window.is_built, window)
    await until(lambda: window.state.selection.ready or not window.jobs.busy, window)
    if not window.state.selection.ready:
        raise PlainError(window.notices.banner.text or "The bundled model could not be loaded.")


async def make_takes(window: MainWindow, steps: int, say: Callable[[str], None]) -> None:
    """Do the steps of the main job that make A and B. Raises :class:`PlainError` with the reason if a job fails."""
    await started(window)
    say(f"Device: {window.state.selection.loaded.device} · {window.state.machine.title}")
    if steps:
        window.state.selection.set_option("steps", steps)
    for step in takewhile(lambda one: one.action != "compare", main_job(window.declared)):
        action = window.action[step.action]
        say(f"{action.text().replace('&', '')}…")
        await perform(window, action)


async def listen(window: MainWindow) -> None:
    """Play A, switch to B in the middle, pause; no-op without a device. Raises :class:`PlainError` on failure."""
    deck = window.features.find(PlayerPresenter).deck
    player = deck.player
    if not player.usable:
        return
    # Until the takes are loaded, the position is that of the streamed synthesis.
    await until(lambda: not player.streaming and not player.playing and player.position == 0.0, window)
    heard = deck.heard
    window.action.compare.trigger()
    await until(lambda: bool(player.problem) or (player.playing and player.position > 0.8), window)
    window.action.compare.trigger()
    await until(lambda: bool(player.problem) or not player.playing or player.position > 1.6, window)
    window.action.play.trigger()
    if player.problem or deck.heard == heard:
        raise PlainError(player.problem or "The other take could not be played.")


async def perform(window: MainWindow, action: Action) -> None:
    """Trigger ``action`` and wait for its job. Raises :class:`PlainError` if it did not finish."""
    await until(lambda: not window.jobs.busy, window)
    if action.reason:
        raise PlainError(action.reason)
    await finished(window, action.trigger)


async def finished(window: MainWindow, begin: Callable[[], object]) -> None:
    """Call ``begin`` and wait for the job it starts. Raises :class:`PlainError` if it did not finish."""
    await until(lambda: not window.jobs.busy, window)
    ended: list[tuple[Outcome, str]] = []
    connection = window.jobs.ended.connect(lambda job, outcome, sentence: ended.append((outcome, sentence)))
    try:
        begin()
        await until(lambda: bool(ended) or not window.jobs.busy, window)
    finally:
        window.jobs.ended.disconnect(connection)
    if not ended or ended[0][0] is not Outcome.FINISHED:
        raise PlainError((ended[0][1] if ended else window.notices.banner.text) or "The job was cancelled.")


async def until(condition: Callable[[], bool], window: MainWindow, patience: float = PATIENCE_SECONDS) -> None:
    waited = 0.0
    while not condition():
        await asyncio.sleep(0.02)
        waited += 0.02
        if waited > patience:
            raise PlainError(f"No progress for {patience:g} s; the last status was: {window.status.text}")
