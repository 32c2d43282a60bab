"""A speech language model of a few thousand weights in the bundled one's layout, on disk, with drafts and students.

Everything but its size is what the bundled model uses, voices and vocoder included. What it says is noise, which ends
when :data:`END_SCORE` says so.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from paretone.front_end.phones import PHONES
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.layer_importance import FILE, WORD_ERROR, ImportanceRecord, LayerImportance, pruned
from paretone.models.minis.natural_decoder import LATENT
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.quantised_mel import QuantisedMel, SpeechTokenizer, SpeechTokenizerConfig

LAYERS = 3
CODES = 24
END_OF_TEXT, FIRST_CODE = len(PHONES), len(PHONES) + 1
START_OF_SPEECH, END_OF_SPEECH = FIRST_CODE + CODES, FIRST_CODE + CODES + 1
HIDDEN = 16
CONFIG = {"model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": 24, "num_hidden_layers": LAYERS}
CONFIG |= {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": END_OF_SPEECH + 1}
CONFIG |= {"rms_norm_eps": 1e-5, "rope_theta": 10000.0}
TOKENIZER = SpeechTokenizerConfig(bands=LATENT, levels=(4, 3, 2), width=8, inner_width=8, decoder_token_layers=2)
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def write_model(root: Path, end_score: float = -100.0, seed: int = 0) -> Path:
    """Write the model's folder to ``root``. The score of the end is near ``end_score`` at every token: far below or
    far above all others, it never comes or comes at once."""
    root.mkdir(parents=True)
    torch.manual_seed(seed)
    save_file(_weights(end_score), root / "model.safetensors", {"format": "pt"})
    (root / "config.json").write_text(json.dumps(CONFIG))
    layout = {"phones": " ".join(PHONES), "end_of_text": END_OF_TEXT, "first_code": FIRST_CODE, "codes": CODES}
    layout |= {"start_of_speech": START_OF_SPEECH, "end_of_speech": END_OF_SPEECH}
    (root / "layout.json").write_text(json.dumps(layout))
    write_codec(root / "tokenizer", SpeechTokenizer(TOKENIZER))
    return root


def write_codec(root: Path, codec: QuantisedMel) -> None:
    """Write a random codec to ``root``. An untrained one says next to nothing: this one is as loud as speech."""
    root.mkdir(parents=True, exist_ok=True)
    codec.decoder["leave"].weight.detach().normal_(std=0.5)
    save_file(codec.state_dict(), root / "model.safetensors")
    (root / "config.json").write_text(json.dumps(asdict(codec.config)))


def _weights(end_score: float) -> dict[str, Tensor]:
    transformer = CausalTransformer(CausalConfig.read(CONFIG))
    with torch.no_grad():
        for name, weight in transformer.named_parameters():
            if not name.endswith("norm.weight"):
                weight.copy_(torch.randn(weight.shape) * weight.shape[-1] ** -0.5)
    embedding, head = (torch.randn(CONFIG["vocab_size"], HIDDEN) for _ in range(2))
    # All hidden states share one large component, which only the end's row of the head looks at.
    embedding[:, 0] = 30.0
    head[:, 0] = 0.0
    head[END_OF_SPEECH] = 0.0
    head[END_OF_SPEECH, 0] = end_score
    weights = {f"model.{name}": value for name, value in transformer.state_dict().items()}
    return {name: value.half() for name, value in (weights | {EMBEDDING: embedding, HEAD: head}).items()}


def write_draft(root: Path, change: Callable[[Tensor], Tensor] = lambda weight: weight, base: str = "") -> Path:
    """A draft with the first and the last layer of the model in ``root``, of which the first and the head are what
    ``change`` makes of the model's own; of the checkpoint ``base`` instead, as it claims, where that is given."""
    weights = load_file(root / "model.safetensors")
    kept = {
        name: change(value).contiguous()
        for name, value in weights.items()
        if name.startswith("model.layers.0.") or name == HEAD
    }
    metadata = {"kind": "draft", "base": base or fingerprint(root / "model.safetensors")}
    metadata |= {"retained": json.dumps([0, LAYERS - 1]), "trained": "[0]", "head": "true"}
    return _write(root / "drafts" / "draft-2.safetensors", kept, metadata)


def write_student(
    root: Path,
    retained: tuple[int, ...] = (0, 2),
    stage: str = "recovered",
    minutes: float = 20.0,
    base: str = "",
    targets: str = "",
) -> Path:
    """A student that is the model in ``root`` without the layers that are not ``retained``; it has learnt nothing."""
    kept = pruned(load_file(root / "model.safetensors"), retained)
    metadata = {"kind": "student", "base": base or fingerprint(root / "model.safetensors")}
    metadata |= {"retained": json.dumps(list(retained)), "stage": stage, "minutes": str(minutes)}
    metadata |= {"targets": targets} if targets else {}
    ending = f"-{targets}" if targets else ""
    name = f"student-{len(retained)}-{stage.replace(':', '-')}{ending}.safetensors"
    return _write(root / "students" / name, kept, metadata)


def write_order(root: Path, values: tuple[float, ...] = (3.0, 1.0, 2.0)) -> None:
    measure = LayerImportance(WORD_ERROR, values)
    ImportanceRecord("lm-mini", fingerprint(root / "model.safetensors"), len(values), (measure,)).write(root / FILE)


def _write(path: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    save_file(dict(weights), path, dict(metadata))
    return path
