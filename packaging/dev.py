"""Set Paretone up and run it, or test it, with one command each, on Linux, macOS and Windows:

    python3 packaging/dev.py run  [arguments of the application]
    python3 packaging/dev.py test [--thorough | arguments of pytest]

``run`` opens the application; if there is no display it makes the headless tour instead. ``test`` runs the style
checks, the import contracts, the type checker and every test, in eight minutes on two cores. With ``--thorough``, tests
repeat in full what must hold every time (fifty closed windows, for example), work on longer texts and trainings and
compare with the official packages; with other arguments it runs only pytest, with these. What only ``--thorough`` runs
is listed in ``resources/docs/tests.md``. Both first bring ``.venv`` and the system's libraries up to date, which takes
minutes the first time and nothing after that.

Needs nothing but the standard library, and starts on any Python 3.8 or newer to say so when a newer one is missing.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
CONSTRAINTS = ROOT / "packaging" / "constraints.txt"
OLDEST, NEWEST = (3, 11), (3, 13)
EXTRAS = {
    "run": ("app", "chinese", "download", "judge", "search", "train"),
    "test": ("app", "chinese", "dev", "download", "judge", "search", "train"),
}
JUDGES = ("distillmos", "resemblyzer")
"""Packages whose weights the extra ``judge`` reads. They are installed without what they ask for: none of their code is
imported."""
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's own index of builds without CUDA; asked only where no other place that pip knows has one."""
LAST_FAILED = Path(".pytest_cache", "v", "cache", "lastfailed")
"""Pytest's list of failed tests, relative to the repository's root."""
FAILURES = 1
"""Pytest's exit code when tests failed, and nothing worse happened."""
THOROUGH = "--thorough"
"""The tests' own option of pytest that makes them repeat in full."""
GIBIBYTES_PER_PROCESS = 4
"""Memory of a test process, with its models."""
MOST_UNSTEADY = 3
"""More failures than these are no matter of chance."""
UNSTEADY = Path("tests", "unsteady.txt")
"""Tests known to fail now and then among the others, relative to the repository's root; the list must get shorter."""
MOST_NAMED = 20
"""How many failed tests the last line names."""
TRIES, PAUSE_SECONDS = 3, 10.0
"""Attempts of a download, and the pause between them."""


class SetUpError(Exception):
    """Something that the person at the keyboard must do; the text is the sentence to show."""


@dataclass(frozen=True)
class Need:
    """Something of the system: the Debian package that brings it, and how to see that it is there."""

    package: str
    probe: str
    """A shared library's file name, a program's name, or the pattern of a path."""

    def present(self, libraries: str) -> bool:
        """Whether it is there; ``libraries`` is what ``ldconfig -p`` lists."""
        if "/" in self.probe:
            return bool(glob.glob(self.probe))
        return self.probe in libraries if ".so" in self.probe else shutil.which(self.probe) is not None


_QT = (
    Need("libdbus-1-3", "libdbus-1.so.3"),
    Need("libegl1", "libEGL.so.1"),
    Need("libfontconfig1", "libfontconfig.so.1"),
    Need("libgl1", "libGL.so.1"),
    Need("libglib2.0-0", "libglib-2.0.so.0"),
    Need("libxcb-cursor0", "libxcb-cursor.so.0"),
    Need("libxcb-icccm4", "libxcb-icccm.so.4"),
    Need("libxcb-image0", "libxcb-image.so.0"),
    Need("libxcb-keysyms1", "libxcb-keysyms.so.1"),
    Need("libxcb-randr0", "libxcb-randr.so.0"),
    Need("libxcb-render-util0", "libxcb-render-util.so.0"),
    Need("libxcb-shape0", "libxcb-shape.so.0"),
    Need("libxcb-xinerama0", "libxcb-xinerama.so.0"),
    Need("libxcb-xkb1", "libxcb-xkb.so.1"),
    Need("libxkbcommon-x11-0", "libxkbcommon-x11.so.0"),
)
_SOUND = (
    Need("libportaudio2", "libportaudio.so.2"),
    Need("libasound2-plugins", "/usr/lib/*/alsa-lib/libasound_module_pcm_pulse.so"),
)
_FONTS = (Need("fonts-dejavu-core", "/usr/share/fonts/*/*/DejaVuSans.ttf"),)
_FOR_TESTS = (
    Need("at-spi2-core", "/usr/share/dbus-1/services/org.a11y.Bus.service"),
    Need("dbus", "dbus-daemon"),
    Need("fonts-noto-cjk", "/usr/share/fonts/*/*/NotoSansCJK-Regular.ttc"),
    Need("g++", "g++"),
    Need("git", "git"),
    Need("openssh-client", "ssh"),
    Need("openssh-server", "/usr/sbin/sshd"),
    Need("pulseaudio", "pulseaudio"),
    Need("pulseaudio-utils", "parec"),
    Need("xauth", "xauth"),
    Need("xvfb", "Xvfb"),
)
NEEDS: dict[str, tuple[Need, ...]] = {"run": (*_QT, *_SOUND, *_FONTS), "test": (*_QT, *_SOUND, *_FONTS, *_FOR_TESTS)}


