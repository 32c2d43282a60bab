"""Speed of our F5-TTS against the official package's: same weights, same mel, before any technique.

The official package (see ``engine.bench.official``) is installed into a separate environment on first use, and both
run there in one process. Timed is the whole sampling of a sentence: everything before the first step, all steps, and no
vocoder. The AdaLN tables, which the application keeps from one sentence to the next, are made new every time.

On processors with AMX, ours computes wide float32 products from whole numbers
(:mod:`engine.models.kernels.split_products`); the column "products" says so. ``--plain-products`` measures next to it,
in the same rounds, ours without that.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from engine import device as devices
from engine.bench import bundled, official
from engine.bench.operators import seconds_by_kind
from engine.bench.report import Report
from engine.errors import PlainError
from engine.measure.machine import describe
from engine.measure.timing import Interval, PairedTimes, interval
from engine.models.catalogue import entry
from engine.models.f5.checkpoint import read_f5_checkpoint
from engine.models.f5.config import MEL_BANDS, VARIANTS, BackboneConfig
from engine.models.f5.dit import DiT, DiTConditioning
from engine.models.kernels import split_products
from engine.models.kernels.flow_graphs import GraphedEvaluator
from engine.models.kernels.graphs import GraphCache
from engine.sampling.flow import Velocity, integrate, sampling_grid
from engine.sampling.guidance import guided_velocity

NAME = "peers"
VARIANT = "F5TTS_v1_Base"
VOCABULARY = 2545
GUIDANCE, SWAY, SEED = 2.0, -1.0, 0
STEPS = 7
"""Those of Fast F5-TTS (arXiv 2505.19931), which users sample with when they are in a hurry."""
FRAMES_PER_TOKEN = 6
"""About as English is spoken."""
LARGEST_DIFFERENCE = {torch.float32: 1e-4}
"""Largest difference of the log mels, in the precisions in which the two must agree to rounding."""
DEFINITION = (
    f"Time of the official f5-tts {official.VERSION} over time of ours for the same mel from the same weights, "
    "v1 Base at full size (random weights), guidance 2, whole sampling without vocoder; median of paired, interleaved "
    "rounds."
)

OURS, PLAIN = "ours", "ours, plain products"

Sampler = Callable[[], Tensor]
Both = tuple[nn.Module, Mapping[str, DiT]]
"""The official model, and ours by their ways."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this bench."""
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: %(default)s)")
    parser.add_argument(
        "--steps",
        type=int,
        default=STEPS,
        help="steps of the EPSS grid (default: %(default)s)",
    )
    parser.add_argument(
        "--frames",
        type=int,
        nargs="+",
        default=[450],
        help="mel frames, prompt included, 93.75 per second; the first counts (default: 450)",
    )
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=0, help="layers of the full-size model, if not all of them")
    parser.add_argument("--environment", help="folder of the official package's environment (default: the user's own)")
    parser.add_argument("--no-bundled", action="store_true", help="leave the bundled model out")
    parser.add_argument(
        "--plain-products",
        action="store_true",
        help="also measure ours with the processor's own float32 products only, if it has faster ones",
    )


