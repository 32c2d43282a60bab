"""Our F5-TTS against the official package's: same weights, same mel.

Both run in one process of the official package's environment. Timed is the whole sampling of a sentence: everything
before the first step, all steps, and no vocoder. The AdaLN tables, which the application keeps from one sentence to the
next, are made new every time.

On processors with AMX, ours computes wide float32 products from whole numbers
(:mod:`paretone.models.kernels.split_products`); the column "products" says so. ``--plain-products`` measures next to
it, in the same rounds, ours without that. For figures to quote: ``--steps 7 --frames 450 --minutes 15``.
"""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from paretone.bench import bundled
from paretone.bench.budget import Budget
from paretone.bench.report import Report
from paretone.commands.arguments import positive
from paretone.errors import PlainError
from paretone.measure.timing import Interval, PairedTimes, interval, stopwatch
from paretone.models.catalogue import entry
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.f5.config import MEL_BANDS, VARIANTS, BackboneConfig
from paretone.models.f5.dit import DiT, DiTConditioning
from paretone.models.kernels import split_products
from paretone.models.kernels.graphs import GraphCache, GraphedEvaluator
from paretone.sampling.flow import Velocity, integrate, sampling_grid
from paretone.sampling.guidance import guided_velocity
from tests.peers import official, rounds
from tests.peers.rounds import (
    GRAPHS,
    OFFICIAL,
    OURS,
    Limit,
    arithmetic,
    name_of,
    precisions,
    prepared,
    reported,
    rows_of,
    timed,
)

NAME = "f5"
PACKAGE = official.F5
VARIANT = "F5TTS_v1_Base"
VOCABULARY = 2545
GUIDANCE, SWAY, SEED = 2.0, -1.0, 0
STEPS, FRAMES = 5, 300
"""The fewest steps of the EPSS grids (Fast F5-TTS, arXiv 2505.19931), and 3.2 s with the prompt."""
FULL_SHARE = 0.8
"""Share of the remaining time that the full-size model gets; the rest is for the bundled one and the profile."""
FRAMES_PER_TOKEN = 6
"""About as English is spoken."""
LARGEST_DIFFERENCE = {torch.float32: 1e-4}
"""Largest difference of the log mels, in the precisions in which the two must agree to rounding."""
DEFINITION = (
    f"Time of the official f5-tts {official.F5.version} over time of ours for the same mel from the same weights, "
    "v1 Base at full size (random weights), guidance 2, whole sampling without vocoder; median of paired, interleaved "
    "rounds."
)

PLAIN = "ours, plain products"

Sampler = Callable[[], Tensor]
Both = tuple[nn.Module, Mapping[str, DiT]]
"""The official model, and ours by their ways."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rounds.add_arguments(parser)
    parser.add_argument("--steps", type=positive, default=STEPS, help="of the EPSS grid (default: %(default)s)")
    parser.add_argument(
        "--frames",
        type=positive,
        nargs="+",
        default=[FRAMES],
        help=f"mel frames, prompt included, 93.75 per second (default: {FRAMES}); the first counts",
    )
    parser.add_argument("--no-bundled", action="store_true", help="leave the bundled model out")
    parser.add_argument(
        "--plain-products",
        action="store_true",
        help="also measure ours with the processor's own float32 products only, if it has faster ones",
    )


def run(arguments: argparse.Namespace) -> Report:
    """Sample mels in both, in the official package's environment."""
    if not official.inside(PACKAGE):
        return official.measured_inside(PACKAGE, NAME, arguments)
    device, budget = prepared(arguments), Budget(arguments.minutes, arguments.rounds)
    config = replace(VARIANTS[VARIANT], text_num_embeds=VOCABULARY)
    config = replace(config, depth=arguments.layers or config.depth)
    steps, every = arguments.steps, arguments.frames
    bundled.say(f"Making {VARIANT} with {config.depth} layers …")
    models: dict[str, tuple[BackboneConfig, Mapping[str, Tensor]]] = {VARIANT: (config, random_weights(config))}
    if not arguments.no_bundled:
        mini = read_f5_checkpoint(entry("f5-mini").folder)
        models["f5-mini"] = (mini.config, mini.weights)
    rows: list[dict[str, object]] = []
    headlines: list[Interval] = []
    limit = None
    for name, (config, weights) in models.items():
        for precision in precisions(device):
            both = build(config, weights, device, precision, arguments.plain_products)
            for frames in every:
                comparison = _compare(rows, name, both, frames, steps, budget)
                headlines.append(interval(comparison.ratios(OURS)))
            if name == VARIANT and device.type == "cpu":
                limit = _limit(both, every[0], steps)
                rows.append({"model": name, "precision": name_of(precision), "frames": every[0], **limit.row})
    if device.type != "cuda":
        rows.append({"model": "GPU rows: there is no CUDA device here"})
    headline = headlines[0]
    return reported(headline, DEFINITION, limit, rows)


