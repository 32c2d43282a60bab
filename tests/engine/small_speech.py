"""A real F5 speech model of a few thousand weights, so that the engine's jobs run in milliseconds.

Everything but its size and its reading of texts is what the bundled model uses. What it says is noise.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from engine.knobs import Values
from engine.models.base import ModelInfo, Voice
from engine.models.f5.adapter import F5Speech
from engine.models.f5.config import HOP, OPTIONS, SAMPLE_RATE, BackboneConfig
from engine.models.f5.dit import DiT
from engine.models.f5.duration import PromptLevel
from engine.models.f5.passages import Passage, Passages, Prompt
from engine.models.flow import Decoded
from engine.models.vocos import Vocos, VocosConfig
from engine.setting import Setting

LAYERS = 3
BANDS = 8
PROMPT_FRAMES = 10
VOICE = Voice("noise", "Noise", "noise.wav", "A short prompt.")
ENDLESS = "endless"
"""A text whose duration no memory can hold."""


def setting(steps: int = 4, **options: object) -> Setting:
    """A setting for the small model."""
    return Setting("small", Values({"steps": steps, "spacing": "uniform", "cross_fade": 0.0, **options}))


class Careless(F5Speech):
    """An adapter that does not look at what it made."""

    @staticmethod
    def _require_numbers(decoded: Decoded) -> None:
        pass


class _Reader:
    """One passage per sentence, twelve frames each."""

    def passages(self, text: str, prompt: Prompt, speed: float, quick_start: bool) -> Passages:
        frames = prompt.frames + (10**14 if text == ENDLESS else 12)
        sentences = [one.strip() for one in text.split(".") if one.strip()]
        ids = torch.tensor([[1, 2, 3]])
        return Passages(tuple(Passage(one, ids, frames) for one in sentences), ("Read by the test.",))


def load(
    model: str,
    folder: str,
    variant: str,
    device: str,
    status: Callable[[str], None],
    check: Callable[[], None],
) -> F5Speech:
    """Make the model; variants ``damaged`` and ``careless`` (see :class:`Careless`) have a weight that is not a number,
    ``huge`` does not fit into memory, ``strange`` fails.

    With a ``folder`` it reads ``weights`` there, which need not exist.
    """
    status("Making weights…")
    if folder:
        (Path(folder) / "weights").read_bytes()
    if variant == "huge":
        torch.empty(10**14)
    if variant == "strange":
        raise KeyError("an error that nobody foresaw")
    check()
    config = BackboneConfig("DiT", 16, LAYERS, 1, dim_head=16, text_dim=8, mel_dim=BANDS, text_num_embeds=4)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        backbone = DiT(config).eval()
        vocoder = Vocos(VocosConfig(BANDS, 16, 16, 1)).eval()
        torch.nn.init.normal_(backbone.proj_out.weight, std=0.1)
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
        fingerprint="0" * 64,
        licence="none",
        device=device,
        precision="float32",
        sample_rate=SAMPLE_RATE,
        layers=LAYERS,
        branches=2,
        parameters=sum(one.numel() for one in backbone.parameters()),
        text_front_end="test",
        knobs=OPTIONS,
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
    return speech(info, backbone, vocoder, _Reader(), lambda voice: prompt)
