"""Official packages in separate environments below ``runs/official``, to measure and test against. Torch-free.

:func:`environment` installs one on first use. Its models' own dependencies come along; what Paretone has already, torch
first of all, is shared through a ``.pth`` file, so both run on the same torch, in one process if need be. Inside, that
is in a process of the environment's Python, :func:`import_models` makes the official classes importable.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import types
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from pathlib import Path

import paretone
from paretone.bench.report import Report
from paretone.errors import PlainError


@dataclass(frozen=True)
class Package:
    """An official package, and what of it is installed and imported."""

    title: str
    name: str
    version: str
    dependencies: tuple[str, ...]
    """Imports of the official model files that Paretone lacks. What else the whole package requires (Gradio, wandb,
    datasets and the like) is gigabytes that no model needs."""
    unused: Mapping[str, tuple[str, ...]]
    """Modules that the model files import, with the names that they take from them, for what Paretone does not run."""
    models: str
    """The module of its classes."""
    folders: Mapping[str, str]
    """Packages whose own ``__init__.py`` is left out, for it imports too much: name to folder within the package."""
    size: str

    @property
    def pinned(self) -> str:
        """Name and version as pip reads them."""
        return f"{self.name}=={self.version}"

    @property
    def top(self) -> str:
        """The imported package."""
        return self.models.partition(".")[0]


F5 = Package(
    "F5-TTS",
    "f5-tts",
    "1.1.20",
    ("torchaudio==2.11.0", "torchdiffeq==0.2.5", "x-transformers==2.31.10"),
    # Mels for BigVGAN, biases of attention, and Chinese text. librosa brings numba and scikit-learn, 230 MB in all, and
    # importing both takes longer than importing torch; the tables of pypinyin take a third as long.
    {"librosa": (), "librosa.filters": ("mel",), "einx": (), "rjieba": ("cut",), "pypinyin": ("lazy_pinyin", "Style")},
    "f5_tts.model.cfm",
    # Its own file imports the trainer as well, and with it everything that is not installed here.
    {"f5_tts.model": "model"},
    "20 MB",
)
OMNIVOICE = Package(
    "OmniVoice",
    "omnivoice",
    "0.2.1",
    ("torchaudio==2.11.0",),
    # Sound files and silences of recordings.
    {
        "soundfile": (),
        "pydub": ("AudioSegment",),
        "pydub.silence": ("detect_leading_silence", "detect_nonsilent", "split_on_silence"),
    },
    "omnivoice.models.omnivoice",
    {},
    "2 MB",
)
NEMO = Package(
    "NeMo text processing",
    "nemo_text_processing",
    "1.2.0",
    # What its English normaliser imports; the other requirements are for training and other languages.
    ("pynini==2.1.6.post1", "cdifflib", "editdistance", "inflect", "joblib", "regex", "sacremoses", "tqdm"),
    {},
    "nemo_text_processing.text_normalization.normalize",
    {},
    "20 MB",
)
QWEN3_TTS = Package(
    "Qwen3-TTS",
    "qwen-tts",
    "0.1.1",
    ("transformers==4.57.3", "huggingface-hub<1"),
    # Recordings, and the speech tokenizer, which needs sox and onnxruntime for the unreleased 25 Hz models.
    {"librosa": (), "librosa.filters": ("mel",), "qwen_tts.inference.qwen3_tts_tokenizer": ("Qwen3TTSTokenizer",)},
    "qwen_tts.core.models.modeling_qwen3_tts",
    {"qwen_tts": "", "qwen_tts.core": "core", "qwen_tts.core.models": "core/models", "qwen_tts.inference": "inference"},
    "80 MB",
)
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {package.name: package for package in (F5, OMNIVOICE, NEMO, QWEN3_TTS)}
SHARED = ("numpy", "torch")
"""Packages that must keep Paretone's versions."""
_READY = "paretone-ready.txt"
_CONNECTION = ("connection", "name resolution", "name or service", "network is unreachable", "timed out", "proxy")


class RegistryUnreachable(PlainError):
    """The package registry could not be reached."""


def default_folder(package: Package = F5) -> Path:
    return ROOT / "runs" / "official" / f"{package.name}-{package.version}"


