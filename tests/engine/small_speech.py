"""A real F5 speech model of a few thousand weights, so that the engine's jobs run in milliseconds.

Everything but its size and its reading of texts is what the bundled model uses. What it says is noise.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from paretone.models.base import IntervalWeights, ModelInfo, Voice, WeightSet
from paretone.models.f5.adapter import F5Speech
from paretone.models.f5.checkpoint import backbone_weights
from paretone.models.f5.config import HOP, OPTIONS, SAMPLE_RATE, BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.f5.front_end import Passage, Passages, Prompt, PromptLevel
from paretone.models.f5.unett import UNetT
from paretone.models.files.checkpoints import load_strictly, read_checkpoint
from paretone.models.files.trained_weights import PREFIX, find_weight_sets, interval_metadata, save_in_half
from paretone.models.networks.diffusion import IntervalEmbedding, add_interval
from paretone.models.networks.vocos import Vocos, VocosConfig
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting

LAYERS = 3
BANDS = 8
PROMPT_FRAMES = 10
CONFIG = BackboneConfig("DiT", 16, LAYERS, 1, dim_head=16, text_dim=8, mel_dim=BANDS, text_num_embeds=4)
FLAT_CONFIG = BackboneConfig("UNetT", 16, 4, 1, dim_head=16, text_dim=8, mel_dim=BANDS, text_num_embeds=4)
"""E2-TTS's."""
FINGERPRINT = "0" * 64
VOICE = Voice("noise", "Noise", "noise.wav", "A short prompt.")
ENDLESS = "endless"
"""A text whose duration no memory can hold."""


def setting(steps: int = 4, **options: object) -> Setting:
    return Setting("small", Values({"steps": steps, "spacing": "uniform", "cross_fade": 0.0, **options}))


class Careless(F5Speech):
    """An adapter that does not look at what it made."""

    @staticmethod
    def _require_sound(plan: object, samples: np.ndarray) -> None:
        pass


class _Reader:
    """One passage per sentence, twelve frames each."""

    def passages(self, text: str, prompt: Prompt, how: object) -> Passages:
        frames = prompt.frames + (10**14 if text == ENDLESS else 12)
        sentences = [one.strip() for one in text.split(".") if one.strip()]
        ids = torch.tensor([[1, 2, 3]])
        return Passages(tuple(Passage(one, ids, frames) for one in sentences), ("Read by the test.",))


def load(
    model: str = "small",
    folder: str = "",
    variant: str = "",
    device: str = "cpu",
    status: Callable[[str], None] = lambda text: None,
    check: Callable[[], None] = lambda: None,
) -> F5Speech:
    """Make the model; the variant ``flat`` has E2-TTS's backbone, ``damaged`` and ``careless`` (see :class:`Careless`)
    have a weight that is not a number, ``huge`` does not fit into memory, ``strange`` fails.

    With a ``folder`` it reads ``weights`` there, which need not exist, and offers the CFG-free weights that
    :func:`save_cfg_free` put there.
    """
    status("Making weights…")
    if folder:
        (Path(folder) / "weights").read_bytes()
    if variant == "huge":
        torch.empty(10**14)
    if variant == "strange":
        raise KeyError("an error that nobody foresaw")
    check()
    with torch.random.fork_rng():
        backbone = make_backbone(1, FLAT_CONFIG if variant == "flat" else CONFIG)
        vocoder = Vocos(VocosConfig(BANDS, 16, 16, 1)).eval()
        mel = torch.randn(1, PROMPT_FRAMES, BANDS)
    if variant in ("damaged", "careless"):
        with torch.no_grad():
            backbone.proj_out.bias[0] = torch.nan
    info = ModelInfo(
        id=model,
        title="Small",
        family="flow",
        variant="small",
        checkpoint="made by the test",
        fingerprint=FINGERPRINT,
        licence="none",
        device=device,
        precision="float32",
        sample_rate=SAMPLE_RATE,
        layers=backbone.config.depth,
        branches=2,
        parameters=sum(one.numel() for one in backbone.parameters()),
        text_front_end="test",
        knobs=OPTIONS,
        precisions=("float32", "bfloat16"),
        weight_sets=find_weight_sets([Path(folder)] if folder else [], FINGERPRINT),
    )
    prompt = Prompt(
        voice=VOICE,
        samples=torch.zeros(PROMPT_FRAMES * HOP),
        mel=mel,
        frames=PROMPT_FRAMES,
        level=PromptLevel(1.0),
        seconds=PROMPT_FRAMES * HOP / SAMPLE_RATE,
    )
    speech = Careless if variant == "careless" else F5Speech
    return speech(info, backbone, vocoder, _Reader(), lambda voice: prompt, _read_weights)


def make_backbone(seed: int, config: BackboneConfig = CONFIG) -> DiT | UNetT:
    torch.manual_seed(seed)
    backbone = (DiT if config.backbone == "DiT" else UNetT)(config).eval()
    torch.nn.init.normal_(backbone.proj_out.weight, std=0.1)
    return backbone


def save_cfg_free(path: Path, weight: float, base: str = FINGERPRINT, **more: str) -> None:
    """Write weights as a training would that started from the model, which these only claim, with ``more`` metadata."""
    weights = {f"transformer.{name}": value for name, value in make_backbone(2).state_dict().items()}
    metadata = {"cfg_free": "true", "weight": f"{weight:.6g}", "method": "model-guidance", "base": base, **more}
    save_file(weights, path, metadata)


def save_intervals(path: Path, base: str = FINGERPRINT, learnt: bool = False, guidance: float = 2.0) -> Path:
    """Write the model's own weights with the embedding of intervals, which is as good as zero, or has ``learnt``."""
    backbone = make_backbone(1)
    add_interval(backbone)
    embedding = backbone.time_embedding
    assert isinstance(embedding, IntervalEmbedding)
    # Zeros would be refused as no weights at all.
    torch.nn.init.normal_(embedding.interval_mlp[2].weight, std=0.5 if learnt else 1e-6)
    described = IntervalWeights("", "", 4, -1.0, Values(guidance=guidance), "displacement")
    named = {PREFIX + name: value.half().float() for name, value in backbone.state_dict().items()}
    save_in_half(path, named, interval_metadata(described, base, 7))
    return path


def _read_weights(chosen: WeightSet) -> DiT:
    backbone = make_backbone(0)
    path = Path(chosen.path)
    load_strictly(backbone, backbone_weights(read_checkpoint(path), str(path)), str(path))
    return backbone
