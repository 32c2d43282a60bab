"""The wheel: small enough for package registries, complete, and of use from any folder without the repository."""

import configparser
import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from paretone.models.files import bundled
from paretone.models.files.checkpoints import metadata_of, read_weights
from tests.screen import require_a_window
from tests.workload import only_in_full, workload

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 100 * 2**20
"""Bytes of a file that package registries take."""
SOURCES = (
    *("app", "engine", "resources", "packaging/packed_build.py", "packaging/packing.py"),
    *("pyproject.toml", "README.md", "LICENSE"),
)
PATIENCE_SECONDS = 240
"""When a test gives up; never what it measures."""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shipped() -> list[str]:
    """Names of the files that a wheel is made of."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SOURCES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return sorted({name for name in listed if name and (ROOT / name).is_file()})


@pytest.fixture(scope="module")
def wheel(shipped: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, since building leaves folders, and with this environment, not from a network."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in shipped:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    code = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, str(target)], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (found,) = target.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it, which sees the packages that it needs here, and not the repository."""
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    # As a line of a .pth file the folder is searched, but its own .pth files, that of the repository among them, are
    # not read.
    (packages(place) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", "--no-compile", str(wheel)], check=True, cwd=place)
    return place


def packages(place: Path) -> Path:
    (found,) = (place / "lib").glob("python3.*/site-packages")
    return found


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables of somebody who has never used Paretone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PARETONE", "XDG"))}
    (tmp_path / "home").mkdir()
    return kept | {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}


def run(command: Sequence[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_an_installation_makes_the_wheel_that_it_came_from(
    wheel: Path, installed: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    code = "import pathlib, sys; from paretone.remote.ssh import packed_again; packed_again(pathlib.Path(sys.argv[1]))"
    run([str(installed / "bin" / "python"), "-c", code, wheel.name], tmp_path, environment)
    contents = [
        {one.filename: one.CRC for one in zipfile.ZipFile(one).infolist()} for one in (wheel, tmp_path / wheel.name)
    ]
    (record,) = (one for one in contents[0] if one.endswith("RECORD"))
    assert contents[0] | {record: contents[1][record]} == contents[1], "its own list may have another order"


def test_registries_take_it_and_everything_that_runs_is_in_it(wheel: Path, shipped: list[str]) -> None:
    assert wheel.stat().st_size < LARGEST
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (entry_points,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        written = archive.read(entry_points).decode()
    code = {name.partition("/")[2] for name in shipped if name.startswith(("app/", "engine/"))}
    needed = code | {f"paretone/{name}" for name in shipped if name.startswith("resources/")}
    pages = {name for name in needed if name.startswith("paretone/resources/docs/")}
    assert pages and names & pages == set()
    assert needed - pages - names == set()
    extra = {name for name in names - needed if not name.partition("/")[0].endswith(".dist-info")}
    assert extra == {f"paretone/resources/models/{bundled.PACKED_LIST}"}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = configparser.ConfigParser()
    found.optionxform = str
    found.read_string(written)
    assert dict(found["console_scripts"]) == declared["scripts"]
    assert dict(found["gui_scripts"]) == declared["gui-scripts"]
    for group in ("paretone.techniques", "paretone.models"):
        assert dict(found[group]) == declared["entry-points"][group]


def test_its_weights_are_the_repositorys_but_for_a_small_error(installed: Path) -> None:
    root = packages(installed) / "paretone" / "resources" / "models"
    assert json.loads((root / bundled.LIST).read_text()) == bundled.listed()
    bases = {digest: name for name, digest in bundled.listed().items()}
    for name in bundled.listed():
        ours, theirs, told = read_weights(bundled.root() / name), read_weights(root / name), metadata_of(root / name)
        assert ours.keys() == theirs.keys() and told == metadata_of(bundled.root() / name)
        for key, value in ours.items():
            error = float(torch.dist(theirs[key].float(), value.float()) / value.float().norm().clamp_min(1e-9))
            # Where training has changed a matrix most, the differences are as large as the weights.
            assert error < (0.06 if "base" in told else 0.02), f"{name}: {key}"
        assert told.get("base", "") in {"", *bases}


def test_its_programs_start_beside_packages_of_the_same_old_names(
    installed: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    """A project may have an ``engine``, an ``app`` and ``resources`` of its own."""
    for name in ("engine", "app", "resources"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("MINE = True")
    code = "import engine, app, resources; from paretone import Profile; print(engine.MINE, app.MINE, resources.MINE)"
    assert run([str(installed / "bin" / "python"), "-c", code], tmp_path, environment).split() == ["True"] * 3
    assert run([str(installed / "bin" / "paretone"), "--version"], tmp_path, environment).startswith("paretone 0.")
    assert "--measure-start" in run([str(installed / "bin" / "paretone-gui"), "--help"], tmp_path, environment)


SPOKEN = {
    "f5-mini/model.safetensors": (
        ("--steps=2",),
        ("--steps=2", "--technique=guidance_free:weight=0.5"),
        ("--steps=2", "--technique=guidance_free:weight=0.67"),
        ("--technique=average_velocity:evaluations=1",),
    ),
    "megatts3-mini/diffusion_transformer/model.safetensors": (("--technique=average_velocity:evaluations=1",),),
    "lm-mini/model.safetensors": (
        ("--technique=spade",),
        ("--technique=spade:recovery=partly",),
        ("--technique=speculative:weights=draft-2",),
        ("--technique=speculative:weights=draft-on-features",),
    ),
    "omni-mini/model.safetensors": (("--steps=2",),),
}
"""Arguments of what is spoken with each model, named by its own weights: by all that were trained from these. The
tokens of drafts are checked by the model itself."""


OF_THE_WINDOW = ("PySide6", "pyqtgraph", "qasync", "shiboken6", "sounddevice")
WITHOUT = f"import sys, json; sys.modules.update(dict.fromkeys({OF_THE_WINDOW}));"


def test_all_models_speak_without_qt_or_portaudio(installed: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    """By its own weights, and by those trained from them: ``paretone`` without the extra ``app``."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not any(one.lower().startswith(tuple(map(str.lower, OF_THE_WINDOW))) for one in declared["dependencies"])
    called, checkpoints = [], []
    for weights, ways in SPOKEN.items():
        model = weights.partition("/")[0]
        for number, way in enumerate(workload(ways, ways[-1:])):
            out = f"--out={model}-{number}.wav"
            called.append(["speak", f"--model={model}", "--text=Good morning.", out, "--json", *way])
            checkpoints.append(bundled.listed()[weights])
    # In one process, since most of the time goes into starting.
    code = f"{WITHOUT} from paretone.cli import main; sys.exit(max(map(main, json.loads(sys.argv[1]))))"
    python = str(installed / "bin" / "python")
    called.insert(0, ["doctor", "--json"])
    said = run([python, "-c", code, json.dumps(called)], tmp_path, environment).splitlines()
    checked, *takes = [json.loads(line) for line in said]
    found = {one["name"]: one["found"] for one in checked["checks"]}
    assert found["Paretone"].endswith("installed as a package")
    assert found["Bundled models"] == "F5 mini, MegaTTS 3 mini, LM mini, Omni mini"
    assert len(takes) == len(checkpoints) == len(list(tmp_path.glob("*.wav")))
    assert [take["checkpoint"] for take in takes] == checkpoints
    assert all(take["audio_seconds"] > 0.3 and take["silence"] < 0.9 for take in takes)
    window = f"{WITHOUT} from paretone_app.__main__ import main; sys.exit(main([]))"
    refused = subprocess.run([python, "-c", window], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert refused.returncode == 1 and "pip install 'paretone[app]'" in refused.stderr
    assert "Traceback" not in refused.stderr


@only_in_full("repetitions")
def test_the_window_opens_and_loads_a_model(
    installed: Path, tmp_path: Path, environment: dict[str, str], display: str
) -> None:
    environment.pop("QT_QPA_PLATFORM", None)
    require_a_window([str(installed / "bin" / "paretone-gui")], tmp_path, environment | {"DISPLAY": display})