def run(arguments: argparse.Namespace) -> Report:
    """Measure in the official package's environment, which is made first if it is missing."""
    place = Path(arguments.environment) if arguments.environment else None
    if official.inside(place):
        return _measure(arguments)
    python = official.environment(bundled.say, place)
    command = [str(python), "-m", "engine", "bench", NAME, "--json", *_options(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    data = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {"error": "it ended without a result."}
    if done.returncode:
        raise PlainError(f"The official package's environment could not measure: {data['error']}")
    return Report(**data | {"interval": tuple(data["interval"]), "rows": tuple(data["rows"])})


def _options(arguments: argparse.Namespace) -> list[str]:
    options = ["--device", arguments.device, "--steps", str(arguments.steps), "--rounds", str(arguments.rounds)]
    options += ["--environment", arguments.environment] if arguments.environment else []
    options += ["--frames", *map(str, arguments.frames), "--layers", str(arguments.layers)]
    flags = {"--no-bundled": arguments.no_bundled, "--plain-products": arguments.plain_products}
    return [*options, *(flag for flag, wanted in flags.items() if wanted)]


def _measure(arguments: argparse.Namespace) -> Report:
    device = devices.choose(arguments.device)
    torch.set_num_threads(1)
    # As the application does; both profit.
    torch.set_flush_denormal(True)
    devices.keep_freed_memory()
    config = replace(VARIANTS[VARIANT], text_num_embeds=VOCABULARY)
    config = replace(config, depth=arguments.layers or config.depth)
    bundled.say(f"Making {VARIANT} with {config.depth} layers …")
    models: dict[str, tuple[BackboneConfig, Mapping[str, Tensor]]] = {VARIANT: (config, random_weights(config))}
    if not arguments.no_bundled:
        mini = read_f5_checkpoint(entry("f5-mini").folder)
        models["f5-mini"] = (mini.config, mini.weights)
    rows: list[dict[str, object]] = []
    headlines: list[Interval] = []
    for name, (config, weights) in models.items():
        for precision in _precisions(device):
            models_of_both = build(config, weights, device, precision, arguments.plain_products)
            for frames in arguments.frames:
                comparison = _compare(rows, name, models_of_both, frames, arguments)
                headlines.append(interval(comparison.ratios(OURS)))
            if name == VARIANT and device.type == "cpu":
                rows += _parts(models_of_both, arguments.frames[0], arguments.steps)
    if device.type != "cuda":
        rows.append({"model": "GPU rows: there is no CUDA device here"})
    headline = headlines[0]
    return Report(NAME, headline.median, (headline.low, headline.high), DEFINITION, tuple(rows), describe().to_json())


def _precisions(device: torch.device) -> tuple[torch.dtype, ...]:
    return (torch.float16, torch.bfloat16, torch.float32) if device.type == "cuda" else (torch.float32,)


def _compare(
    rows: list[dict[str, object]], name: str, both: Both, frames: int, arguments: argparse.Namespace
) -> PairedTimes:
    weight = both[1][OURS].proj_out.weight
    kind = str(weight.dtype).removeprefix("torch.")
    ways = samplers(*both, frames, arguments.steps)
    reference, *others = (way() for way in ways.values())
    differences = [(reference - one).abs().max().item() for one in others]
    relative = [((reference - one).norm() / reference.norm()).item() for one in others]
    allowed = LARGEST_DIFFERENCE.get(weight.dtype)
    if allowed is not None and not max(differences) < allowed:
        raise PlainError(
            f"The two mels differ by {max(differences):.2g}: our implementation has an error; please report it."
        )
    comparison = bundled.timed(ways, str(weight.device), arguments, f"{name}, {frames} frames, {kind}")
    for way, difference, share in zip(ways, (None, *differences), (None, *relative), strict=True):
        speed_up = comparison.speed_up.get(way)
        rows.append(
            {
                "model": name,
                "precision": kind,
                "frames": frames,
                "steps": arguments.steps,
                "way": way,
                "products": _products(both[1].get(way)),
                comparison.clock: interval(comparison.seconds[way]).median,
                "speed-up": None if speed_up is None else speed_up.median,
                "low": None if speed_up is None else speed_up.low,
                "high": None if speed_up is None else speed_up.high,
                "largest difference": difference,
                "relative difference": share,
            }
        )
    rows.append(
        {
            "model": name,
            "precision": kind,
            "frames": frames,
            "steps": arguments.steps,
            "way": "official, again (A/A)",
            "speed-up": comparison.same.median,
            "low": comparison.same.low,
            "high": comparison.same.high,
        }
    )
    return comparison


def _products(model: DiT | None) -> str | None:
    """Name of the product kernels that only ours uses."""
    if model is None:
        return None
    packed = model.block(0).attention.packed
    if packed is None:
        return "torch's"
    return "float32 from 8-bit whole numbers" if packed.is_split else "float32, packed"


def _parts(both: Both, frames: int, steps: int) -> list[dict[str, object]]:
    """Time on a CPU by kind of operator, from one profiled run of each."""
    found = {way: seconds_by_kind(run) for way, run in samplers(*both, frames, steps).items()}
    return [
        {
            "model": VARIANT,
            "frames": frames,
            "steps": steps,
            "way": f"{way}: {kind}",
            "share of its time": seconds / sum(kinds.values()),
        }
        for way, kinds in found.items()
        for kind, seconds in kinds.items()
    ]


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
    official.import_models()
    from f5_tts.model.backbones.dit import DiT as OfficialDiT
    from f5_tts.model.cfm import CFM

    names = ("dim", "depth", "heads", "dim_head", "ff_mult", "mel_dim", "text_num_embeds", "text_dim", "qk_norm")
    names += ("text_mask_padding", "conv_layers", "pe_attn_head", "long_skip_connection")
    transformer = OfficialDiT(**{name: getattr(config, name) for name in names})
    transformer.load_state_dict(dict(weights))
    theirs = CFM(transformer).to(device, precision).eval().requires_grad_(False)
    models = {OURS: _ours(config, weights, device, precision)}
    if plain and device.type == "cpu" and split_products.in_use():
        with split_products.switched_off():
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
        model.forget_tables()
        return model.begin(canvas, ids, times[:-1], guided=True)

    def finished(velocity: Velocity) -> Tensor:
        return torch.cat([prompt, integrate(velocity, noise, times)[:, length:]], dim=1)

    @torch.inference_mode()
    def our_way(model: DiT) -> Tensor:
        run = begun(model)
        return finished(lambda x, step: guided_velocity(model.velocity(x, step, run), GUIDANCE))

    ways = {"official": official_way} | {way: partial(our_way, model) for way, model in models.items()}
    if weight.device.type == "cuda":
        graphs = GraphedEvaluator(ours, GraphCache(), bucket=1)

        @torch.inference_mode()
        def graph_way() -> Tensor:
            run = begun(ours)
            return finished(lambda x, step: guided_velocity(graphs.velocities(x, step, run), GUIDANCE))

        ways["ours, CUDA graphs"] = graph_way
    return ways
