"""Shared by the peers that speak token by token: the same sentence of tokens from both, timed and compared.

The official loop samples with torch's own random numbers. Ours has one random number per token; it is given the one
that draws the official token from our distribution, found in a first pass that is not timed. So both speak the same
tokens by their whole loops, samplers included, and the scores after every one of them are compared.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from paretone.bench import bundled
from paretone.bench.budget import Budget
from paretone.bench.report import Report
from paretone.commands.arguments import positive
from paretone.errors import PlainError
from paretone.measure.timing import Interval, interval, stopwatch
from paretone.models.families.language_network import TokenModel
from paretone.models.kernels.few_rows import BlockProduct
from paretone.models.kernels.graphs import GraphCache
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.shapes import without_weights
from paretone.sampling.autoregressive import Complete, Request, decode
from paretone.sampling.tokens import TokenSampler
from tests.peers import rounds
from tests.peers.rounds import (
    GRAPHS,
    OFFICIAL,
    OURS,
    Limit,
    length,
    name_of,
    precisions,
    prepared,
    reading,
    reported,
    rows_of,
    timed,
)

LARGEST_DIFFERENCE = {torch.float32: 1e-3}
"""Of log-probabilities, in the precisions in which both must agree to rounding."""
PROFILED = 12
"""One-token passes that are profiled."""
PROBES = (2, 10)
"""Tokens of two runs that show how long a token takes, and what comes before the first."""
LEAST_TOKENS = 16
BUCKET = 64
"""Multiple of a recorded pass's length."""


@dataclass(frozen=True)
class Peers:
    """One model in both implementations, with one sentence to speak."""

    model: str
    way: str
    """How the official way is called."""
    official: Callable[[], list[int]]
    """The official loop: tokens in our local ids, the same every time."""
    scores: Callable[[], tuple[list[int], Tensor]]
    """The same, with the scores (tokens, ids) that each token was drawn from."""
    tokens: TokenModel
    """Ours, optimised."""
    request: Request
    sampler: TokenSampler
    of_length: Callable[[int], Peers]
    """The same with as many tokens to speak."""
    codes: int = 1
    """Codes of a token's frame."""
    frames: Callable[[], Tensor] | None = None
    """Codes (frames, codes) of the official loop, if a token is the first of several."""
    completing: Callable[[Any], Complete] | None = None
    """How a copy of ours completes tokens to frames."""


class Steering:
    """A sampler that finds the random numbers with which ``tokens`` are drawn, and keeps the log-probabilities."""

    def __init__(self, sampler: TokenSampler, tokens: Sequence[int]) -> None:
        self._sampler, self._tokens = sampler, tokens
        self.uniforms: list[float] = []
        self.scores: list[Tensor] = []

    def probabilities(self, logits: Tensor, history: Sequence[int]) -> Tensor:
        """As :meth:`paretone.sampling.tokens.TokenSampler.probabilities`, of one row."""
        found = self._sampler.probabilities(logits, history)
        sums, token = found[0].double().cumsum(-1), self._tokens[len(history)]
        below = sums[token - 1] if token else sums.new_zeros(())
        self.uniforms.append(float((below + sums[token]) / (2 * sums[-1])))
        self.scores.append(logits[0].log_softmax(-1))
        return found

    def __call__(self) -> float:
        """The random number of the last row."""
        return self.uniforms[-1]


def spoken(model: TokenModel, request: Request, sampler: TokenSampler, uniforms: Callable[[], float]) -> list[int]:
    """All tokens of ours."""
    return [token for cycle in decode(model, request, sampler, uniforms) for token in cycle.tokens]


def add_arguments(parser: argparse.ArgumentParser, usual: str) -> None:
    """The options of these comparisons; ``usual`` says how many tokens there are by default."""
    rounds.add_arguments(parser)
    parser.add_argument(
        "--tokens", type=positive, default=0, help=f"tokens to speak (default: {usual}; fewer on slow machines)"
    )


