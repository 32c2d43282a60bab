"""Make the packaged program, which needs no Python: a folder, a tar of it, and a Debian package.

    python3 packaging/freeze.py            # dist/paretone/, dist/paretone-VERSION-linux-x86_64.tar.xz, and a .deb
    python3 packaging/freeze.py --folder   # the folder alone
    python3 packaging/freeze.py --check    # try what is in dist: window with sound, command line, judges, training

It computes on the processor. PyInstaller runs in an environment of its own (build/freeze/environment), which holds what
``packaging/dev.py run`` installs: the optional packages of that environment are the packaged program's. Takes some
minutes. Needs nothing but the standard library, the programs tar and xz and, for the Debian package, dpkg-deb.
"""

from __future__ import annotations

import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import dev
from dev import ROOT, SetUpError, patiently, pinned, quietly, say

BUILD = ROOT / "build" / "freeze"
ENVIRONMENT = BUILD / "environment"
DIST = ROOT / "dist"
NAME = "paretone"
PROGRAMS = ("paretone", "paretone-gui")
PACKAGING = ROOT / "packaging"
TESTS = "tests/packaging/test_frozen.py"
BUILT_BY = ("packaging/packed_build.py", "packaging/packing.py")
"""Builds the wheel; it is not in it."""
BUILD_NEEDS = ("setuptools", "numpy", "safetensors")
"""The packages that do so."""
REPEATABLE = {"PYTHONHASHSEED": "1", "PYTHONNOUSERSITE": "1", "PYTHONSAFEPATH": "1", "PYTHONPATH": ""}
"""Environment of PyInstaller: the same files give the same program, and Paretone comes from its wheel, where weights
are packed, not from the folder that this is run in."""
PLACE = "PARETONE_PACKAGED"
"""Tells the tests the folder with the folder, the tar and the Debian package."""
HOME = Path("usr/lib") / NAME
"""Where the Debian package has the program."""
RENAMED = {"libglib2.0-0": "libglib2.0-0t64", "libasound2": "libasound2t64"}
"""New names of Debian's packages for 64-bit time."""
_TAR_PRESET = 1
"""Of xz, which unpacks everywhere: level 6 takes twice as long for a twentieth less."""
_DEB_PACKING = ("-Zzstd", "-z9")
"""Every dpkg that is as new as the C library here knows zstd: 3 % more than the tar's xz in a ninth of the time."""
_VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)


def main(arguments: Sequence[str]) -> int:
    """Do what ``arguments`` say; the process's exit code."""
    if list(arguments) not in ([], ["--folder"], ["--check"]):
        print(__doc__)
        return 0 if {"-h", "--help"} & set(arguments) else 2
    try:
        if list(arguments) == ["--check"]:
            return check(DIST)
        folder = freeze(DIST)
        if not arguments:
            tar(folder, DIST)
            debian_package(folder, DIST)
    except SetUpError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    for path in sorted(DIST.glob(f"{NAME}*")):
        say(f"{path.relative_to(ROOT)}: {size_of(path) / 1e6:.0f} MB")
    return 0


def version() -> str:
    """Paretone's version."""
    found = _VERSION.search((ROOT / "engine" / "paretone" / "__init__.py").read_text(encoding="utf-8"))
    if found is None:
        raise SetUpError("engine/paretone/__init__.py does not say __version__; restore that file from the repository.")
    return found.group(1)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; links count nothing."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(one.stat().st_size for one in files if one.is_file() and not one.is_symlink())


