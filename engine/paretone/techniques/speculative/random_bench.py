"""Speculative decoding at the sizes of released models, with random weights: what each acceptance would give there.

The time of a pass does not depend on its weights. Networks of the released shapes therefore show what a draft costs and
what verifying costs, and the loop runs as in use, except that each drafted token is accepted with a given probability:
how many a trained draft would have accepted is for its training to show. The prompt but its end is read beforehand.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import torch
from torch import Tensor, nn

from paretone import device as devices
from paretone.bench import bundled
from paretone.bench.report import Report
from paretone.errors import SettingError
from paretone.measure.timing import PairedTimes, paired_ratio
from paretone.models.families.language_network import FeatureDrafter, TokenModel
from paretone.models.kernels.fused_causal import FusedLayer, FusedTransformer, QuickNorm
from paretone.models.networks.causal import CausalConfig, CausalLayer, Llama3Scaling
from paretone.models.networks.feature_draft import FeatureDraft
from paretone.reading import shown
from paretone.sampling.autoregressive import Cycle, Decoding, Request, decode
from paretone.sampling.draft_length import predicted_speed_up
from paretone.sampling.speculative import speculation
from paretone.sampling.tokens import Nucleus, Uniforms
from paretone.sampling.verification import Rule, Verification
from paretone.techniques.speculative import fitting_upper
from paretone.techniques.speculative.feature_training import read_layers
from paretone.techniques.speculative.training import retained_layers
from paretone.wording import Share, listed, percent

_Network = TypeVar("_Network", bound=nn.Module)
PROMPT, TOKENS = 100, 48
"""Elements of the prompt, and tokens of a run."""
LENGTHS, ACCEPTANCES = (2, 4, 6), (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TYPICAL, TYPICAL_LENGTH = 0.65, 4
"""Acceptance and draft length at which all drafts are compared."""
PLAIN, ON_FEATURES = "plain decoding", "draft on features"


@dataclass(frozen=True)
class Size:
    """Shape of a released language model; ``stops``: ids that end speech; ``numbers``: type of its file's weights."""

    config: CausalConfig
    codes: int
    stops: int
    numbers: torch.dtype = torch.float32
    computed_in: Callable[[torch.device], torch.dtype] = lambda device: torch.float32


SIZES = {
    "cosyvoice2": Size(CausalConfig(896, 24, 14, 2, 64, 4864, 1e-6, 1e6, biased=True), 6561, 3),
    "llasa": Size(
        CausalConfig(2048, 16, 32, 8, 64, 8192, 1e-5, 5e5, Llama3Scaling(32.0, 1.0, 4.0, 8192)),
        65536,
        1,
        torch.bfloat16,
        devices.computed_in,
    ),
}
"""CosyVoice2-0.5B (arXiv 2412.10117) and Llasa-1B (arXiv 2502.04128), by the beginnings of their names."""


def run(arguments: argparse.Namespace) -> Report:
    """Raises :class:`SettingError` for a model whose size is not known."""
    name = str(arguments.model).lower()
    size = next((one for known, one in SIZES.items() if name.startswith(known)), None)
    if size is None:
        raise SettingError(f"--random knows the sizes of {listed(SIZES)}, not of {shown(arguments.model)}.")
    torch.set_num_threads(arguments.threads)
    only = arguments.draft_length
    lengths = (LENGTHS, TYPICAL_LENGTH) if only is None else ((only,), only)
    return measured(size, devices.choose(arguments.device), arguments.rounds, *lengths)


@torch.inference_mode()
def measured(size: Size, device: torch.device, rounds: int, lengths: Sequence[int], typical: int) -> Report:
    """``lengths``: of drafts on features, with each acceptance; ``typical``: that of all drafts."""
    bundled.say("Making random networks …")
    target, drafts = networks(size, device)
    ways: dict[str, tuple[TokenModel | None, float, int]] = {PLAIN: (None, 0.0, 0)}
    for length, acceptance in product(lengths, ACCEPTANCES):
        ways[f"{ON_FEATURES}, K = {length}, α = {acceptance:g}"] = drafts[ON_FEATURES], acceptance, length
    for name, draft in drafts.items():
        ways.setdefault(f"{name}, K = {typical}, α = {TYPICAL:g}", (draft, TYPICAL, typical))
    cycles: dict[str, list[Cycle]] = {name: [] for name in ways}

    def runs(name: str, draft: TokenModel | None, acceptance: float, length: int) -> Callable[[], object]:
        def once() -> None:
            # Other numbers in each round; the first cycle reads the prompt.
            cycles[name] += list(_decoding(target, draft, acceptance, length, len(cycles[name])))[1:]

        return once

    bundled.say(f"Decoding {TOKENS} tokens in {len(ways)} ways, {rounds} rounds …")
    times = paired_ratio({name: runs(name, *way) for name, way in ways.items()}, rounds, device=device.type)
    rows = list(_rows(ways, cycles, times))
    top = times.speed_up[f"{ON_FEATURES}, K = {typical}, α = {TYPICAL:g}"]
    definition = (
        f"Seconds per token of plain decoding over those of speculative decoding with a draft on features, of which "
        f"{typical} tokens are drafted at a time and {percent(TYPICAL)} accepted, at this size with random "
        "weights; median of paired, interleaved rounds."
    )
    return Report.of("ssd", top, definition, rows)