def measure(
    arguments: argparse.Namespace, make: Callable[[torch.device, torch.dtype, int], Peers], definition: str
) -> Report:
    """The report on the peers that ``make`` makes for a device, a precision and a number of layers (0: all)."""
    device, budget = prepared(arguments), Budget(arguments.minutes, arguments.rounds)
    rows: list[dict[str, object]] = []
    headlines: list[Interval] = []
    limit = None
    for precision in precisions(device):
        peers = make(device, precision, arguments.layers)
        if not arguments.tokens:
            peers = fitting(peers, device, budget)
        headline, found = compare(peers, device, precision, budget)
        headlines.append(headline)
        rows += found
        if device.type == "cpu":
            limit = _limit(peers)
            rows.append({"model": peers.model, "precision": name_of(precision), **limit.row})
        del peers
    return reported(headlines[0], definition, limit, rows)


def fitting(peers: Peers, device: torch.device, budget: Budget) -> Peers:
    """The same with fewer tokens if the fewest rounds would not end in time, by two short runs of the official loop."""
    few, more = PROBES
    seconds = {}
    for count in (few, more, few):  # The first run is slower than others.
        with stopwatch(str(device)) as watch:
            peers.of_length(count).official()
        seconds[count] = watch.wall_seconds
    each = max(0.0, seconds[more] - seconds[few]) / (more - few)
    most = peers.request.maximum
    count = length(budget, each, most, min(LEAST_TOKENS, most), max(0.0, seconds[few] - few * each))
    if count == most:
        return peers
    bundled.say(f"{most} tokens would take longer than there is time for: {count} …")
    return peers.of_length(count)


def compare(
    peers: Peers, device: torch.device, precision: torch.dtype, budget: Budget
) -> tuple[Interval, list[dict[str, object]]]:
    """The speed-up of ours, and the rows. Raises :class:`PlainError` if tokens or scores differ."""
    request, count = peers.request, peers.request.maximum
    bundled.say(f"{peers.model}: {request.embedded.shape[1]} rows of prompt, {count} tokens by each …")
    seconds: dict[str, float] = {}
    with stopwatch(str(device)) as watch:
        tokens, theirs = peers.scores()
    seconds[OFFICIAL] = watch.wall_seconds
    models = {OURS: peers.tokens}
    if device.type == "cuda":
        models[GRAPHS] = peers.tokens.graphed(GraphCache(), BUCKET)
    own: dict[str, dict[str, object]] = {}
    ways: dict[str, Callable[[], object]] = {OFFICIAL: peers.official}
    for way, model in models.items():
        if peers.completing is not None:  # By its own graphs, if it has any.
            request = replace(request, complete=peers.completing(model))
        steering = Steering(peers.sampler, tokens)
        with stopwatch(str(device)) as watch:
            found = spoken(model, request, steering, steering)
        seconds[way] = watch.wall_seconds
        own[way] = _agreement(tokens, found, theirs, torch.stack(steering.scores), precision)
        uniforms = [one for one in steering.uniforms for _ in range(peers.codes)]
        ways[way] = _repeated(model, request, peers.sampler, uniforms)
        if peers.frames is not None:
            own[way] |= _frames_equal(model, request, peers, uniforms)
    kind = name_of(precision)
    comparison = timed(ways, seconds, device, budget, f"{peers.model}, {kind}")
    own |= {
        way: {"ms per token": 1000 * interval(taken).median / count, **own.get(way, {})}
        for way, taken in comparison.seconds.items()
    }
    own[OFFICIAL] = {"official way": peers.way, **own[OFFICIAL]}
    shared = {"model": peers.model, "precision": kind, "prompt": request.embedded.shape[1], "tokens": count}
    return interval(comparison.ratios(OURS)), rows_of(comparison, shared, own)


def _repeated(
    model: TokenModel, request: Request, sampler: TokenSampler, uniforms: Sequence[float]
) -> Callable[[], list[int]]:
    return lambda: spoken(model, request, sampler, iter(uniforms).__next__)