def main(arguments: Sequence[str]) -> int:
    """Do what ``arguments`` say; the process's exit code."""
    if not arguments or arguments[0] not in ("run", "test"):
        print(__doc__)
        return 0 if arguments and arguments[0] in ("-h", "--help") else 2
    command, rest = arguments[0], list(arguments[1:])
    try:
        prepare_system(NEEDS[command])
        prepare_environment(EXTRAS[command])
        return run(rest) if command == "run" else test(rest)
    except SetUpError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def say(text: str) -> None:
    """Show one line of progress."""
    print(f"- {text}", flush=True)


# --- The system's libraries -------------------------------------------------------------------------------------------
def prepare_system(needs: Sequence[Need]) -> None:
    """Install what is missing if that is possible, else say how."""
    if not sys.platform.startswith("linux"):
        return
    absent = missing(needs, shared_libraries())
    if not absent:
        return
    packages = [need.package for need in absent]
    if shutil.which("apt-get") is None:
        say("This system lacks " + ", ".join(need.probe.rpartition("/")[2] for need in absent) + ".")
        say("Install the packages that bring them, then run this again; continuing without them.")
        return
    if os.geteuid() != 0:
        say("These system packages are missing; continuing, but sound or window may not work. Install them with")
        print(f"    sudo apt-get install {' '.join(packages)}", flush=True)
        return
    say(f"Installing {len(packages)} system packages: {' '.join(packages)}")
    patiently(["apt-get", "update", "-qq"], "The list of system packages could not be fetched; check the network.")
    patiently(
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
        "The system packages could not be installed.",
        {**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )


def missing(needs: Sequence[Need], libraries: str) -> list[Need]:
    """Those of ``needs`` that are not there."""
    return [need for need in needs if not need.present(libraries)]


def shared_libraries() -> str:
    """Libraries that the dynamic linker knows."""
    program = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        return subprocess.run([program, "-p"], stdout=subprocess.PIPE, text=True, check=False).stdout
    except OSError:
        return ""


# --- The Python environment -------------------------------------------------------------------------------------------
def prepare_environment(extras: Sequence[str]) -> None:
    """Bring ``.venv`` up to date: create it when it cannot be used, install when what it must hold changed."""
    python = environment_python()
    if python_version(python) is None:
        create_environment()
    wanted = stamp(extras)
    if read_stamp() == wanted:
        return
    # Without its stamp an environment counts as outdated, so that an interrupted installation is done again.
    stamp_file().unlink(missing_ok=True)
    started = time.monotonic()
    for text, packages in installations(wanted["extras"], python):
        say(text)
        command = [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        patiently(
            [*command, "--progress-bar", "off", "--constraint", str(CONSTRAINTS), *packages],
            f"pip could not install {packages[-1]}; see its output above. Check the network and run this again.",
        )
    stamp_file().write_text(json.dumps(wanted), encoding="utf-8")
    say(f"The environment is ready after {time.monotonic() - started:.0f} s.")


def create_environment() -> None:
    """Make an empty virtual environment, in place of one that cannot be used."""
    base = find_python()
    if ENVIRONMENT.exists():
        if not (ENVIRONMENT / "pyvenv.cfg").exists():
            raise SetUpError(f"{ENVIRONMENT} is not a virtual environment; move it away and run this again.")
        say("Removing an environment of another Python version")
        shutil.rmtree(ENVIRONMENT)
    version = ".".join(map(str, python_version(base) or ()))
    say(f"Creating {ENVIRONMENT.name} with Python {version}")
    quietly([str(base), "-m", "venv", str(ENVIRONMENT)], f"{base} could not create a virtual environment.")


def environment_python() -> Path:
    """The interpreter of ``.venv``."""
    return ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def find_python() -> Path:
    """An interpreter that can carry Paretone: this one if possible. Raises :class:`SetUpError` when there is none."""
    unfit = ""
    for candidate in candidates():
        version = python_version(candidate)
        if version is None:
            continue
        if can_create_environments(candidate):
            return candidate
        unfit = unfit or f"{candidate} (Python {version[0]}.{version[1]}) lacks the modules venv and ensurepip"
    if unfit and shutil.which("apt-get"):
        if os.geteuid() != 0:
            raise SetUpError(f"{unfit}. Install them with: sudo apt-get install python3-venv")
        say("Installing the system package python3-venv")
        patiently(["apt-get", "update", "-qq"], "The list of system packages could not be fetched; check the network.")
        patiently(["apt-get", "install", "-y", "-qq", "python3-venv"], "python3-venv could not be installed.")
        for candidate in candidates():
            if python_version(candidate) is not None and can_create_environments(candidate):
                return candidate
    running = ".".join(map(str, sys.version_info[:2]))
    raise SetUpError(
        f"{unfit or f'No Python from 3.{OLDEST[1]} to 3.{NEWEST[1]} was found (this one is {running})'}. "
        "Install Python 3.12 or 3.11 (https://www.python.org/downloads) and run this again with it."
    )


def candidates() -> list[Path]:
    """Interpreters to consider, the preferred one first."""
    found = [Path(sys.executable)]
    names = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)] + ["python3", "python"]
    found += [Path(path) for path in map(shutil.which, names) if path]
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA", "")
        found += [Path(path) for path in glob.glob(f"{local}/Programs/Python/Python31[1-3]/python.exe")]
    else:
        versions = os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")
        found += [Path(path) for path in sorted(glob.glob(f"{versions}/3.1[1-3].*/bin/python"))]
    return found


