"""The official packages, in an environment that ``dev.py`` makes once with ``python -m tests.official``."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock

from tests.peers import official

ROOT = Path(__file__).resolve().parents[1]
FOLDER = official.default_folder()
"""The environment of F5-TTS."""


def python(package: official.Package = official.F5) -> Path:
    """The Python of a package's environment. Skips the test if the registry cannot be reached, and only then."""
    return _python(package.name)


@cache
def _python(name: str) -> Path:
    package = official.PACKAGES[name]
    folder = official.default_folder(package)
    return _made(folder, lambda: official.environment(_say, folder, package))


@cache
def packages(name: str, *requirements: str) -> Path:
    """A folder with more packages for that Python, without what they require."""
    folder, wanted = FOLDER.with_name(name), "\n".join(requirements)
    ready = folder / "requirements.txt"
    python()

    def made() -> Path:
        if not ready.is_file() or ready.read_text(encoding="utf-8") != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            official.install(FOLDER, ["--no-deps", "--target", str(folder), *requirements], _say)
            ready.write_text(wanted, encoding="utf-8")
        return folder

    return _made(folder, made)


def omnivoice() -> Path:
    """A folder with OmniVoice, which asks for nothing that F5-TTS's environment lacks."""
    wanted = official.OMNIVOICE
    assert set(wanted.dependencies) <= set(official.F5.dependencies)
    return packages(f"{wanted.name}-{wanted.version}-alone", wanted.pinned)


def run(module: str, *arguments: str, path: Path | None = None) -> dict:
    """JSON that ``module`` prints when the environment's Python runs it, with the packages in ``path``."""
    command = [str(python()), "-m", module, *arguments]
    environment = os.environ if path is None else {**os.environ, "PYTHONPATH": str(path)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def _made(folder: Path, make: Callable[[], Path]) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):  # Tests run in several processes: one makes it, the others wait.
        try:
            return make()
        except official.RegistryUnreachable as error:
            pytest.skip(str(error))


def _say(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    with suppress(pytest.skip.Exception):
        python()
