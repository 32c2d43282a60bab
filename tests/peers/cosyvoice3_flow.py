"""CosyVoice 3's flow by the official loop and by ours: the same mel of the same tokens, at once and streamed.

No registry has the official code. The loop here is the official one (``cosyvoice/flow/flow_matching.py``,
``flow/DiT/dit.py`` and ``modules.py`` of FunAudioLLM/CosyVoice at ace7c47), operation by operation: both branches in
one batch, AdaLN, rotations and masks anew in every evaluation and layer, attention with a mask of all pairs, and in
streams everything so far again for every hop. Embedded tokens, a thousandth of the work, are ours. The last part of a
stream keeps the masks of the others in both; upstream lifts them there, which costs the same. ``tests/peers`` compares
the evaluation with recorded output of the official classes.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paretone.bench.budget import Budget
from paretone.bench.report import Report
from paretone.errors import PlainError
from paretone.measure.timing import Interval, interval, stopwatch
from paretone.models.cosyvoice2.mel_flow import MelStream, PlannedMel
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt
from paretone.models.cosyvoice3.config import FlowConfig
from paretone.models.cosyvoice3.flow import TokenToMel
from paretone.models.networks.incremental import Memory
from paretone.models.networks.shapes import uninitialised
from tests.engine.models.cosyvoice2.small_release import seeing_everything
from tests.peers.rounds import OFFICIAL, OURS, Limit, arithmetic, name_of, prepared, reported, rows_of, timed

AT_ONCE, STREAMED = "flow, at once", "flow, streamed"
PROMPT, TOKENS = 25, 75
"""One second of a voice, and three of speech: parts of 25 tokens."""
DEFINITION = (
    "Time of the official loop of CosyVoice 3's flow over time of ours for the same mel from the same random weights "
    f"of its size, {TOKENS / 25:.0f} s of speech after {PROMPT / 25:.0f} s of a voice, ten guided steps; median of "
    "paired, interleaved rounds."
)
LARGEST_DIFFERENCE = 1e-3
"""Of mels in float32, whose values reach some tens with random weights."""


def random_flow(config: FlowConfig, device: torch.device, precision: torch.dtype) -> TokenToMel:
    """The same random weights every time."""
    with uninitialised():
        made = TokenToMel(config)
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in made.parameters():
            nn.init.normal_(weight, std=0.02)
    made = made.to(device, precision)
    return made.eval().requires_grad_(False)


class OfficialEstimator:
    """The official ``DiT.forward``, on weights with their official names."""

    def __init__(self, weights: Mapping[str, Tensor], config: FlowConfig) -> None:
        self._weights, self._config = weights, config.estimator
        self._chunk = config.chunk * 2

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _causal(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return F.conv1d(F.pad(x, (weight.shape[-1] - 1, 0)), weight, bias, groups=16)

    def __call__(
        self, x: Tensor, mask: Tensor, mu: Tensor, t: Tensor, spks: Tensor, cond: Tensor, streaming: bool
    ) -> Tensor:
        """``x``, ``mu``, ``cond`` (B, bands, n), ``mask`` (B, 1, n), ``t`` (B,), ``spks`` (B, bands): velocities."""
        x, mu, cond = x.transpose(1, 2), mu.transpose(1, 2), cond.transpose(1, 2)
        spks = spks.unsqueeze(1).repeat(1, x.shape[1], 1)
        half = 128
        rates = torch.exp(
            torch.arange(half, device=x.device).float() * -(torch.log(torch.tensor(10000.0)) / (half - 1))
        )
        angles = 1000 * t.unsqueeze(1) * rates.unsqueeze(0)
        vector = torch.cat((angles.sin(), angles.cos()), dim=-1).to(t.dtype)
        vector = self._linear("time_embed.time_mlp.2", F.silu(self._linear("time_embed.time_mlp.0", vector)))
        x = self._linear("input_embed.proj", torch.cat([x, cond, mu, spks], dim=-1))
        place = F.mish(self._causal("input_embed.conv_pos_embed.conv1.0", x.permute(0, 2, 1)))
        x = F.mish(self._causal("input_embed.conv_pos_embed.conv2.0", place)).permute(0, 2, 1) + x
        length = x.shape[1]
        turns = torch.einsum(
            "i,j->ij", torch.arange(length, device=x.device).float(), self._weights["rotary_embed.inv_freq"].float()
        )
        turns = torch.stack((turns, turns), dim=-1).flatten(-2)
        if streaming:
            ends = (torch.arange(length, device=x.device) // self._chunk + 1) * self._chunk
            seen = torch.arange(length, device=x.device)[None] < ends[:, None]
            pairs = (mask.bool() & seen[None]).unsqueeze(1)
        else:
            pairs = mask.bool().repeat(1, length, 1).unsqueeze(1)
        for index in range(self._config.depth):
            x = self._block(f"transformer_blocks.{index}", x, vector, pairs, turns)
        scale, shift = self._linear("norm_out.linear", F.silu(vector)).chunk(2, dim=1)
        x = self._normed(x) * (1 + scale)[:, None] + shift[:, None]
        return self._linear("proj_out", x).transpose(1, 2)

    def _block(self, name: str, x: Tensor, vector: Tensor, pairs: Tensor, turns: Tensor) -> Tensor:
        parts = self._linear(f"{name}.attn_norm.linear", F.silu(vector)).chunk(6, dim=1)
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = parts
        normed = self._normed(x) * (1 + scale[:, None]) + shift[:, None]
        x = x + gate.unsqueeze(1) * self._attention(f"{name}.attn", normed, pairs, turns)
        normed = self._normed(x) * (1 + scale_mlp[:, None]) + shift_mlp[:, None]
        hidden = F.gelu(self._linear(f"{name}.ff.ff.0.0", normed), approximate="tanh")
        return x + gate_mlp.unsqueeze(1) * self._linear(f"{name}.ff.ff.2", hidden)

    def _attention(self, name: str, x: Tensor, pairs: Tensor, turns: Tensor) -> Tensor:
        query, key, value = (self._linear(f"{name}.to_{one}", x) for one in "qkv")
        query, key = _rotated(query, turns), _rotated(key, turns)
        heads = (len(x), -1, self._config.heads, self._config.dim_head)
        query, key, value = (one.view(heads).transpose(1, 2) for one in (query, key, value))
        mask = pairs.expand(len(x), self._config.heads, -1, -1)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = self._linear(f"{name}.to_out.0", mixed.transpose(1, 2).reshape(len(x), -1, x.shape[-1]))
        return mixed.masked_fill(~pairs[:, 0, -1, :, None], 0.0)

    @staticmethod
    def _normed(x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], eps=1e-6)


def _rotated(x: Tensor, turns: Tensor) -> Tensor:
    """Before heads are split, so that only the first is turned."""
    part, rest = x[..., : turns.shape[-1]], x[..., turns.shape[-1] :]
    one, other = part.unflatten(-1, (-1, 2)).unbind(-1)
    part = part * turns.cos() + torch.stack((-other, one), dim=-1).flatten(-2) * turns.sin()
    return torch.cat((part, rest), dim=-1)


class OfficialFlow:
    """The official solver and its hops."""

    def __init__(self, flow: TokenToMel) -> None:
        self._flow, self._config = flow, flow.config
        self._estimator = OfficialEstimator(flow.estimator.state_dict(), flow.config)

    @torch.inference_mode()
    def at_once(self, prompt: AcousticPrompt, tokens: list[int], streaming: bool = False) -> Tensor:
        """Mel (1, bands, n) of the new speech."""
        return self._solved(prompt, [*prompt.tokens[0].tolist(), *tokens], (), streaming)[..., prompt.frames :]

    @torch.inference_mode()
    def streamed(self, prompt: AcousticPrompt, tokens: list[int]) -> Tensor:
        """The same in hops of a chunk, each from everything so far."""
        everything, chunk, ahead = [*prompt.tokens[0].tolist(), *tokens], self._config.chunk, self._config.look_ahead
        done, parts = prompt.frames, []
        for end in range(chunk * (prompt.frames // 2 // chunk + 1), len(everything) - ahead + 1, chunk):
            parts.append(self._solved(prompt, everything[:end], everything[end : end + ahead], True)[..., done:])
            done = 2 * end
        return torch.cat([*parts, self._solved(prompt, everything, (), True)[..., done:]], dim=-1)

    def _solved(
        self, prompt: AcousticPrompt, tokens: list[int], ahead: list[int] | tuple[()], streaming: bool
    ) -> Tensor:
        mu = self._flow.encode(tokens, ahead, 0, Memory(closing=True))
        frames = mu.shape[-1]
        spks = self._flow.speaker(prompt.speaker)
        cond = torch.zeros_like(mu)
        cond[..., : prompt.frames] = prompt.mel.mT
        times = 1 - torch.cos(
            torch.linspace(0, 1, self._config.steps + 1, device=mu.device, dtype=mu.dtype) * 0.5 * torch.pi
        )
        x, mask = self._flow.noise[..., :frames], mu.new_ones(2, 1, frames)
        pair = x.new_zeros(2, *x.shape[1:])
        given = [torch.cat([one, torch.zeros_like(one)]) for one in (mu, spks, cond)]
        t, rate = times[0], self._config.guidance
        for step in range(1, len(times)):
            pair[:] = x
            velocity = self._estimator(pair, mask, given[0], t.expand(2), given[1], given[2], streaming)
            conditional, other = velocity.split(1)
            x = x + (times[step] - t) * ((1.0 + rate) * conditional - rate * other)
            t = times[step]
        return x


def ours(planned: PlannedMel, prompt: AcousticPrompt, tokens: list[int], streamed: bool) -> Tensor:
    stream = MelStream(planned, prompt)
    if not streamed:
        return stream.whole(tokens)
    return torch.cat([*(stream.push([one]) for one in tokens), stream.finish()], dim=-1)


def ways_of(flow: TokenToMel, count: int, streamed: bool) -> dict[str, Callable[[], Tensor]]:
    """Both ways to the mel of ``count`` tokens, the official first."""
    generator, width = torch.Generator().manual_seed(1), flow.config.speaker_width
    ids = torch.randint(flow.config.tokens, (PROMPT + count,), generator=generator).tolist()
    heard = torch.randn(1, 2 * PROMPT, flow.config.bands, generator=generator)
    speaker = torch.randn(1, width, generator=generator)
    prompt = AcousticPrompt(torch.tensor([ids[:PROMPT]]), heard.to(flow.noise), speaker.to(flow.noise))
    prompt = prompt.to(flow.noise.device)
    official = OfficialFlow(flow)
    theirs = official.streamed if streamed else official.at_once
    return {
        OFFICIAL: partial(theirs, prompt, ids[PROMPT:]),
        OURS: partial(ours, PlannedMel(flow if streamed else seeing_everything(flow)), prompt, ids[PROMPT:], streamed),
    }


def measure(arguments: argparse.Namespace, streamed: Sequence[bool], minutes: float) -> Report:
    """The report on the flow at once, streamed, or both; the first is its headline."""
    device, budget = prepared(arguments), Budget(minutes, arguments.rounds)
    config = FlowConfig()
    config = replace(config, estimator=replace(config.estimator, depth=arguments.layers or config.estimator.depth))
    rows: list[dict[str, object]] = []
    gains: list[Interval] = []
    limits: list[Limit | None] = []
    # Float32 on every device: upstream's float16 gives values that are not numbers.
    flow = random_flow(config, device, torch.float32)
    for left, one in zip(range(len(streamed), 0, -1), streamed, strict=True):
        gain, limit, found = compared(flow, TOKENS, one, budget, 1 / left)
        gains.append(gain)
        limits.append(limit)
        rows += found
    return reported(gains[0], DEFINITION, limits[0], rows)


def compared(
    flow: TokenToMel, count: int, streamed: bool, budget: Budget, share: float
) -> tuple[Interval, Limit | None, list[dict[str, object]]]:
    """The speed-up of ours, the processor's limit at once, and the rows. Raises :class:`PlainError` if mels differ."""
    ways, title = ways_of(flow, count, streamed), STREAMED if streamed else AT_ONCE
    found: dict[str, Tensor] = {}
    seconds: dict[str, float] = {}
    device, kind = flow.noise.device, name_of(flow.noise.dtype)
    for way, run in ways.items():
        with stopwatch(str(device)) as watch:
            found[way] = run()
        seconds[way] = watch.wall_seconds
    largest = (found[OFFICIAL] - found[OURS]).abs().max().item()
    if flow.noise.dtype == torch.float32 and not largest < LARGEST_DIFFERENCE:
        raise PlainError(f"The two mels differ by {largest:.2g}: our implementation has an error; please report it.")
    comparison = timed(ways, seconds, device, budget, f"{title}, {kind}", share)
    frames = 2 * (PROMPT + count)
    rows = rows_of(
        comparison, {"model": title, "precision": kind, "frames": frames}, {OURS: {"largest difference": largest}}
    )
    limit = None
    if device.type == "cpu" and not streamed:
        operations = flow.config.steps * flow.estimator.operations(frames).evaluation
        limit = arithmetic(ways[OURS], operations)
        rows.append({"model": title, "precision": kind, "frames": frames, **limit.row})
    return interval(comparison.ratios(OURS)), limit, rows
