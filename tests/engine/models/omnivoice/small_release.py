"""A release of OmniVoice in the official layout, with random weights and small sizes, codec included.

What it says is noise, but every step is real.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from paretone.models.base import Synthesis, Voice
from paretone.models.catalogue import voice
from paretone.models.kernels.fused_masked import MaskedRun
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.models.omnivoice.adapter import OmniVoiceSpeech
from paretone.observer import Observer
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from tests.engine.models import official

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "ar"
CODES = 64
"""Entries of each of the codec's codebooks."""
CONFIG = {
    "model_type": "omnivoice",
    "audio_vocab_size": CODES + 1,
    "audio_mask_id": CODES,
    "num_audio_codebook": 8,
    "audio_codebook_weights": [8, 8, 6, 6, 4, 4, 2, 2],
    "llm_config": {
        "model_type": "qwen3",
        "vocab_size": 1100,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
        "attention_bias": False,
        "use_sliding_window": False,
    },
}
TEXT = "Rice is often served."
LONG = "Rice is often served in round bowls. The juice of lemons makes fine punch. The box was thrown beside the truck."


def write_release(root: Path, seed: int = 0, layers: int = 2) -> Path:
    declared = {**CONFIG, "llm_config": {**CONFIG["llm_config"], "num_hidden_layers": layers}}
    (root / "audio_tokenizer").mkdir(parents=True)
    torch.manual_seed(seed)
    network = MaskedNetwork(MaskedConfig.read(declared))
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if not name.endswith("norm.weight"):
                weight.copy_(torch.randn(weight.shape) * weight.shape[-1] ** -0.5)
    save_file(network.state_dict(), root / "model.safetensors", {"format": "pt"})
    (root / "config.json").write_text(json.dumps(declared))
    shutil.copyfile(GOLDEN / "omnivoice_tokenizer" / "tokenizer.json", root / "tokenizer.json")
    codec = json.loads((GOLDEN / "higgs_v2.json").read_text(encoding="utf-8"))["config"]
    # The fixture's bandwidths are for more codebooks than it has.
    (root / "audio_tokenizer" / "config.json").write_text(json.dumps(codec))
    shutil.copyfile(GOLDEN / "higgs_v2.weights.safetensors", root / "audio_tokenizer" / "model.safetensors")
    return root


def load(root: Path) -> OmniVoiceSpeech:
    return official.load("OmniVoice", root)


def setting(*techniques: UsedTechnique, seed: int = 0, **options: object) -> Setting:
    """Without a voice, in few steps, where nothing else is said."""
    return official.setting("OmniVoice", *techniques, seed=seed, **{"clone": False, "steps": 6, **options})


def spoken(
    model: OmniVoiceSpeech, chosen: Setting, text: str = TEXT, observer: object = None, by: Voice | None = None
) -> Synthesis:
    return synthesise(model, text, by or voice(), chosen, (), observer or Observer())


def fail_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next evaluation fails as on a graphics card that is lost."""
    failures = iter([RuntimeError("CUDA error: unspecified launch failure")])
    scores = MaskedRun.scores

    def failing(self: MaskedRun, *given: object) -> object:
        for error in failures:
            raise error
        return scores(self, *given)

    monkeypatch.setattr(MaskedRun, "scores", failing)
