# Copyright 2026 The Paretone authors. Licensed under the Apache License, Version 2.0:
# https://www.apache.org/licenses/LICENSE-2.0
"""Runs a Paretone profile in the official Triton and TensorRT-LLM recipe of F5-TTS, which has its number of steps, its
sway and its guidance in the code (f5-tts 1.1.20: 32, -1 and 2; earlier ones 16).

Lies next to the recipe's ``f5_tts_trtllm.py`` and its own ``f5_triton.json``; ``install.py`` puts both there. The
recipe's class keeps engine, text embedding and batching; its times and its loop are replaced. The state is kept in
float32. A profile without guidance runs one branch, where the engine takes such a batch (``install.py`` allows it).
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

FILE = "f5_triton.json"
KIND = "paretone profile for f5-triton"
SCHEMA = 1
SMALLEST_GUIDANCE = 1e-5
"""Below this the official code runs one branch."""
FEATURES = 256
"""Number of time features, as in the recipe's engine."""


class ProfileMismatch(ValueError):
    """The profile cannot be used with this recipe."""


def read(path: Path) -> dict[str, Any]:
    """The profile at ``path``, checked. Raises :class:`ProfileMismatch`."""
    try:
        profile = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ProfileMismatch(f"{path} cannot be read: {error}") from None
    if not isinstance(profile, dict) or profile.get("kind") != KIND:
        raise ProfileMismatch(f"{path} is not a profile; export one with: paretone export --target f5-triton")
    if profile.get("schema") != SCHEMA:
        raise ProfileMismatch(f"The profile's schema is {profile.get('schema')!r}, but this module reads {SCHEMA}.")
    if profile.get("solver") not in ("euler", "midpoint") or len(profile.get("times", ())) < 2:
        raise ProfileMismatch(f"{path} is damaged: its solver or its times are missing.")
    return profile


def evaluation_times(times: list[float], solver: str) -> list[float]:
    """Times at which the engine runs: the beginning of each step, and for midpoint also its middle."""
    if solver == "euler":
        return times[:-1]
    return [time for start, end in pairwise(times) for time in (start, start + (end - start) * 0.5)]


def __getattr__(name: str) -> Any:
    """``F5TTS``: the recipe's class with this sampler. Made on first use, so that the module can be imported without
    TensorRT."""
    if name != "F5TTS":
        raise AttributeError(name)
    from f5_tts_trtllm import F5TTS as recipe  # noqa: N811

    made = type("F5TTS", (Sampler, recipe), {"forward": recipe.cuda_stream_guard(Sampler.flow)})
    globals()[name] = made
    return made


class Sampler:
    """The profile's changes to the recipe's class, which has all attributes below."""

    device: torch.device
    dtype: str
    session: Any
    stream: Any
    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]
    _setup: Any

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.profile = read(Path(__file__).resolve().parent / FILE)
        times = self.profile["times"]
        self.steps = torch.diff(torch.tensor(times, dtype=torch.float32)).tolist()
        evaluations = evaluation_times(times, self.profile["solver"])
        self.nfe_steps = len(evaluations)
        # Sines and cosines of the evaluations, (1, evaluations, FEATURES), as in the official embedding.
        half = FEATURES // 2
        frequencies = 1000 * torch.exp(torch.arange(half, dtype=torch.float32) * -(math.log(10000) / (half - 1)))
        angles = torch.tensor(evaluations, dtype=torch.float32)[:, None] * frequencies
        self.time_expand = torch.cat([angles.sin(), angles.cos()], dim=-1)[None].to(self.device)

    def flow(
        self,
        noise: torch.Tensor,
        cond: torch.Tensor,
        time_expand: torch.Tensor,
        rope_cos: torch.Tensor,
        rope_sin: torch.Tensor,
        input_lengths: torch.Tensor,
        delta_t: torch.Tensor,
        use_perf: bool = False,
    ) -> torch.Tensor:
        """Return the mels (requests, frames, bands). All inputs hold each request twice: conditional, then
        unconditional."""
        from tensorrt_llm._utils import str_dtype_to_torch

        requests, strength = noise.shape[0] // 2, self.profile["guidance"]
        guided_steps = self.profile.get("guided_steps")
        if guided_steps is None:
            guided_steps = len(self.steps)
        # An engine built without install.py takes no batch of one: then the unconditional branch runs unused.
        least = int(self.session.engine.get_tensor_profile_shape("noise", 0)[0][0])
        fewest = requests if requests >= least else 2 * requests
        kind = str_dtype_to_torch(self.dtype)
        fixed = {"cond": cond.to(kind), "rope_cos": rope_cos.to(kind), "rope_sin": rope_sin.to(kind)}
        fixed["input_lengths"] = input_lengths.to(torch.int32)
        state = self._noise(noise[:requests], input_lengths).float()

        def velocity(now: torch.Tensor, evaluation: int, step: int) -> torch.Tensor:
            guided = strength >= SMALLEST_GUIDANCE and step < guided_steps
            rows = 2 * requests if guided else fewest
            inputs = {"noise": torch.cat([now, now]).to(kind), "time": time_expand[:, evaluation].to(kind), **fixed}
            found = self._run({name: value[:rows].contiguous() for name, value in inputs.items()})
            if not guided:
                return found[:requests]
            conditional, alone = found.chunk(2)
            return conditional + (conditional - alone) * strength

        for step, length in enumerate(self.steps):
            if self.profile["solver"] == "euler":
                state = state + length * velocity(state, step, step)
            else:
                middle = state + length / 2 * velocity(state, 2 * step, step)
                state = state + length * velocity(middle, 2 * step + 1, step)
        return state

    def _run(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Run the engine once: velocities (rows, frames, bands), float32."""
        rows, frames, _ = inputs["noise"].shape
        self._setup(rows, frames)
        self.inputs.clear()
        self.inputs.update(inputs)
        self.session.set_shapes(self.inputs)
        if not self.session.run(self.inputs, self.outputs, self.stream.cuda_stream):
            raise RuntimeError("The engine failed.")
        return self.outputs["denoised"].float()

    def _noise(self, noise: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Noise of each request, drawn from the profile's seed as in the official package: on the CPU, for the
        request's own frames. Without a seed, the recipe's noise."""
        if self.profile["seed"] is None:
            return noise
        drawn = torch.zeros(noise.shape, dtype=torch.float32)
        for row, length in zip(drawn, lengths.tolist(), strict=False):  # Lengths are given twice.
            generator = torch.Generator().manual_seed(self.profile["seed"])
            row[:length] = torch.randn(length, noise.shape[2], generator=generator)
        return drawn.to(noise.device)
