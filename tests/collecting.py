"""The processes that share the tests share the work of getting ready, too.

The first time, and whenever many files have changed, pytest takes seconds to rewrite the assertions of all test files,
and Python to compile all modules. Each process needs the result, which whoever is first leaves on the disk. So each
begins with other files than the rest, and finds most of the others done.

Libraries that the tests of each process need come before the test files: as soon as Qt is there, its own hook reads the
source of each module that is imported, thousands of them.
"""

from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).resolve().parents[1]
BEFORE_QT = ("torch._dynamo", "transformers.models.qwen3.modeling_qwen3")
"""What optimisers import when the first is made, and masked models when the first is compared."""

LONGEST_FILES = (
    "documents/test_commands.py",
    "app/features/studies/test_presenter.py",
    "packaging/test_wheel.py",
    "end_to_end/test_main_job.py",
    "app/features/tradeoff/test_presenter.py",
    "end_to_end/test_by_ear.py",
    "engine/test_notebook.py",
    "engine/test_cli_flow.py",
    "app/features/lab/test_presenter.py",
    "engine/commands/test_speak.py",
    "app/shell/test_window.py",
    "engine/front_end/test_transcripts.py",
    "documents/test_python_blocks.py",
    "app/shell/test_sessions.py",
    "app/test_processes.py",
    "app/features/test_language.py",
    "test_walks.py",
    "engine/techniques/guidance_free/test_recipe.py",
    "engine/training/test_companions.py",
    "app/shell/test_theme.py",
    "plugins/test_tutorial.py",
    "engine/export/programs/test_transformers.py",
    "app/features/setup/test_panel.py",
    "end_to_end/test_other_models_in_the_window.py",
    "engine/techniques/spade/test_measuring.py",
    "app/features/training/test_presenter.py",
    "engine/models/minis/test_endings.py",
)
"""Files of five seconds and more, the longest first; those that mostly wait before those that compute, and those that
need the official packages once these are there. Below ``tests``."""
DIVIDED = ("tests/documents/test_commands.py",)
"""Files whose tests share next to nothing and together take longer than any other file."""


class ByFile(LoadFileScheduling):
    """Each file's tests run in one process, since they share what the file prepares; those of :data:`DIVIDED` run
    wherever there is time, such as the printed commands of one page."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.startswith(DIVIDED) else super()._split_scope(nodeid)


def import_in_turns(config: pytest.Config) -> None:
    """In a process that shares all tests with others, import the test files, beginning with its own share."""
    given = getattr(config, "workerinput", None)
    if given is None or config.getoption("file_or_dir"):
        return
    for name in BEFORE_QT:
        with suppress(ImportError):
            import_module(name)
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    first = len(files) * int(given["workerid"].removeprefix("gw")) // given["workercount"]
    for file in (*files[first:], *files[:first]):
        # A file that cannot be imported, or is to be skipped, says so when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
