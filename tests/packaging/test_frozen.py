"""The packaged program. What goes around it is checked always; the program itself, which takes minutes to make, where
tests are thorough, from the Debian package as a user has it: unpacked elsewhere, with an empty home folder, without
this Python.

``packaging/freeze.py --check`` tries the one that was made; without that, one is made first.
"""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import soundfile

from paretone.errors import DeviceError
from paretone.extras import EXTRAS
from paretone.models import catalogue
from paretone.models.files import bundled
from paretone.setting.profile import SUFFIX, Profile
from paretone.setting.setting import Setting
from paretone.techniques import techniques
from tests.screen import require_a_window
from tests.workload import only_in_full

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
# Scripts, not packages: one imports the other.
dev, freeze, packing = map(import_module, ("dev", "freeze", "packing"))

MIME = "application/x-paretone-profile+json"
TEXT = "The salt breeze came across from the sea."
thorough = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    only_in_full("packaged program"),
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb"),
]


# --- Around the program -----------------------------------------------------------------------------------------------
@pytest.fixture
def profile() -> Profile:
    """F5 mini without any technique."""
    info = catalogue.entry("f5-mini")
    return Profile(Setting("f5-mini", info.options_with(), ()), "ab" * 32, next(iter(info.architectures)))


def test_the_debian_package_brings_what_a_desktop_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made from a small folder in place of the program's."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("needs dpkg-deb")
    monkeypatch.setattr(freeze, "BUILD", tmp_path / "build")
    folder = tmp_path / "paretone"
    (folder / "_internal").mkdir(parents=True)
    (folder / "paretone").write_text("#!/bin/sh\necho $0\n")
    (folder / "paretone").chmod(0o755)
    (folder / "paretone-gui").symlink_to("paretone")
    package = freeze.debian_package(folder, tmp_path)
    said = subprocess.run(["dpkg-deb", "--field", str(package)], capture_output=True, text=True, check=True).stdout
    fields = dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)
    assert fields["Version"] == freeze.version() and int(fields["Installed-Size"]) > 0
    for need in dev.NEEDS["run"]:
        assert need.package in fields["Depends"].replace("|", ",").replace(" ", "").split(",")
    place = tmp_path / "unpacked"
    subprocess.run(["dpkg-deb", "-x", str(package), str(place)], check=True)
    for name in freeze.PROGRAMS:
        program = place / "usr" / "bin" / name
        done = subprocess.run([program], capture_output=True, text=True, check=True)
        assert program.is_symlink() and done.stdout.strip().endswith(name)
    desktop = configparser.ConfigParser(interpolation=None)
    desktop.read(place / "usr/share/applications/paretone.desktop", encoding="utf-8")
    assert MIME in desktop["Desktop Entry"]["MimeType"].split(";")
    assert (place / "usr/share/icons/hicolor/scalable/apps/paretone.svg").read_bytes()
    assert (place / "usr/share/doc/paretone/copyright").is_file()
    assert not (tmp_path / "build" / "deb").exists()


