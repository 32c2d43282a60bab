"""Exact savings of a masked model (same output) over running it as the official code does.

The official way is measured with the Qwen3 of ``transformers``, as OmniVoice runs it: both branches padded to one
length, every row through every layer and the head, scores normalised three times, a cache that nothing is read from.
Savings are added in the order of the rows; that they are exact is shown by the codes, cell by cell.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from paretone.bench import bundled, masked
from paretone.bench.masked import EXACT, FULL_SIZE, OFFICIAL, PlainRun, official, random_network, random_request
from paretone.bench.report import Report
from paretone.commands.arguments import count
from paretone.measure.timing import Interval, interval, paired_ratio, ratios, running_order, stopwatch
from paretone.models.catalogue import harvard_sentences
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.sampling.demasking import Canvas, Guide, Predictor, Rules, SeededCanvasNoise, demask
from paretone.sampling.demasking_schedule import Block
from paretone.speaking import scripted

NAME = "omnivoice-exact"
OWN_LAYERS, UNPADDED = "own layers, no cache objects", "+ neither padded nor scored beyond the canvas"
"""Ways between the official one and that with all savings, in order."""
FULL_TEXT, FULL_REFERENCE, FULL_FRAMES = 36, 75, 50
"""Rows of the full-size forward: a sentence, three seconds of a voice, two seconds of speech."""
DEFINITION = (
    "Network seconds of a sentence run as upstream over those with all exact savings, with the same weights and "
    "random numbers; median of paired, interleaved rounds on different sentences."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    masked.add_arguments(parser, rounds=9)
    parser.add_argument(
        "--full-rounds", type=count, default=3, help="rounds of a forward at OmniVoice's size; 0: none (default: 3)"
    )


def run(arguments: argparse.Namespace) -> Report:
    model, setting = masked.loaded(arguments), bundled.setting(arguments)
    plain = model.networks.plain
    ways = predictors(plain, model.networks.own)
    sentences, voice = harvard_sentences(), bundled.speaker(arguments)
    device, config = model.networks.own.device, plain.config
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    equal: dict[str, list[int]] = {name: [] for name in ways}
    cells = 0
    for number in range(-1, arguments.rounds):  # The first is for warm-up.
        works = model.internals(scripted(model, sentences[number % len(sentences)], voice, setting))
        request, rules, seed = works.request, works.rules, arguments.seed + number + 1
        codes = {}
        for name in running_order(tuple(ways), number):
            with stopwatch(str(device)) as watch:
                codes[name] = filled(ways[name], config, request, rules, arguments.steps, seed)
            if number >= 0:
                seconds[name].append(watch.seconds)
        if number >= 0:
            cells += codes[OFFICIAL].numel()
            for name, found in codes.items():
                equal[name].append(int((found == codes[OFFICIAL]).sum()))
            bundled.say(f"round {number + 1} of {arguments.rounds}")
    speed_up = {name: interval(ratios(seconds[OFFICIAL], found)) for name, found in seconds.items()}
    rows = [
        {
            "weights": arguments.model,
            "way": name,
            "ms per step": 1000 * sum(found) / len(found) / arguments.steps,
            **_gain(speed_up[name], arguments.rounds),
            "codes equal": f"{sum(equal[name])} of {cells}",
        }
        for name, found in seconds.items()
    ]
    if arguments.full_rounds:
        rows += _full_size(arguments.full_rounds, device)
    return Report.of(NAME, speed_up[EXACT], DEFINITION, rows)


def _full_size(rounds: int, device: torch.device) -> list[dict[str, object]]:
    bundled.say(f"forwards at OmniVoice's size, {rounds} rounds …")
    plain = random_network(FULL_SIZE, device)
    ways = predictors(plain, FusedMasked.of(plain))
    request = random_request(FULL_SIZE, FULL_TEXT, FULL_REFERENCE, FULL_FRAMES, device)
    codes = torch.full((FULL_SIZE.codebooks, FULL_FRAMES), FULL_SIZE.mask, device=device)
    begun = {name: begin(request, 2.0) for name, begin in ways.items()}

    def forward(name: str) -> torch.Tensor:
        return begun[name].scores(codes, 0, FULL_FRAMES, Guide.BOTH)

    expected = forward(OFFICIAL).log_softmax(-1)
    found = paired_ratio({name: partial(forward, name) for name in ways}, rounds, warm_up=1, device=str(device))
    size = f"OmniVoice's size, random ({FULL_TEXT} + {FULL_REFERENCE} + {FULL_FRAMES} rows)"
    rows = []
    for name in ways:
        taken = sorted(found.seconds[name])[len(found.seconds[name]) // 2]
        difference = float((forward(name).log_softmax(-1) - expected).abs().max())
        row = {"weights": size, "way": name, "ms per step": 1000 * taken}
        row |= _gain(found.speed_up[name], rounds) if name in found.speed_up else {"speed-up": 1.0}
        rows.append({**row, "largest difference": difference})
    return rows


def _gain(found: Interval, rounds: int) -> dict[str, float]:
    # A single round has no interval.
    return found.columns() if rounds > 1 else {"speed-up": found.median}


class UnpaddedRun:
    """Runs branches separately and scores only the canvas: see :class:`paretone.sampling.demasking.Predictor`."""

    normalised = True

    def __init__(self, network: MaskedNetwork, request: MaskedRequest, guidance: float) -> None:
        self._network, self._request, self._guidance = network, request, guidance

    @torch.inference_mode()
    def scores(self, codes: Tensor, first: int, last: int, guide: Guide) -> Tensor:
        network, request = self._network, self._request
        audio = torch.cat([request.reference, codes], dim=1)[None]
        guided = network(request.text[None], audio, request.frames, request.positions)[0].log_softmax(-1)
        alone = network(request.text[None, :0], codes[None], request.frames, request.alone_positions)[0].log_softmax(-1)
        return (guided + self._guidance * (guided - alone)).log_softmax(-1)[:, first:last]


def predictors(plain: MaskedNetwork, fused: FusedMasked) -> dict[str, Callable[[MaskedRequest, float], Predictor]]:
    """Predictors of a canvas by way; ``fused`` is made of ``plain``."""
    return {
        OFFICIAL: official(plain),
        OWN_LAYERS: partial(PlainRun, plain),
        UNPADDED: partial(UnpaddedRun, plain),
        EXACT: fused.begin,
    }


def filled(
    begin: Callable[[MaskedRequest, float], Predictor],
    config: MaskedConfig,
    request: MaskedRequest,
    rules: Rules,
    steps: int,
    seed: int,
) -> Tensor:
    """Codes (codebooks, frames) of a completely filled canvas."""
    device = request.text.device
    canvas = Canvas(config.codebooks, request.frames, config.mask, device)
    predictor = begin(request, rules.guidance)
    for _ in demask(predictor, canvas, Block(0, request.frames, steps), rules, SeededCanvasNoise(seed, device)):
        pass
    return canvas.codes