def _frames_equal(model: TokenModel, request: Request, peers: Peers, uniforms: Sequence[float]) -> dict[str, object]:
    """Equal codes within frames, for a row. Raises :class:`PlainError` for others."""
    assert peers.frames is not None
    theirs = peers.frames()
    cycles = decode(model, request, peers.sampler, iter(uniforms).__next__)
    ours = torch.tensor([cycle.frames for cycle in cycles]).to(theirs)[: len(theirs)]
    equal = int((theirs == ours).sum())
    if equal < theirs.numel():
        raise PlainError(
            f"Only {equal} of {theirs.numel()} codes are equal: our implementation has an error; report it."
        )
    return {"codes equal": f"{equal} of {theirs.numel()}"}


def _agreement(
    tokens: Sequence[int], found: Sequence[int], theirs: Tensor, ours: Tensor, precision: torch.dtype
) -> dict[str, object]:
    """What is equal, for a row. Raises :class:`PlainError` for what must be."""
    equal = sum(one == two for one, two in zip(tokens, found, strict=False))
    allowed = ours.isfinite()
    expected = theirs.to(ours).masked_fill(~allowed, -math.inf).log_softmax(-1)
    largest = (expected - ours)[allowed].abs().max().item()
    if precision in LARGEST_DIFFERENCE and not (equal == len(tokens) == len(found)):
        raise PlainError(f"Only {equal} of {len(tokens)} tokens are equal: our implementation has an error; report it.")
    if precision in LARGEST_DIFFERENCE and not largest < LARGEST_DIFFERENCE[precision]:
        raise PlainError(f"Log-probabilities differ by {largest:.2g}: our implementation has an error; report it.")
    likeliest = int((expected.argmax(-1) == ours.argmax(-1)).sum())
    return {
        "tokens equal": f"{equal} of {len(tokens)}",
        "likeliest equal": f"{likeliest} of {len(tokens)}",
        "largest difference": largest,
    }


def _limit(peers: Peers) -> Limit:
    """From one-token passes after the prompt."""
    passes = min(PROFILED, peers.request.maximum - 1)
    request = replace(peers.request, minimum=passes + 1, maximum=passes + 1)
    cycles = decode(peers.tokens, request, peers.sampler, lambda: 0.5)
    next(cycles)
    read = passes * bytes_per_pass(peers.tokens, request.embedded.shape[1] + passes // 2)
    return reading(lambda: list(cycles), read)


def bytes_per_pass(model: TokenModel, context: int) -> float:
    """Bytes of weights, keys and values that a pass of one token after ``context`` others reads."""
    transformer = model.fused_transformer
    config, width = transformer.config, transformer.dtype.itemsize
    down = transformer.fused_layers[0].down
    halves = isinstance(down, BlockProduct) and down.half
    layers = config.layers * config.weights_of_layer * (2 if halves else width)
    head = model.head.numel() * model.head_weight_bytes
    more, predictor = 0.0, getattr(model, "predictor", None)
    if predictor is not None:  # It reads all its weights for every code of a frame.
        inner = predictor.transformer.config
        each = getattr(predictor.transformer.fused_layers[0].down, "weight_bytes", width)
        scored = predictor.tables.shape[1] * inner.hidden
        more = predictor.groups * each * (inner.layers * inner.weights_of_layer + scored)
    return more + layers + head + 2.0 * config.layers * config.key_width * context * width


def random_transformer(config: CausalConfig, device: torch.device, precision: torch.dtype) -> CausalTransformer:
    """A transformer of ``config`` with the same random weights every time, as spread as before training."""
    with without_weights():
        made = CausalTransformer(config)
    made = made.to(precision).to_empty(device=device)
    torch.manual_seed(0)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            weight.fill_(1.0) if name.endswith("norm.weight") else nn.init.normal_(weight, std=0.02)
    return made.eval().requires_grad_(False)