def test_a_desktop_knows_profiles(tmp_path: Path, profile: Profile) -> None:
    source = ROOT / "packaging" / "paretone-mime.xml"
    kind = ElementTree.parse(source).getroot()[0]
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    assert kind.get("type") == MIME
    assert any(one.get("pattern") == f"*{SUFFIX}" for one in kind.iter(f"{space}glob"))
    match = next(kind.iter(f"{space}match"))
    first, last = map(int, match.get("offset").split(":"))
    assert first <= profile.encoded().find(match.get("value").encode()) <= last
    if shutil.which("update-mime-database") is None:
        return
    (tmp_path / "packages").mkdir()
    shutil.copyfile(source, tmp_path / "packages" / "paretone.xml")
    done = subprocess.run(["update-mime-database", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0 and f"{MIME}:*{SUFFIX}" in (tmp_path / "globs2").read_text(), done.stderr


def test_the_tar_names_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "paretone"
    folder.mkdir()
    (folder / "paretone").write_text("program")
    (folder / "paretone").chmod(0o700)
    (folder / "paretone-gui").symlink_to("paretone")
    with tarfile.open(freeze.tar(folder, tmp_path)) as opened:
        members = {one.name: one for one in opened.getmembers()}
    assert {one.uname for one in members.values()} == {"root"} and {one.uid for one in members.values()} == {0}
    assert members["paretone/paretone"].mode & 0o555 == 0o555
    assert members["paretone/paretone-gui"].linkname == "paretone"


def test_the_wheel_is_built_from_what_the_repository_has() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in freeze.sources()}
    assert {"pyproject.toml", "README.md", "LICENSE", "engine/paretone/cli.py", "app/paretone_app/__main__.py"} <= names
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for command in declared["tool"]["setuptools"]["cmdclass"].values():
        assert f"{command.rpartition('.')[0].replace('.', '/')}.py" in names, "what builds it"
    assert [re.match(r"[\w-]+", one)[0] for one in declared["build-system"]["requires"]] == [*freeze.BUILD_NEEDS]
    assert not [one for one in names if one.startswith(("tests/", "build/", "dist/", ".venv/")) or one.endswith(".pyc")]


# --- The program ------------------------------------------------------------------------------------------------------
class Packaged:
    """The unpacked Debian package, with a home folder of its own."""

    def __init__(self, place: Path) -> None:
        self.place, self.home = place, place / "home"
        self.home.mkdir()

    def environment(self, **further: str) -> dict[str, str]:
        """What a user's desktop tells programs, and nothing of this Python."""
        plain = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
        return {**plain, **further}

    def command(self, name: str = "paretone", *arguments: str | Path) -> list[str]:
        return [str(self.place / "usr" / "bin" / name), *map(str, arguments)]

    def run(self, *arguments: str | Path, name: str = "paretone") -> subprocess.CompletedProcess[str]:
        """The outcome of a program that is started in the home folder."""
        command = self.command(name, *arguments)
        return subprocess.run(command, env=self.environment(), cwd=self.home, capture_output=True, text=True)

    def json(self, *arguments: str | Path) -> dict:
        """What a command that succeeds says under ``--json``."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packaged]:
    """The program that ``$PARETONE_PACKAGED`` has, or one that is made for this."""
    folder = Path(os.environ.get(freeze.PLACE) or ROOT / "dist")
    if not os.environ.get(freeze.PLACE):
        subprocess.run([sys.executable, str(ROOT / "packaging" / "freeze.py")], check=True)
    (package,) = folder.glob(f"paretone_{freeze.version()}_*.deb")
    place = tmp_path_factory.mktemp("packaged")
    subprocess.run(["dpkg-deb", "-x", str(package), str(place)], check=True)
    yield Packaged(place)
    shutil.rmtree(place)


class TestPackaged:
    """In order: the command line, what cannot be done, then the window."""

    pytestmark = thorough

    def test_the_doctor_tells_the_truth(self, packaged: Packaged) -> None:
        checks = {one["name"]: one for one in packaged.json("doctor")["checks"]}
        assert "the packaged program" in checks["Paretone"]["found"]
        assert checks["PyTorch"]["found"].startswith("2.")
        assert "the packaged program has PyTorch's build for processors" in checks["Graphics card"]["found"]
        assert checks["Bundled models"]["state"] == "good"
        requirements = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
        given = {one for extra in dev.EXTRAS["run"] for one in requirements[extra]}
        brought = {extra for extra, wanted in requirements.items() if given.issuperset(wanted)}
        for extra in EXTRAS:
            found = checks[extra.title]
            assert (found["state"] == "good") == (extra.name in brought), found
            if extra.name not in brought:
                assert "cannot add it" in found["advice"]

    def test_its_weights_are_the_wheels(self, packaged: Packaged) -> None:
        """Packed: what is taken from the repository by mistake is a hundred megabytes more."""
        (models,) = packaged.place.rglob("_internal/paretone/resources/models")
        known = json.loads((models / bundled.LIST).read_text(encoding="utf-8"))
        weights = {one.relative_to(models).as_posix(): one for one in models.rglob(f"*{bundled.SUFFIX}")}
        assert {name: packing.origin(path) or bundled.file_sha256(path) for name, path in weights.items()} == known
        packed = json.loads((models / bundled.PACKED_LIST).read_text(encoding="utf-8"))
        assert set(packed.values()) == {packing.origin(path) for path in weights.values()} - {""}

    def test_every_technique_command_and_bench_is_there(self, packaged: Packaged) -> None:
        assert packaged.json("models")
        refused = packaged.run("speak", "--text", "x", "--out", "x.wav", "--technique", "nothing")
        assert refused.returncode == 3 or "There is no technique" in refused.stderr
        assert f"and {len(techniques()) - 8} more" in refused.stderr
        assert "finds no plug-ins" in refused.stderr
        benches = packaged.run("bench").stdout.splitlines()
        assert len(benches) > 10 and all(len(line.split()) > 3 for line in benches), "with what each measures"

    def test_it_speaks_and_judges(self, packaged: Packaged) -> None:
        spoken = packaged.json("speak", "--text", TEXT, "--model", "f5-mini", "--out", "spoken.wav")
        samples, rate = soundfile.read(packaged.home / "spoken.wav")
        assert rate == 24000 and np.abs(samples).max() > 0.05, spoken
        said = json.dumps(packaged.json("judge", "spoken.wav", "--text", TEXT))
        assert "word_error" in said and "naturalness" in said, said
        for model in ("megatts3-mini", "lm-mini", "omni-mini"):
            packaged.json("speak", "--text", "Good.", "--model", model, "--out", f"{model}.wav")
            assert np.abs(soundfile.read(packaged.home / f"{model}.wav")[0]).max() > 0.02

    def test_it_trains(self, packaged: Packaged) -> None:
        done = packaged.run(
            *("train", "draft", "--model", "lm-mini", "--work", "draft", "--steps", "2", "--sentences", "2"), "--quiet"
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert (packaged.home / "draft" / "checkpoint.pt").is_file()
        assert list((packaged.home / ".local" / "share" / "paretone" / "models" / "lm-mini").rglob("*.safetensors"))

    def test_what_cannot_be_done_is_a_sentence(self, packaged: Packaged) -> None:
        peers = packaged.run("bench", "peers")
        assert peers.returncode == 2 and "python -m tests.peers" in peers.stderr
        compiled = packaged.run("speak", "--text", "x", "--out", "x.wav", "--technique", "compilation")
        assert compiled.returncode != 0 and "not the packaged program" in compiled.stderr
        for done in (peers, compiled):
            assert "Traceback" not in done.stderr

    def test_without_a_display_there_is_a_sentence(self, packaged: Packaged) -> None:
        done = packaged.run(name="paretone-gui")
        assert done.returncode == DeviceError.exit_code
        assert done.stderr.startswith("Paretone cannot open its window: could not connect to display")

    def test_its_window_opens_and_loads_a_model(self, packaged: Packaged, display: str) -> None:
        window = packaged.environment(DISPLAY=display, QT_QPA_PLATFORM="xcb")
        require_a_window(packaged.command("paretone-gui"), packaged.home, window)