def networks(size: Size, device: torch.device) -> tuple[TokenModel, dict[str, TokenModel]]:
    """The target, and its drafts by name: on features, of its lowest two and topmost layers, and a student of half."""
    config = size.config
    dtype = size.computed_in(device)
    # Layer by layer: all of them in float32 would take twice the memory of what is kept.
    layers = (_randomised(CausalLayer(config).to(device, dtype), size.numbers) for _ in range(config.layers))
    norm = QuickNorm(torch.ones(config.hidden, device=device, dtype=dtype), config.epsilon)
    transformer = FusedTransformer(config, [FusedLayer.of(one) for one in layers], norm)
    rows, scale = size.codes + size.stops, config.hidden**-0.5
    tables = (torch.randn(rows, config.hidden, device=device).mul_(scale) for _ in range(2))
    embedding, head = (one.to(size.numbers).to(dtype) for one in tables)
    target = TokenModel(transformer, embedding, head, codes=size.codes).optimised()
    reads, rank = read_layers(config.layers), max(1, config.hidden // 4)
    on_features = _randomised(FeatureDraft(config, reads, rows, rank, biased=False), torch.float16)
    layered = retained_layers(config.layers, 2, fitting_upper(config.layers))
    drafts = {
        ON_FEATURES: FeatureDrafter(on_features.requires_grad_(False), target),
        f"draft of {len(layered)} layers": target.kept(layered),
        f"student of {config.layers // 2} layers": target.kept(range(config.layers // 2)),
    }
    return target, drafts


def _randomised(network: _Network, numbers: torch.dtype) -> _Network:
    for weight in network.parameters():
        if weight.ndim == 2:
            nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
            weight.copy_(weight.to(numbers))
    return network


def _decoding(target: TokenModel, draft: TokenModel | None, acceptance: float, length: int, seed: int) -> Decoding:
    generator = torch.Generator().manual_seed(0)
    embedded = target.embed(torch.randint(target.codes, (PROMPT,), generator=generator))[None]
    positions = torch.arange(PROMPT, device=target.device)
    request = Request(embedded, positions, PROMPT, minimum=TOKENS, maximum=TOKENS, shared=PROMPT - 1)
    sampler, uniforms = Nucleus(top_k=25), Uniforms(seed)
    target.reach(PROMPT + TOKENS)
    if draft is None:
        return decode(target, request, sampler, uniforms)
    draft.reach(PROMPT + TOKENS)
    return speculation(target, draft, request, sampler, uniforms, by_chance(acceptance), length)


def by_chance(acceptance: float) -> Rule:
    """Accepts each token with the probability ``acceptance``, whatever it is."""

    def verify(
        drafted: Sequence[int], proposed: Sequence[Tensor], wanted: Tensor, uniforms: Callable[[], float]
    ) -> Verification:
        accepted = 0
        while accepted < len(drafted) and uniforms() < acceptance:
            accepted += 1
        checked = min(accepted + 1, len(drafted))
        return Verification(accepted, (acceptance,) * checked, wanted[min(accepted, len(wanted) - 1)])

    return verify


def _rows(
    ways: dict[str, tuple[TokenModel | None, float, int]], cycles: dict[str, list[Cycle]], times: PairedTimes
) -> Iterator[dict[str, object]]:
    plain = cycles[PLAIN]
    single = sum(one.target_seconds for one in plain) / len(plain)
    yield {"way": PLAIN, "ms per token": 1000 * single}
    for name, (draft, _, length) in ways.items():
        if draft is None:
            continue
        # At the end of a run fewer tokens are drafted.
        seen = [one for one in cycles[name] if len(one.drafted) == length]
        cost = sum(one.draft_seconds for one in seen) / (length * len(seen)) / single
        verification = sum(one.target_seconds for one in seen) / len(seen) / single
        gain, tokens = times.speed_up[name], sum(len(one.tokens) for one in seen) / len(seen)
        predicted = predicted_speed_up(tokens, length, cost, verification)
        yield {
            "way": name,
            **gain.columns(),
            "E": tokens,
            "v": verification,
            "c": cost,
            "predicted": predicted,
            "of predicted": Share(gain.median / predicted),
        }
