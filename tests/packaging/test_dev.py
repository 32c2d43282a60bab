"""The set-up script: what it looks for, what it would do, and what it says when it cannot."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.collecting import DIVIDED, LONGEST_FILES

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "packaging" / "dev.py"
MOST_UNSTEADY = 0
"""Most entries of the list of unsteady tests, lowered whenever one is mended: the list only becomes shorter."""


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module that works in a folder of its own, with the repository's own declarations."""
    monkeypatch.syspath_prepend(SCRIPT.parent)
    module = import_module("dev")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "ENVIRONMENT", tmp_path / ".venv")
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    return module


@pytest.fixture
def installed(dev: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that the script would have run to install things."""
    commands: list[list[str]] = []
    monkeypatch.setattr(dev, "quietly", lambda command, failure, environment=None: commands.append(list(command)))
    return commands


def environment(dev: ModuleType) -> None:
    """A virtual environment without anything in it, as an interrupted set-up leaves it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(dev.ENVIRONMENT)], check=True)


def test_everything_is_installed_once(dev: ModuleType, installed: list[list[str]]) -> None:
    """Testing adds to what running needs."""
    environment(dev)
    dev.prepare_environment(("download",))
    assert [command[1:4] for command in installed] == [["-m", "pip", "install"]] * 2
    assert all(str(dev.CONSTRAINTS) in command for command in installed)
    assert any(part.startswith(f"torch=={dev.pinned('torch')}") for part in installed[0])
    assert installed[1][-1] == ".[download]"
    dev.prepare_environment(("download",))
    assert len(installed) == 2
    dev.prepare_environment(("judge",))
    assert installed[3][-1] == ".[download,judge]"
    assert installed[4][-3:] == ["--no-deps", "distillmos==0.9.1", "resemblyzer==0.1.4"]
    dev.prepare_environment(("download",))
    assert len(installed) == 5