# --- The environment --------------------------------------------------------------------------------------------------
def prepare() -> Path:
    """Bring the environment up to date, with Paretone as its wheel has it; its interpreter."""
    if not sys.platform.startswith("linux"):
        raise SetUpError("The program is packaged on Linux only so far; install Paretone with pip or uv elsewhere.")
    python = ENVIRONMENT / "bin" / "python"
    if dev.python_version(python) is None:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        base = dev.find_python()
        if dev.answer(base, "import sysconfig; print(sysconfig.get_config_var('Py_ENABLE_SHARED'))") != "1":
            raise SetUpError(f"{base} has no shared library, which PyInstaller packs; build it with --enable-shared.")
        say(f"Creating {ENVIRONMENT.relative_to(ROOT)}")
        quietly([str(base), "-m", "venv", str(ENVIRONMENT)], f"{base} could not create a virtual environment.")
    torch, where = f"torch=={pinned('torch')}+cpu", ["--extra-index-url", dev.CPU_INDEX]
    extras = ",".join(dev.EXTRAS["run"])
    judges = [f"{name}=={pinned(name)}" for name in dev.JUDGES]
    install(python, "PyTorch for processors", ["pyinstaller", torch], where)
    install(python, "What the wheel is built with", BUILD_NEEDS)
    wheel = make_wheel(python)
    install(python, "What Paretone needs", [f"{wheel}[{extras}]"])
    # The same version may have other contents.
    install(python, "Paretone", ["--no-deps", "--force-reinstall", str(wheel)])
    install(python, "The judges' weights", ["--no-deps", *judges])
    return python


def install(python: Path, what: str, packages: Sequence[str], fallback: Sequence[str] = ()) -> None:
    """Have pip install ``packages`` by the constraints; once more with the options ``fallback`` where it cannot."""
    say(f"Installing: {what}")
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", "--constraint", str(dev.CONSTRAINTS)]
    failure = f"pip could not install {packages[-1]}; see its output above. Check the network and run this again."
    if fallback:
        try:
            quietly([*command, *packages], failure)
            return
        except SetUpError:
            packages = [*fallback, *packages]
    patiently([*command, *packages], failure)


def make_wheel(python: Path) -> Path:
    """Build Paretone's wheel from a copy of its files, since building leaves folders behind; the wheel."""
    say("Building the wheel")
    source, target = BUILD / "source", BUILD / "wheel"
    for folder in (source, target):
        shutil.rmtree(folder, ignore_errors=True)
    for path in sources():
        place = source / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    command = [str(python), "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    quietly([*command, "--wheel-dir", str(target), str(source)], "The wheel could not be built.")
    shutil.rmtree(source)
    return next(target.glob("*.whl"))


def sources() -> list[Path]:
    """Files that the wheel is built from: those that git knows or would add, or all where there is no git."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        names = listed.stdout.decode().split("\0") if listed.returncode == 0 else []
    except OSError:
        names = []
    every = [ROOT / one for one in names if one] or [
        *(one for folder in ("app", "engine", "resources") for one in (ROOT / folder).rglob("*")),
        *ROOT.glob("*"),
        *(ROOT / one for one in BUILT_BY),
    ]
    kept = ("app/paretone_app/", "engine/paretone/", "resources/", *BUILT_BY)
    return [
        path
        for path in every
        if path.is_file()
        and "__pycache__" not in path.parts
        and ((name := path.relative_to(ROOT).as_posix()).startswith(kept) or "/" not in name)
    ]


# --- The folder -------------------------------------------------------------------------------------------------------
def freeze(target: Path) -> Path:
    """Make the program's folder in ``target``, in place of an earlier one; the folder."""
    python = prepare()
    began = time.monotonic()
    say("Running PyInstaller, which takes minutes")
    shutil.rmtree(target / NAME, ignore_errors=True)
    quietly(
        [
            *(str(python), "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"),
            *("--distpath", str(target), "--workpath", str(BUILD / "work"), str(PACKAGING / "paretone.spec")),
        ],
        "PyInstaller failed; see its output above.",
        {**os.environ, **REPEATABLE},
    )
    folder = target / NAME
    for name in PROGRAMS[1:]:
        (folder / name).symlink_to(PROGRAMS[0])
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    for name, path in desktop_files().items():
        place = folder / "share" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    say(f"PyInstaller was ready after {time.monotonic() - began:.0f} s.")
    return folder


def desktop_files() -> dict[str, Path]:
    """What tells a desktop of the program: by the path in a ``share`` folder, the file."""
    return {
        f"applications/{NAME}.desktop": PACKAGING / f"{NAME}.desktop",
        f"mime/packages/{NAME}.xml": PACKAGING / f"{NAME}-mime.xml",
        f"icons/hicolor/scalable/apps/{NAME}.svg": ROOT / "resources" / "icons" / f"{NAME}.svg",
    }


# --- The archives -----------------------------------------------------------------------------------------------------
def tar(folder: Path, target: Path) -> Path:
    """Pack the folder, without the user who packs it and so that every user may read it; the archive."""
    path = target / f"{NAME}-{version()}-linux-{platform.machine()}.tar.xz"
    say(f"Packing {path.name}")
    command = ["tar", "--create", "--xz", "--owner=root:0", "--group=root:0", "--mode=a+rX", f"--file={path}"]
    command += [f"--directory={folder.parent}", folder.name]
    quietly(command, f"tar and xz could not write {path}.", {**os.environ, "XZ_OPT": f"--threads=0 -{_TAR_PRESET}"})
    return path


def debian_package(folder: Path, target: Path) -> Path | None:
    """Make the Debian package from the program's folder; ``None`` where there is no dpkg-deb."""
    if shutil.which("dpkg-deb") is None:
        say("There is no dpkg-deb here, so no Debian package is made.")
        return None
    architecture = subprocess.run(["dpkg", "--print-architecture"], stdout=subprocess.PIPE, text=True).stdout.strip()
    path = target / f"{NAME}_{version()}_{architecture}.deb"
    say(f"Packing {path.name}")
    tree = BUILD / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    home = tree / HOME
    # Linked, not copied: it is a gigabyte.
    shutil.copytree(folder, home, symlinks=True, copy_function=os.link, ignore=shutil.ignore_patterns("share"))
    for name, file in desktop_files().items():
        put(tree / "usr" / "share" / name, file.read_bytes())
    documents = tree / "usr" / "share" / "doc" / NAME
    put(documents / "copyright", copyright_file().encode())
    put(documents / "changelog.gz", gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0))
    programs = tree / "usr" / "bin"
    programs.mkdir(parents=True)
    for name in PROGRAMS:
        (programs / name).symlink_to(Path("..") / HOME.relative_to("usr") / name)
    put(tree / "DEBIAN" / "control", control(architecture, size_of(tree)).encode())
    path.unlink(missing_ok=True)
    quietly(
        ["dpkg-deb", "--root-owner-group", *_DEB_PACKING, "--build", str(tree), str(path)],
        "dpkg-deb could not make the package.",
    )
    shutil.rmtree(tree)
    return path


