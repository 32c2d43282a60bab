"""Windows with a small model of another family than flow."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pytestqt.qtbot import QtBot

from paretone_app.shell.window import MainWindow
from paretone_app.state.jobs import Kind, Outcome
from tests.app.conftest import PATIENCE_MILLISECONDS, MakeWindow, close, loading

PATIENCE = 10 * PATIENCE_MILLISECONDS


@contextmanager
def window_with(
    name: str,
    root: Path,
    text: str,
    options: Mapping[str, object],
    make_window: MakeWindow,
    qtbot: QtBot,
    parts: str = "",
) -> Iterator[MainWindow]:
    """A window in which the model called ``name`` is loaded from ``root``. It starts with the small flow model."""
    made = make_window(loading(name), parts=parts)
    made.show()
    qtbot.waitUntil(lambda: made.is_built and not made.jobs.busy, timeout=PATIENCE)
    choose(made, name, root, text, options, qtbot)
    yield made
    close(made, qtbot)


def choose(window: MainWindow, name: str, root: Path, text: str, options: Mapping[str, object], qtbot: QtBot) -> None:
    """Load the model called ``name`` from ``root``; choose ``text`` and ``options`` for it."""
    window.state.loading.load_model(name, str(root), device="cpu")
    qtbot.waitUntil(lambda: window.state.selection.ready and not window.jobs.busy, timeout=PATIENCE)
    window.state.selection.set_text(text)
    for option, value in options.items():
        window.state.selection.set_option(option, value)


def ended(window: MainWindow, qtbot: QtBot, start: Callable[[], object]) -> tuple[Kind, Outcome, str]:
    """Kind, outcome and message of the job that ``start`` starts."""
    with qtbot.waitSignal(window.jobs.ended, timeout=PATIENCE) as signal:
        start()
    job, outcome, sentence = signal.args
    return job.kind, outcome, sentence