def test_an_interrupted_installation_is_done_again(
    dev: ModuleType, installed: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(dev)
    dev.prepare_environment(("download",))
    (dev.ROOT / "pyproject.toml").write_text("changed")

    def broken(*arguments: object) -> None:
        raise dev.SetUpError("no network")

    with monkeypatch.context() as patched:
        patched.setattr(dev, "quietly", broken)
        with pytest.raises(dev.SetUpError):
            dev.prepare_environment(("download",))
    # Back to what was installed completely once: nobody knows any more what the environment holds.
    (dev.ROOT / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    dev.prepare_environment(("download",))
    assert len(installed) == 4


def test_an_environment_that_cannot_be_used_is_replaced(dev: ModuleType, installed: list[list[str]]) -> None:
    environment(dev)
    dev.environment_python().unlink()
    assert dev.python_version(dev.environment_python()) is None
    dev.create_environment()
    assert not dev.ENVIRONMENT.exists()
    (command,) = installed
    assert command[1:] == ["-m", "venv", str(dev.ENVIRONMENT)]
    assert dev.python_version(Path(command[0])) is not None
    assert dev.can_create_environments(Path(command[0]))


def test_a_python_that_is_missing_or_without_venv_is_named(dev: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(dev, "candidates", lambda: [Path("/no/python")])
        with pytest.raises(dev.SetUpError, match=r"No Python from 3\.11 to 3\.13 was found .* Install Python"):
            dev.find_python()
    monkeypatch.setattr(dev, "can_create_environments", lambda python: False)
    monkeypatch.setattr(dev.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(dev.os, "geteuid", lambda: 1000)
    with pytest.raises(dev.SetUpError, match=r"lacks the modules venv and ensurepip.*apt-get install python3-venv"):
        dev.find_python()


# --- System packages --------------------------------------------------------------------------------------------------
def test_needs_are_found_by_library_program_or_path(
    dev: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fonts" / "a").mkdir(parents=True)
    (tmp_path / "fonts" / "a" / "Font.ttf").write_text("")
    libraries = "\tlibEGL.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libEGL.so.1\n"
    needs = [
        dev.Need("egl", "libEGL.so.1"),
        dev.Need("jack", "libjack.so.0"),
        dev.Need("python", Path(sys.executable).name),
        dev.Need("nothing", "no-such-program"),
        dev.Need("font", f"{tmp_path}/fonts/*/Font.ttf"),
        dev.Need("other font", f"{tmp_path}/fonts/*/Other.ttf"),
    ]
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    assert [need.package for need in dev.missing(needs, libraries)] == ["jack", "nothing", "other font"]


def test_root_gets_system_packages_installed_and_others_the_command(
    dev: ModuleType, installed: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a Debian machine that lacks everything."""
    monkeypatch.setattr(dev.sys, "platform", "linux")
    monkeypatch.setattr(dev, "shared_libraries", lambda: "")
    monkeypatch.setattr(dev.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    needs = [dev.Need("libportaudio2", "libportaudio.so.2"), dev.Need("xvfb", "Xvfb")]
    monkeypatch.setattr(dev.os, "geteuid", lambda: 1000)
    dev.prepare_system(needs)
    assert installed == [] and "sudo apt-get install libportaudio2 xvfb" in capsys.readouterr().out
    monkeypatch.setattr(dev.os, "geteuid", lambda: 0)
    dev.prepare_system(needs)
    assert [command[:2] for command in installed] == [["apt-get", "update"], ["apt-get", "install"]]
    assert installed[1][-2:] == ["libportaudio2", "xvfb"]


def test_a_failed_command_shows_what_it_said(dev: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(dev.SetUpError, match="It did not work"):
        dev.quietly([sys.executable, "-c", "print('the reason'); raise SystemExit(3)"], "It did not work.")
    assert "the reason" in capsys.readouterr().err
    with pytest.raises(dev.SetUpError, match=r"It did not work\. \(no-such-program"):
        dev.quietly(["no-such-program"], "It did not work.")


@pytest.mark.parametrize("failures", [1, 3])
def test_what_is_fetched_is_tried_again(dev: ModuleType, tmp_path: Path, failures: int) -> None:
    log = tmp_path / "tries"
    code = f"f = open({str(log)!r}, 'a+'); f.write('x'); f.seek(0); raise SystemExit(len(f.read()) <= {failures})"
    command = [sys.executable, "-c", code]
    if failures < dev.TRIES:
        dev.patiently(command, "No network.")
    else:
        with pytest.raises(dev.SetUpError, match="No network"):
            dev.patiently(command, "No network.")
    assert len(log.read_text()) == min(failures + 1, dev.TRIES)


# --- Running and testing ----------------------------------------------------------------------------------------------
@pytest.fixture
def started(dev: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    """The commands that the script would have started, with their environments."""
    found = []

    def start(command: list[str], **more: object) -> subprocess.CompletedProcess:
        found.append((command, more["env"]))
        return subprocess.CompletedProcess(command, 1 if "ruff" in command else 0)

    monkeypatch.setattr(dev.subprocess, "run", start)
    return found


def test_running_with_and_without_a_display(
    dev: ModuleType, started: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev, "has_display", lambda variables: True)
    assert dev.run(["--steps", "4"]) == 0
    assert started[-1][0][1:] == ["-m", "paretone_app", "--steps", "4"]
    monkeypatch.setattr(dev, "has_display", lambda variables: False)
    dev.run([])
    *_, option, folder = started[-1][0]
    assert option == "--headless-tour"
    assert Path(folder).is_dir()
    assert started[-1][1]["QT_QPA_PLATFORM"] == "offscreen"
    dev.run(["--headless-tour", "mine"])
    assert started[-1][0][1:] == ["-m", "paretone_app", "--headless-tour", "mine"]


def test_one_failed_check_fails_the_whole_but_stops_nothing(
    dev: ModuleType, started: list, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert dev.test([]) == 1
    aside = [command for command, _ in started if "pytest" not in command]
    (tests,) = [command for command, _ in started if "pytest" in command]
    assert all(command[: len(dev.aside())] == dev.aside() for command in aside), "tests come first"
    done = [command[len(dev.aside()) :] for command in aside] + [tests]
    names = [Path(command[0]).name if "-m" not in command else command[2] for command in done]
    assert sorted(names) == ["lint-imports", "mypy", "pytest", "ruff", "ruff", "tests.official"]
    assert {environment["OMP_NUM_THREADS"] for _, environment in started} == {"1"}
    assert not any("PYTHONDONTWRITEBYTECODE" in environment for _, environment in started)
    assert tests[3:] == ["-q", "--durations=15", *dev.sharing()]
    captured = capsys.readouterr()
    assert "- Style FAILED (exit code 1)" in captured.out
    assert "- Import contracts passed" in captured.out
    assert captured.err.endswith("\nFAILED: Style, Format\n")
    dev.test(["--thorough"])
    assert [command[-1] for command, _ in started if "pytest" in command][1] == "--thorough"
    dev.test(["tests/engine", "-x"])
    assert started[-1][0][1:] == ["-m", "pytest", "tests/engine", "-x"]


def test_files_that_come_first_or_are_divided_are_there() -> None:
    assert [one for one in (*(f"tests/{name}" for name in LONGEST_FILES), *DIVIDED) if not (ROOT / one).is_file()] == []


@pytest.fixture
def project(dev: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose tests are really run, by the interpreter of these."""
    (dev.ROOT / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    monkeypatch.setattr(dev, "environment_python", lambda: Path(sys.executable))
    monkeypatch.setattr(dev, "checks", lambda given: [("Tests", [sys.executable, "-m", "pytest", "-q", *given])])
    return dev.ROOT


UNSTEADY = """
from pathlib import Path
import pytest
@pytest.mark.parametrize("number", range({count}))
def test_it(number):
    before = Path(f"before-{{number}}")
    assert before.exists() or before.write_text("") == 1
"""


@pytest.mark.parametrize("by_name", [False, True])
def test_few_failures_are_run_once_more_and_named(
    dev: ModuleType, project: Path, capfd: pytest.CaptureFixture[str], by_name: bool
) -> None:
    (project / "test_unsteady.py").write_text(UNSTEADY.format(count=1 if by_name else 2))
    (project / "test_steady.py").write_text("def test_it(): pass")
    (project / dev.LAST_FAILED).parent.mkdir(parents=True)
    (project / dev.LAST_FAILED).write_text('{"test_gone.py::test_it": true}')
    (project / dev.UNSTEADY).parent.mkdir()
    (project / dev.UNSTEADY).write_text("# A list\ntest_unsteady.py::test_it[1]  # 2026-11-28 waits for a file\n")
    assert dev.test(["test_unsteady.py"] if by_name else []) == by_name
    error = capfd.readouterr().err
    assert ("UNSTEADY" in error) == ("NEW" in error) == (not by_name)
    if not by_name:
        both, new = (line for line in error.splitlines() if "test_it" in line)
        assert "test_it[0]" in both and "test_it[1]" in both
        assert "test_it[0]" in new and "test_it[1]" not in new, "the other one is known"


def test_the_list_of_unsteady_tests_is_short_and_names_tests_that_there_are(dev: ModuleType) -> None:
    """One test a line, with the day of its entry and the reason."""
    lines = [one for one in (ROOT / dev.UNSTEADY).read_text(encoding="utf-8").splitlines() if one[:1] not in ("", "#")]
    assert lines == sorted(set(lines)) and len(lines) <= MOST_UNSTEADY
    for line in lines:
        found = re.fullmatch(r"(tests/\S+\.py)::(test_\w+)(?:\[.+\])?  # \d{4}-\d\d-\d\d \S.*", line)
        assert found, line
        assert f"def {found[2]}(" in (ROOT / found[1]).read_text(encoding="utf-8"), line


def test_what_fails_twice_has_failed_and_the_last_line_names_checks_and_tests(
    dev: ModuleType, project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "test_wrong.py").write_text("def test_it(): assert False")
    tests = dev.checks([])
    types = ("Types", [sys.executable, "-c", "exit('a.py:1: error')"])
    monkeypatch.setattr(dev, "checks", lambda given: [types, *tests])
    assert dev.test([]) == 1
    said = capfd.readouterr().err
    assert "\nTypes:\na.py:1: error\n" in said and "UNSTEADY" not in said, "it failed twice"
    assert said.endswith("\nFAILED: Types, test_wrong.py::test_it, Tests (exit code 1)\n")


def test_without_a_command_it_explains_itself() -> None:
    for arguments, code in ((["--help"], 0), (["dance"], 2)):
        done = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert "packaging/dev.py run" in done.stdout