def put(path: Path, content: bytes) -> None:
    """Write a file that everybody may read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o644)


def control(architecture: str, size: int) -> str:
    """The Debian package's description; ``size`` in bytes."""
    return "\n".join(
        (
            f"Package: {NAME}",
            f"Version: {version()}",
            f"Architecture: {architecture}",
            "Maintainer: The authors of Paretone <paretone@localhost>",
            f"Installed-Size: {size // 1024}",
            f"Depends: {', '.join(depends(architecture))}",
            "Recommends: fonts-noto-cjk",
            "Section: sound",
            "Priority: optional",
            "Description: workbench for faster text-to-speech",
            " Apply published accelerations to text-to-speech models, see what they skip,",
            " hear the difference, and export the setting. This package brings its own",
            " Python and PyTorch, and computes on the processor.",
            "",
        )
    )


def depends(architecture: str) -> list[str]:
    """Packages of the system that Qt, sound and text need, and the C library that the program was made with."""
    library = platform.libc_ver()[1] or "2.28"
    names = [one.package for one in dev.NEEDS["run"]]
    return [f"libc6 (>= {library})", *(f"{RENAMED[one]} | {one}" if one in RENAMED else one for one in names)]


def copyright_file() -> str:
    """Whose it is, and where the licences of what it brings are."""
    return (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        f"Upstream-Name: Paretone\n\nFiles: *\nCopyright: The authors of Paretone\nLicense: Apache-2.0\n"
        " On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n"
        f" The packages that it brings have licences of their own: see the folders *.dist-info in\n"
        f" /{HOME}/_internal. Qt and PySide6 are used under the LGPL, version 3.\n"
    )


# --- The check --------------------------------------------------------------------------------------------------------
def check(folder: Path) -> int:
    """Try what is in ``folder`` with the project's tests; the exit code."""
    if not any(folder.glob("*.deb")):
        raise SetUpError(f"There is no Debian package in {folder}; run packaging/freeze.py first.")
    command = [sys.executable, str(PACKAGING / "dev.py"), "test", dev.THOROUGH, "-v", TESTS]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, PLACE: str(folder)}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
