"""A language model with fewer layers as files that others load: a Hugging Face checkpoint, or CosyVoice's ``llm.pt``.

Students are written as they are, drafts with the frozen layers that their own file leaves out. Layers are numbered from
0 without gaps; ``provenance.json`` and the configuration say which of the original ones they were.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from engine import __version__
from engine.errors import CheckpointError
from engine.models.base import DraftWeights, StudentWeights
from engine.models.checkpoints import read_weights
from engine.models.lm_mini.checkpoint import CONFIG, WEIGHTS, LmMiniFolder
from engine.models.lm_mini.layout import LAYOUT_FILE
from engine.setting import Engaged
from engine.techniques import knobs_of, spade, speculative
from engine.techniques.spade.pruning import pruned, require_layers

PROVENANCE, SETTINGS, RETAINED = "provenance.json", "speculative.json", "retained_layers"
LLM, BLANK_CONFIG = "llm.pt", "config.json"


def student_contents(folder: LmMiniFolder, base: str, student: StudentWeights) -> dict[str, bytes]:
    """The files of a student of the model in ``folder``, which ``AutoModelForCausalLM.from_pretrained`` loads.

    ``base`` is the fingerprint of that model. Raises :class:`CheckpointError`.
    """
    tensors = read_weights(Path(student.path), folder.check)
    about = {
        "technique": spade.TECHNIQUE.title,
        "paper": spade.TECHNIQUE.paper.reference,
        "stage": student.stage,
        "minutes": student.minutes,
        "file": student.fingerprint,
    }
    return _checkpoint(folder, base, tensors, student.retained, about)


def draft_contents(folder: LmMiniFolder, base: str, draft: DraftWeights, engaged: Engaged) -> dict[str, bytes]:
    """The files of a draft, complete with the layers that were not trained, and the settings of ``engaged`` under which
    it is to be used. Raises :class:`CheckpointError`."""
    trained = read_weights(Path(draft.path), folder.check)
    tensors = pruned(read_weights(folder.weights_path, folder.check) | trained, draft.retained)
    about = {
        "technique": speculative.TECHNIQUE.title,
        "paper": speculative.TECHNIQUE.paper.reference,
        "trained_layers": list(draft.trained),
        "file": draft.fingerprint,
    }
    settings = {name: value for name, value in knobs_of(engaged).items() if name != "draft"}
    settings |= {"target": base, "options": "final distributions are compared: sampler and history of the target"}
    return {**_checkpoint(folder, base, tensors, draft.retained, about), SETTINGS: _json(settings)}


def pruned_llm(weights: Mapping[str, Tensor], config: Mapping, retained: Sequence[int]) -> dict[str, bytes]:
    """CosyVoice 2's ``llm.pt`` with only the layers ``retained``, and the ``config.json`` of ``CosyVoice-BlankEN`` with
    so many: with both in their places, the official class loads it strictly.

    ``weights`` and ``config`` are the official ones. Raises :class:`engine.errors.SettingError`.
    """
    require_layers(retained, config["num_hidden_layers"])
    buffer = io.BytesIO()
    # What shares memory with others would be written whole.
    torch.save({name: value.clone() for name, value in pruned(weights, retained).items()}, buffer)
    return {LLM: buffer.getvalue(), BLANK_CONFIG: _json(_shallower(config, retained))}


def _checkpoint(
    folder: LmMiniFolder, base: str, tensors: Mapping[str, Tensor], retained: Sequence[int], about: Mapping[str, object]
) -> dict[str, bytes]:
    try:
        config = json.loads((folder.root / CONFIG).read_text(encoding="utf-8"))
        layout = (folder.root / LAYOUT_FILE).read_bytes()
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder.root} cannot be read ({error}); restore the model folder.") from error
    provenance = {
        "made_by": f"Paretone {__version__}",
        "base": base,
        "base_layers": config["num_hidden_layers"],
        RETAINED: list(retained),
        **about,
    }
    return {
        WEIGHTS: save({name: value.contiguous() for name, value in tensors.items()}, {"format": "pt"}),
        CONFIG: _json(_shallower(config, retained)),
        LAYOUT_FILE: layout,
        PROVENANCE: _json(provenance),
    }


def _shallower(config: Mapping, retained: Sequence[int]) -> dict[str, object]:
    """``config`` with so many layers; what it lists by layer goes with them."""
    fewer = {**config, "num_hidden_layers": len(retained), RETAINED: list(retained)}
    if "layer_types" in config:
        fewer["layer_types"] = [config["layer_types"][layer] for layer in retained]
    if "max_window_layers" in config:
        fewer["max_window_layers"] = min(config["max_window_layers"], len(retained))
    return fewer


def _json(data: Mapping[str, object]) -> bytes:
    return (json.dumps(data, indent=1) + "\n").encode()