def _compare(
    rows: list[dict[str, object]], name: str, both: Both, frames: int, steps: int, budget: Budget
) -> PairedTimes:
    weight = both[1][OURS].proj_out.weight
    kind = name_of(weight.dtype)
    ways = samplers(*both, frames, steps)
    found: dict[str, Tensor] = {}
    seconds: dict[str, float] = {}
    for way, sample in ways.items():
        with stopwatch(str(weight.device)) as watch:
            found[way] = sample()
        seconds[way] = watch.wall_seconds
    reference = found.pop(OFFICIAL)
    own: dict[str, dict[str, object]] = {
        way: {
            "largest difference": (reference - one).abs().max().item(),
            "relative difference": ((reference - one).norm() / reference.norm()).item(),
            "products": _products(both[1].get(way)),
        }
        for way, one in found.items()
    }
    allowed = LARGEST_DIFFERENCE.get(weight.dtype)
    largest = max((reference - one).abs().max().item() for one in found.values())
    if allowed is not None and not largest < allowed:
        raise PlainError(f"The two mels differ by {largest:.2g}: our implementation has an error; please report it.")
    share = FULL_SHARE if name == VARIANT else 1.0
    comparison = timed(ways, seconds, weight.device, budget, f"{name}, {frames} frames, {kind}", share)
    rows += rows_of(comparison, {"model": name, "precision": kind, "frames": frames, "steps": steps}, own)
    return comparison


def _products(model: DiT | None) -> str | None:
    """Name of the product kernels that only ours uses."""
    if model is None:
        return None
    packed = model.block(0).attention.packed
    if packed is None:
        return "torch's"
    return "float32 from 8-bit whole numbers" if packed.is_split else "float32, packed"


def _limit(both: Both, frames: int, steps: int) -> Limit:
    """How near ours stands to what the processor can do, from one profiled sampling."""
    operations = steps * both[1][OURS].operations(frames, guided=True).evaluation
    return arithmetic(samplers(*both, frames, steps)[OURS], operations)


def random_weights(config: BackboneConfig) -> dict[str, Tensor]:
    """Weights of the official layout, the same every time; none of them is zero, as many are before training."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        backbone = DiT(config)
        for parameter in backbone.parameters():
            if not parameter.any():
                nn.init.normal_(parameter, std=0.1)
    return backbone.state_dict()


def build(
    config: BackboneConfig, weights: Mapping[str, Tensor], device: torch.device, precision: torch.dtype, plain: bool
) -> Both:
    """The official model (its ``CFM``) and ours, ready for inference; with ``plain``, and where it makes a difference,
    ours with float32 products only as well."""
    official.import_models(PACKAGE)
    from f5_tts.model.backbones.dit import DiT as OfficialDiT
    from f5_tts.model.cfm import CFM

    names = ("dim", "depth", "heads", "dim_head", "ff_mult", "mel_dim", "text_num_embeds", "text_dim", "qk_norm")
    names += ("text_mask_padding", "conv_layers", "pe_attn_head", "long_skip_connection")
    transformer = OfficialDiT(**{name: getattr(config, name) for name in names})
    transformer.load_state_dict(dict(weights))
    theirs = CFM(transformer).to(device, precision).eval().requires_grad_(False)
    models = {OURS: _ours(config, weights, device, precision)}
    if plain and device.type == "cpu" and split_products.in_use():
        with patch.dict(os.environ, {split_products.VARIABLE: "0"}):
            models[PLAIN] = _ours(config, weights, device, precision)
    return theirs, models


def _ours(config: BackboneConfig, weights: Mapping[str, Tensor], device: torch.device, precision: torch.dtype) -> DiT:
    model = DiT(config)
    model.load_state_dict(dict(weights))
    model = model.to(device, precision).eval().requires_grad_(False)
    model.fuse()
    return model


def samplers(theirs: Any, models: Mapping[str, DiT], frames: int, steps: int) -> dict[str, Sampler]:
    """Ways to the same mel (1, frames, bands), the official first: same prompt, text, noise and grid."""
    ours = models[OURS]
    weight = ours.proj_out.weight
    generator = torch.Generator().manual_seed(SEED)
    length = frames * 2 // 5
    prompt = torch.randn(1, length, MEL_BANDS, generator=generator).to(weight)
    ids = torch.randint(0, ours.config.text_num_embeds, (1, frames // FRAMES_PER_TOKEN), generator=generator)
    ids = ids.to(weight.device)
    canvas = torch.cat([prompt, prompt.new_zeros(1, frames - length, MEL_BANDS)], dim=1)
    times = sampling_grid(steps, "epss", SWAY)
    torch.manual_seed(SEED)
    # As the official code draws it, on the device itself and in its precision.
    noise = torch.randn(frames, MEL_BANDS, device=weight.device, dtype=weight.dtype)[None]

    def official_way() -> Tensor:
        options = {"steps": steps, "cfg_strength": GUIDANCE, "sway_sampling_coef": SWAY, "seed": SEED}
        return theirs.sample(prompt, ids, frames, **options)[0]

    def begun(model: DiT) -> DiTConditioning:
        model.tabulate(times[-1:])  # Another schedule, so that this one's table is made as in a first run.
        return model.begin(canvas, ids, times[:-1], guided=True)

    def finished(velocity: Velocity) -> Tensor:
        return torch.cat([prompt, integrate(velocity, noise, times)[:, length:]], dim=1)

    @torch.inference_mode()
    def our_way(model: DiT) -> Tensor:
        run = begun(model)
        return finished(lambda x, step: guided_velocity(model.velocity(x, step, run), GUIDANCE))

    ways = {OFFICIAL: official_way} | {way: partial(our_way, model) for way, model in models.items()}
    if weight.device.type == "cuda":
        graphs = GraphedEvaluator(ours, GraphCache(), bucket=1)

        @torch.inference_mode()
        def graph_way() -> Tensor:
            run = begun(ours)
            return finished(lambda x, step: guided_velocity(graphs.velocities(x, step, run), GUIDANCE))

        ways[GRAPHS] = graph_way
    return ways