def python_of(folder: Path) -> Path:
    """The Python of the environment in ``folder``."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def environment(say: Callable[[str], None], folder: Path | None = None, package: Package = F5) -> Path:
    """The Python of the environment, which is made first if it is missing or belongs to another Paretone.

    Raises :class:`RegistryUnreachable`, or :class:`PlainError` with what went wrong.
    """
    folder = folder or default_folder(package)
    ready = folder / _READY
    if ready.is_file() and ready.read_text(encoding="utf-8") == _contents(package):
        return python_of(folder)
    say(
        f"Installing the official {package.pinned} into {folder}, with {', '.join(package.dependencies)} "
        f"({package.size}); "
        f"{' and '.join(SHARED)} are shared with Paretone …"
    )
    unfinished = folder.with_name(f"{folder.name}.unfinished-{os.getpid()}")
    try:
        _install(unfinished, say, package)
        (unfinished / _READY).write_text(_contents(package), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
    except OSError as error:
        raise PlainError(f"The environment in {folder} could not be made: {error}.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return python_of(folder)


def inside(package: Package = F5) -> bool:
    """Whether this process runs in the environment."""
    return Path(sys.prefix).resolve() == default_folder(package).resolve()


def measured_inside(package: Package, name: str, arguments: argparse.Namespace) -> Report:
    """The report of the comparison called ``name`` with these ``arguments``, made in the package's environment, which
    is made first if it is missing."""
    options = ["--json"]
    for option, value in vars(arguments).items():
        if option != "json" and value not in (None, False, 0, []):
            given = [] if value is True else list(map(str, value)) if isinstance(value, list) else [str(value)]
            options += [f"--{option.replace('_', '-')}", *given]
    command = [str(environment(_say, package=package)), "-m", "tests.peers", name, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    data = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {"error": "it ended without a result."}
    if done.returncode:
        raise PlainError(f"The official package's environment could not measure: {data['error']}")
    return Report(**data | {"interval": tuple(data["interval"]), "rows": tuple(data["rows"])})


def import_models(package: Package = F5) -> None:
    """Make the official classes importable (``f5_tts.model.cfm``), without imports that Paretone does not run."""
    if package.models in sys.modules:
        return
    spec = importlib.util.find_spec(package.top)
    if spec is None:
        raise PlainError(f"The official {package.title} is not installed here; use the Python of its own environment.")
    for name, folder in package.folders.items():
        made = sys.modules.setdefault(name, types.ModuleType(name))
        made.__path__ = [str(Path(place) / folder) for place in spec.submodule_search_locations or ()]
    for name, taken in package.unused.items():
        module = sys.modules.setdefault(name, types.ModuleType(name))
        # find_spec refuses modules without a spec.
        module.__spec__ = module.__spec__ or ModuleSpec(name, None)
        vars(module).update({one: _unused for one in taken if one not in vars(module)})


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _unused(*arguments: object, **options: object) -> None:
    raise PlainError("The official package called what Paretone's comparisons leave out; see Package.unused.")


def _contents(package: Package) -> str:
    """Contents and purpose of an environment; if they change, it is out of date."""
    shared = [f"{name}=={version(name)}" for name in SHARED]
    return "\n".join([sys.version, *_places(), package.pinned, *package.dependencies, *shared])


def _places() -> list[str]:
    """Paths of the packages shared with this Python, Paretone last."""
    paths = sysconfig.get_paths()
    return [*dict.fromkeys((paths["purelib"], paths["platlib"])), str(Path(paretone.__file__).resolve().parents[1])]


def _install(folder: Path, say: Callable[[str], None], package: Package) -> None:
    venv.EnvBuilder(clear=True, symlinks=os.name != "nt").create(folder)
    base = {"base": str(folder), "platbase": str(folder), "installed_base": str(folder)}
    packages = Path(sysconfig.get_path("purelib", scheme="venv", vars=base))
    *shared, source = _places()
    # A folder named in a .pth file is searched, but its own .pth files (editable installs) are not read; this reads
    # them.
    lines = [f"import site; site.addsitedir({place!r})" for place in shared]
    (packages / "paretone.pth").write_text("\n".join([*lines, source, ""]), encoding="utf-8")
    pins = folder / "shared.txt"
    pins.write_text("\n".join(f"{name}=={version(name)}" for name in SHARED), encoding="utf-8")
    # The package alone, for its own requirements name everything that it can do; then what its models need.
    install(folder, ["--no-deps", package.pinned], say, f"official {package.title}")
    install(folder, ["--constraint", str(pins), *package.dependencies], say, f"official {package.title}")
    if any(one.startswith("torchaudio") for one in package.dependencies) and not _imports(folder, "torchaudio"):
        # The registry's torchaudio is compiled for CUDA and fails with a torch without it. What the models use of it is
        # Python, and it starts without its libraries when they are not there.
        for library in (packages / "torchaudio" / "lib").iterdir():
            if library.suffix in (".so", ".pyd", ".dll", ".dylib"):
                library.unlink()
    made = f"o.import_models(o.PACKAGES[{package.name!r}])"
    if not _imports(folder, f"tests.peers.official as o; {made}; import {package.models}"):
        raise PlainError(
            f"The official {package.title} was installed into {folder}, but its models cannot be imported."
        )


def install(
    folder: Path, arguments: Sequence[str], say: Callable[[str], None], what: str = f"official {F5.title}"
) -> None:
    """Have pip install ``what`` into the environment in ``folder``. Raises :class:`RegistryUnreachable`, or
    :class:`PlainError` with pip's reason."""
    # What is imported is compiled then; the most is never.
    command = [sys.executable, "-m", "pip", "--python", str(python_of(folder)), "install", "--no-warn-conflicts"]
    command.append("--no-compile")
    process = subprocess.Popen(
        [*command, "--progress-bar", "off", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = []
    with process:
        for line in process.stdout or ():
            lines.append(line.strip())
            if lines[-1].startswith(("Downloading", "Installing", "Successfully")):
                say(f"  {lines[-1]}")
    if process.returncode == 0:
        return
    reasons = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    reason = reasons[0].removeprefix("ERROR:").strip() if reasons else "pip said nothing"
    if any(sign in line.lower() for line in lines for sign in _CONNECTION):
        raise RegistryUnreachable(
            f"The {what} could not be fetched, for the package registry does not answer ({reason}); "
            "connect to the internet and try again."
        )
    raise PlainError(f"The {what} could not be installed: {reason}.")


def _imports(folder: Path, what: str) -> bool:
    return subprocess.run([python_of(folder), "-c", f"import {what}"], capture_output=True, cwd=ROOT).returncode == 0
