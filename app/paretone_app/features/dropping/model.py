"""What is dropped or given on the command line, by what it is: voice, text, model, study or profile. No Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from paretone.audio.recording import SOUND
from paretone.errors import PlainError, TextError
from paretone.front_end.speakable import LARGEST_TEXT, require_text
from paretone.models import catalogue
from paretone.models.files import config_file
from paretone.models.files.config_file import ConfigFile
from paretone.reading import read_text
from paretone.studies.store import DATABASE

TEXT = frozenset((".txt", ".text", ".md"))
PROFILE = frozenset((".json", ".paretone"))
MOST_LOOKED_AT = 2_000
"""Files of a folder."""
DEEPEST_WEIGHTS = 3
"""Folders within each other in which a model has weights, its own counted."""
KNOWN = "a recording, a text, a profile, a study, or a folder with a model or a study"


class Target(Enum):
    """Where something goes, with the words shown for it."""

    VOICE = "Use as voice"
    TEXT = "Use as text"
    MODEL = "Load as"
    STUDY = "Open study"
    PROFILE = "Open profile"
    NOTHING = ""


@dataclass(frozen=True)
class Dropped:
    """Something over the window, and what becomes of it."""

    target: Target
    sentence: str
    """What will happen, or why nothing will."""
    path: Path = Path()
    text: str = ""
    model: str = ""
    """Id of the model whose weights a folder holds."""


def dropped(paths: Sequence[Path], text: str, remote: bool = False) -> Dropped:
    """What is to be done with files or folders, or a ``text``; ``remote``: whether there are addresses of other
    computers."""
    if remote:
        return _refused("Only files of this computer can be dropped: save it first.")
    if len(paths) > 1:
        return _refused(f"Drop one thing at a time, not {len(paths)}.")
    if paths:
        return _of_folder(paths[0]) if paths[0].is_dir() else _of_file(paths[0])
    if text.strip():
        return Dropped(Target.TEXT, Target.TEXT.value, text=text)
    return _refused(f"There is nothing to use in this: drop {KNOWN}.")


def text_of(path: Path) -> str:
    """The text in a file. Raises :class:`TextError` if it cannot be read or spoken."""
    try:
        text = read_text(path, "utf-8-sig", LARGEST_TEXT)
    except OSError as error:
        raise TextError(f"The text {path} could not be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise TextError(f"The text {path} is not UTF-8 (byte {error.start + 1}); save it as UTF-8.") from error
    require_text(text)
    return text


def _of_file(path: Path) -> Dropped:
    ending = path.suffix.lower()
    if ending in SOUND:  # Setup refuses what cannot be read, with a reason.
        return Dropped(Target.VOICE, Target.VOICE.value, path)
    if ending in TEXT:
        return Dropped(Target.TEXT, Target.TEXT.value, path)
    if ending == ".toml" or path.name == DATABASE:
        return Dropped(Target.STUDY, Target.STUDY.value, path if ending == ".toml" else path.parent)
    if ending in PROFILE:
        return Dropped(Target.PROFILE, Target.PROFILE.value, path)
    if ending in config_file.WEIGHTS:
        return _model(_folder_of(path))
    return _refused(f"{path.name} cannot be used here: Paretone opens {KNOWN}.")


def _of_folder(path: Path) -> Dropped:
    if (path / DATABASE).is_file():
        return Dropped(Target.STUDY, Target.STUDY.value, path)
    try:
        looked_at = [one for one, _ in zip(path.rglob("*"), range(MOST_LOOKED_AT), strict=False)]
    except OSError as error:
        return _refused(f"The folder {path.name} cannot be read: {error.strerror or error}.")
    if any(one.suffix.lower() in config_file.WEIGHTS for one in looked_at):
        return _model(path)
    return _refused(f"There are neither weights nor a study in the folder {path.name}: Paretone opens {KNOWN}.")


def _model(folder: Path) -> Dropped:
    entry = catalogue.entry(_model_in(folder))
    return Dropped(Target.MODEL, f"{Target.MODEL.value} {entry.title}", folder, model=entry.id)


def _model_in(folder: Path) -> str:
    """The model that a folder's weights are likely of, by its files and its name."""
    return _by_layout(folder) or _by_name(folder) or _by_config(folder) or "F5TTS_v1_Base"


def _folder_of(weights: Path) -> Path:
    """The folder of the model that a weight file belongs to, which may lie in a folder within it."""
    if _by_layout(weights.parent) or _by_name(weights.parent):
        return weights.parent
    return next((one for one in weights.parents[1:DEEPEST_WEIGHTS] if _by_layout(one)), weights.parent)


def _by_layout(folder: Path) -> str:
    """The model whose files lie so; bundled models are told from the releases that they resemble."""
    if (folder / "diffusion_transformer").is_dir():
        return "megatts3-mini" if (folder / "diffusion_transformer" / "model.safetensors").is_file() else "MegaTTS3"
    if (folder / "llm.pt").is_file() and (folder / "flow.pt").is_file():
        return "CosyVoice2-0.5B"
    if (folder / "layout.json").is_file():
        return "omni-mini" if (folder / "codec").is_dir() or _by_config(folder) == "OmniVoice" else "lm-mini"
    model = _entries(folder / "model.yaml").get("model")
    return "f5-mini" if isinstance(model, dict) and model.get("text_frontend") == "natural phones" else ""


def _by_name(folder: Path) -> str:
    """The model whose name is in the folder's: the longest, since one is the beginning of another."""
    spelled = _spelled(folder.resolve().name)
    return max((one.id for one in catalogue.MODELS if _spelled(one.id) in spelled), key=len, default="")


def _by_config(folder: Path) -> str:
    described = _entries(folder / "config.json")
    kind = f"{described.get('model_type', '')} {described.get('architectures', '')}".lower()
    return "OmniVoice" if "omnivoice" in kind else "Llasa-1B" if "llama" in kind else ""


def _entries(path: Path) -> Mapping[str, object]:
    """What a description of a model says; nothing if it cannot be read, which loading says."""
    try:
        return ConfigFile.read(path).entries
    except PlainError:
        return {}


def _spelled(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _refused(sentence: str) -> Dropped:
    return Dropped(Target.NOTHING, sentence)
