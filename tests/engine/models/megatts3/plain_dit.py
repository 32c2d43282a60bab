"""MegaTTS 3's transformer written down as the facts say it, with nothing saved: what savings are compared with.

Each branch is its own pass; text, prompt, times, modulation and rotations are computed anew for every evaluation.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from paretone.models.megatts3.config import DiTConfig
from paretone.models.megatts3.dit import MegaDiT
from tests.engine.models.f5.plain_dit import plain_end, plain_layers

SMALL = DiTConfig(
    dim=64,
    layers=3,
    heads=2,
    ff_hidden=96,
    latent=8,
    local_cond=24,
    ctx_mask=6,
    phones=40,
    tones=12,
    phone_layers=2,
    phone_heads=2,
    phone_ff_hidden=80,
)


def small_mega_dit() -> MegaDiT:
    """Random weights everywhere, those that begin at zero included."""
    torch.manual_seed(5)
    model = MegaDiT(SMALL)
    with torch.no_grad():
        nn.init.normal_(model.ph_encoder.pre.proj.weight, std=0.1)
    return model.eval().requires_grad_(False)


@dataclass(frozen=True)
class Inputs:
    state: Tensor
    context: Tensor
    is_prompt: Tensor
    phones: Tensor
    tones: Tensor
    mel2ph: Tensor

    @property
    def conditions(self) -> tuple[Tensor, ...]:
        """The arguments of ``begin`` before the times."""
        return self.context, self.is_prompt, self.phones, self.tones, self.mel2ph

    @property
    def frames(self) -> int:
        return self.state.shape[1]


def random_inputs(frames: int = 20, phones: int = 11, prompt: int = 6, seed: int = 3) -> Inputs:
    """A prompt of six frames, phones of all lengths, and a silent last frame that belongs to no phone."""
    generator = torch.Generator().manual_seed(seed)
    state, context = torch.randn(2, 1, frames, SMALL.latent, generator=generator)
    is_prompt = torch.arange(frames)[None] < prompt
    places = torch.randint(1, phones + 1, (1, 4 * frames - 4), generator=generator).sort().values
    return Inputs(
        state,
        context * is_prompt[..., None],
        is_prompt,
        torch.randint(1, SMALL.phones - 1, (1, phones), generator=generator),
        torch.randint(0, SMALL.tones - 1, (1, phones), generator=generator),
        F.pad(places, (0, 4)),
    )


def plain_velocity(model: MegaDiT, inputs: Inputs, time: float, branch: int, state: Tensor | None = None) -> Tensor:
    """One branch's velocity, (1, frames, latent)."""
    state = inputs.state if state is None else state
    phones, tones, context = inputs.phones, inputs.tones, inputs.context
    if branch > 0:
        context = torch.zeros_like(context)
    if branch == 2:
        phones, tones = torch.full_like(phones, SMALL.phones - 1), torch.full_like(tones, SMALL.tones - 1)
    mask = inputs.is_prompt[..., None].float()
    condition = model.local_cond_project(torch.cat([context, model.ctx_mask_proj(mask)], dim=-1))
    hidden = model.x_prenet(state * (1 - mask)) + model.prenet(condition) + plain_text(model, phones, tones, inputs)
    vector = model.f5_time_embed(torch.tensor([time]))
    hidden = plain_layers(model, hidden, vector, lambda forward, x: forward.w2(F.silu(forward.w1(x))))
    return model.postnet(model.encoder.out_proj(plain_end(model, hidden, vector)))


def plain_text(model: MegaDiT, phones: Tensor, tones: Tensor, inputs: Inputs) -> Tensor:
    """Phones to the layers' input, phone by phone and frame by frame."""
    half = SMALL.dim // 2
    rates = [math.exp(-math.log(10000) * index / (half - 1)) for index in range(half)]
    places = torch.tensor(
        [
            [math.sin(place * rate) for rate in rates] + [math.cos(place * rate) for rate in rates]
            for place in range(phones.shape[1])
        ]
    )
    encoded = model.ph_encoder(phones, model.tone_embed(tones) + places)[0]
    nothing = torch.zeros(SMALL.dim)
    sounding = torch.stack([encoded[place - 1] if place else nothing for place in inputs.mel2ph[0].tolist()])
    return model.ling_pre_net(sounding.T[None]).transpose(1, 2)