def python_version(python: Path) -> tuple[int, int] | None:
    """Major and minor version of an interpreter that works and suits Paretone, else ``None``."""
    version = answer(python, "import sys; print(sys.version_info[0], sys.version_info[1])").split()
    if len(version) != 2:
        return None
    numbers = int(version[0]), int(version[1])
    return numbers if OLDEST <= numbers <= NEWEST else None


def can_create_environments(python: Path) -> bool:
    """Whether an interpreter has what making a virtual environment takes; Debian packs that apart."""
    return answer(python, "import ensurepip, venv; print('yes')") == "yes"


def answer(python: Path, code: str) -> str:
    """Output of ``code``, or ``""`` if it fails."""
    try:
        done = subprocess.run(
            [str(python), "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def installations(extras: Sequence[str], python: Path) -> list[tuple[str, list[str]]]:
    """Installations in order: a line to show, and pip's arguments.

    Paretone itself is installed without build isolation: its build then uses the pinned setuptools.
    """
    torch, where = torch_build(python)
    judges = ["--no-deps", *(f"{name}=={pinned(name)}" for name in JUDGES)]
    return [
        (f"Installing PyTorch ({torch}), the largest part", ["setuptools", *where, torch]),
        ("Installing Paretone and what it needs", ["--no-build-isolation", "--editable", f".[{','.join(extras)}]"]),
        *([("Installing the judges' weights", judges)] if "judge" in extras else []),
    ]


def torch_build(python: Path) -> tuple[str, list[str]]:
    """The torch requirement, and pip's arguments that say where it comes from.

    The registry's builds for Linux bring gigabytes of CUDA, which only machines with an NVIDIA card want.
    """
    version = pinned("torch")
    if not sys.platform.startswith("linux") or shutil.which("nvidia-smi"):
        return f"torch=={version}", []
    plain = f"torch=={version}+cpu"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    known = subprocess.run(
        [*command, "--dry-run", "--no-deps", "--ignore-installed", "--only-binary", ":all:", plain],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return plain, [] if known.returncode == 0 else ["--extra-index-url", CPU_INDEX]


def pinned(package: str) -> str:
    """The version that the constraints give to ``package``."""
    for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        name, found, version = line.partition("==")
        if found and name.strip() == package:
            return version.partition(";")[0].strip()
    raise SetUpError(f"{CONSTRAINTS} does not pin {package}; restore that file from the repository.")


def stamp(extras: Sequence[str]) -> dict[str, Any]:
    """Contents of an up-to-date environment."""
    inputs = hashlib.sha256()
    for path in (ROOT / "pyproject.toml", CONSTRAINTS):
        inputs.update(path.read_bytes())
    kept = read_stamp().get("extras", [])
    # Testing adds to what running needs: an environment that has both serves both.
    return {"inputs": inputs.hexdigest(), "extras": sorted({*extras, *(kept if isinstance(kept, list) else [])})}


def stamp_file() -> Path:
    """File that records the environment's contents."""
    return ENVIRONMENT / "paretone-stamp.json"


def read_stamp() -> dict[str, Any]:
    """Recorded contents of the environment; empty if unknown."""
    try:
        found = json.loads(stamp_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def quietly(command: Sequence[str], failure: str, environment: Mapping[str, str] | None = None) -> None:
    """Run ``command`` and show nothing of it unless it fails. Raises :class:`SetUpError` with ``failure`` then."""
    try:
        done = captured(command, environment)
    except OSError as error:
        raise SetUpError(f"{failure} ({command[0]}: {error})") from error
    if done.returncode != 0:
        print("\n".join(done.stdout.rstrip().splitlines()[-40:]), file=sys.stderr)
        raise SetUpError(failure)


def captured(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``command`` in the repository and keep all that it prints."""
    return subprocess.run(
        list(command),
        cwd=ROOT,
        env=None if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def patiently(command: Sequence[str], failure: str, environment: Mapping[str, str] | None = None) -> None:
    """Run ``command``, which fetches something, as :func:`quietly` does; again where it fails, for networks stumble."""
    for left in reversed(range(TRIES)):
        try:
            quietly(command, failure, environment)
        except SetUpError:
            if not left:
                raise
            say(f"That failed; trying again in {PAUSE_SECONDS:g} s")
            time.sleep(PAUSE_SECONDS)
        else:
            return


# --- Running ----------------------------------------------------------------------------------------------------------
def run(arguments: list[str]) -> int:
    """Open the application, or make the headless tour if there is no display; the exit code."""
    command = [str(environment_python()), "-m", "paretone_app", *arguments]
    environment = dict(os.environ)
    if not has_display(environment) and "--headless-tour" not in arguments:
        folder = ROOT / "runs" / f"tour-{datetime.now():%Y%m%d-%H%M%S}"
        say(f"There is no display: making the headless tour, which leaves speech, profile and picture in {folder}")
        folder.mkdir(parents=True, exist_ok=True)
        command += ["--headless-tour", str(folder)]
        environment.setdefault("QT_QPA_PLATFORM", "offscreen")
        # Qt's offscreen screen would remark on every window that it has no window manager.
        environment.setdefault("QT_LOGGING_RULES", "default.warning=false")
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def has_display(environment: Mapping[str, str]) -> bool:
    """Whether a window can be shown; only Linux has machines without."""
    if not sys.platform.startswith("linux"):
        return True
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


# --- Testing ----------------------------------------------------------------------------------------------------------
def checks(arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Checks: a name, and the command. With arguments for pytest, only pytest."""
    python = str(environment_python())
    tests = [python, "-m", "pytest"]
    if not is_whole(arguments):
        return [("Tests", [*tests, *arguments])]
    scripts = environment_python().parent
    return [
        ("Style", [python, "-m", "ruff", "check", "."]),
        ("Format", [python, "-m", "ruff", "format", "--check", "."]),
        ("Import contracts", [str(scripts / "lint-imports")]),
        ("Official packages", [python, "-m", "tests.official"]),
        ("Types", [python, "-m", "mypy"]),
        ("Tests", [*tests, "-q", "--durations=15", *sharing(), *arguments]),
    ]


def is_whole(arguments: Sequence[str]) -> bool:
    """Whether everything is to be checked."""
    return list(arguments) in ([], [THOROUGH])


def sharing() -> list[str]:
    """Distribution of tests over processes: each file's run in one of them, since they share what the file prepares,
    but for files that ``tests/collecting.py`` divides, the longest first."""
    return [f"--numprocesses={test_processes()}", "--dist=loadfile", "--no-loadscope-reorder"]


def test_processes() -> int:
    """Number of test processes: one more than cores, since tests of sound and of windows mostly wait, and no more than
    the memory allows."""
    return max(1, min((os.cpu_count() or 1) + 1, 5, memory_gibibytes() // GIBIBYTES_PER_PROCESS))


def memory_gibibytes() -> int:
    """The machine's memory, or that of a usual one where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30
    except (AttributeError, OSError, ValueError):
        return 8


def test(arguments: Sequence[str]) -> int:
    """Run every check, even after failures; the exit code is 0 if all passed.

    The checks run while the tests do, in the time that these leave. What failed of them is shown after pytest's own
    summary; a few tests that failed run once more alone. The last line names all that failed.
    """
    # On a busy machine a second thread makes the tests' small matrices up to ten times slower.
    environment = {"OMP_NUM_THREADS": "1", "QT_QPA_PLATFORM": "offscreen", **os.environ}
    environment["PYTHONUNBUFFERED"] = "1"
    # Without bytecode, each of the hundred processes that the tests start would compile all modules anew, and each that
    # shares the tests all tests.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    *others, tests = checks(arguments)
    whole = is_whole(arguments)
    if whole:
        # It would keep the names of tests that are gone.
        (ROOT / LAST_FAILED).unlink(missing_ok=True)
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = [(name, pool.submit(failure, name, [*aside(), *command], environment)) for name, command in others]
        say(tests[0])
        code = started(tests[1], environment)
        unsteady = passed_alone(environment, arguments) if whole and code == FAILURES else []
        failures = {name: said for name, one in running if (said := one.result()) is not None}
    for name, said in failures.items():
        print(f"\n{name}:\n{said}", file=sys.stderr)
    failed = list(failures)
    if unsteady:
        print(
            f"\nUNSTEADY, failed among the others and passed alone, to be mended: {', '.join(unsteady)}",
            file=sys.stderr,
        )
        if new := [one for one in unsteady if one not in known_unsteady()]:
            print(f"NEW among them, not in {UNSTEADY.as_posix()}: {', '.join(new)}", file=sys.stderr)
    elif code:
        failed += last_failed()[:MOST_NAMED] if whole else []
        failed.append(f"{tests[0]} (exit code {code})")
    if failed and whole:
        print(f"\nFAILED: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def aside() -> list[str]:
    """Beginning of a command that gives way to the tests; empty where the system has no such thing."""
    return ["nice", "-n", "5"] if shutil.which("nice") else []


def known_unsteady() -> set[str]:
    """Names in the list of unsteady tests; none where there is no list."""
    try:
        lines = (ROOT / UNSTEADY).read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return {line.partition("  # ")[0] for line in lines}


def last_failed() -> list[str]:
    """Names of the tests that failed when they ran last, in order; none where pytest did not get as far as that."""
    try:
        return sorted(json.loads((ROOT / LAST_FAILED).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return []


def passed_alone(environment: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """Run the few tests that failed once more, alone; their names if all pass now, else none.

    The tests share two or four cores with each other, some with a sound server and a screen as well. What fails there
    and not here is a matter of load or of chance: that is to be mended, and is no reason to refuse a change.
    """
    failures = last_failed()
    if not 0 < len(failures) <= MOST_UNSTEADY:
        return []
    say("Once more, by themselves:")
    code = started([str(environment_python()), "-m", "pytest", "-q", *arguments, *failures], environment)
    return failures if code == 0 else []


def failure(name: str, command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Run one check and say how it ended, in a line between those of the tests. What it printed when it failed, else
    ``None``."""
    began = time.monotonic()
    done = captured(command, environment)
    result = "passed" if done.returncode == 0 else f"FAILED (exit code {done.returncode})"
    print(f"\n- {name} {result} after {time.monotonic() - began:.1f} s", flush=True)
    return None if done.returncode == 0 else (done.stdout or "").rstrip()


def started(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run one check with its output shown; its exit code."""
    return subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
