"""Our OmniVoice against the official package's loop, on the same random weights of its size: the same codes.

Both fill in one canvas with the release's rules, from the same text, reference and random numbers: the official
``OmniVoice._generate_iterative``, whose text is given as ids, and ours with its exact savings
(:mod:`paretone.models.kernels.fused_masked`). No technique is used.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from paretone.bench import bundled
from paretone.bench.budget import Budget
from paretone.bench.masked import FULL_SIZE, UpstreamTransformer, random_network, random_request
from paretone.bench.report import Report
from paretone.commands.arguments import positive
from paretone.errors import PlainError
from paretone.measure.timing import Interval, interval, stopwatch
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.sampling.demasking import Canvas, Guide, Rules, demask
from paretone.sampling.demasking_schedule import Block
from tests.peers import official, rounds
from tests.peers.rounds import OFFICIAL, OURS, Limit, arithmetic, length, name_of, prepared, reported, rows_of, timed

NAME = "omnivoice"
PACKAGE = official.OMNIVOICE
STEPS, FRAMES = 8, 50
LEAST_STEPS = 2
TEXT, REFERENCE = 36, 75
"""Rows before the canvas: a sentence, and three seconds of a voice."""
LARGEST_DIFFERENCE = 1e-3
"""Of log-probabilities of the first step."""
DEFINITION = (
    f"Time of the official omnivoice {PACKAGE.version} over time of ours for the same codes from the same random "
    "weights of its size, all steps of a canvas; median of paired, interleaved rounds."
)

Way = Callable[[], Tensor]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    rounds.add_arguments(parser)
    parser.add_argument("--steps", type=positive, default=0, help=f"steps (default: {STEPS}; fewer on slow machines)")
    parser.add_argument(
        "--frames",
        type=positive,
        nargs="+",
        default=[FRAMES],
        help=f"frames of the canvas, 25 per second (default: {FRAMES}); the first counts",
    )


def run(arguments: argparse.Namespace) -> Report:
    """Fill in canvases in both, in the official package's environment."""
    if not official.inside(PACKAGE):
        return official.measured_inside(PACKAGE, NAME, arguments)
    device, budget = prepared(arguments), Budget(arguments.minutes, arguments.rounds)
    layers = arguments.layers or FULL_SIZE.transformer.layers
    # The official code looks up codes in the table of text as well, and leaves out what it finds.
    ids = max(FULL_SIZE.text_vocabulary, FULL_SIZE.entries)
    transformer = replace(FULL_SIZE.transformer, layers=layers)
    config = replace(FULL_SIZE, transformer=transformer, text_vocabulary=ids)
    bundled.say(f"Making OmniVoice's network with {layers} layers …")
    plain = random_network(config, device)
    rows: list[dict[str, object]] = []
    headlines: list[Interval] = []
    limit = None
    for frames in arguments.frames:
        request = random_request(config, TEXT, REFERENCE, frames, device)
        steps = arguments.steps or _fitting(plain, request, budget)
        headline, found = compare(plain, request, steps, budget)
        rows += found
        headlines.append(headline)
        if device.type == "cpu" and limit is None:
            limit = _limit(plain, request, steps)
            rows.append({"model": "OmniVoice", "precision": "float32", "frames": frames, **limit.row})
    return reported(headlines[0], DEFINITION, limit, rows)


def _fitting(plain: MaskedNetwork, request: MaskedRequest, budget: Budget) -> int:
    """The usual number of steps; fewer if the fewest rounds would not end in time, by a short run of the official."""
    short = OfficialCanvas(plain, request, LEAST_STEPS)
    for _ in range(2):  # The first run is slower than others.
        with stopwatch(str(request.text.device)) as watch:
            short()
    steps = length(budget, watch.wall_seconds / LEAST_STEPS, STEPS, LEAST_STEPS)
    if steps < STEPS:
        bundled.say(f"{STEPS} steps would take longer than there is time for: {steps} …")
    return steps


def compare(
    plain: MaskedNetwork, request: MaskedRequest, steps: int, budget: Budget
) -> tuple[Interval, list[dict[str, object]]]:
    """The speed-up of ours, and the rows. Raises :class:`PlainError` if scores or codes differ."""
    device = request.text.device
    fused = FusedMasked.of(plain)
    theirs = OfficialCanvas(plain, request, steps)
    largest = (theirs.first_scores() - _first_scores(fused, request)).abs().max().item()
    if not largest < LARGEST_DIFFERENCE:
        raise PlainError(f"Log-probabilities differ by {largest:.2g}: our implementation has an error; report it.")
    ways: dict[str, Way] = {OFFICIAL: theirs, OURS: lambda: filled(fused, request, steps)}
    seconds, codes = {}, {}
    for name, way in ways.items():
        with stopwatch(str(device)) as watch:
            codes[name] = way()
        seconds[name] = watch.wall_seconds
    equal, cells = int((codes[OFFICIAL] == codes[OURS]).sum()), codes[OFFICIAL].numel()
    if equal < cells:
        raise PlainError(f"Only {equal} of {cells} codes are equal: our implementation has an error; report it.")
    kind = name_of(plain.audio_heads.weight.dtype)
    comparison = timed(ways, seconds, device, budget, f"OmniVoice, {request.frames} frames, {steps} steps")
    own: dict[str, dict[str, object]] = {
        name: {"ms per step": 1000 * interval(taken).median / steps} for name, taken in comparison.seconds.items()
    }
    own[OURS] |= {"codes equal": f"{equal} of {cells}", "largest difference": largest}
    shared = {"model": "OmniVoice", "precision": kind, "prompt": request.prefix, "frames": request.frames}
    return interval(comparison.ratios(OURS)), rows_of(comparison, {**shared, "steps": steps}, own)


class TorchNoise:
    """Random numbers from torch's own generator, as the official code draws them; see
    :class:`paretone.sampling.demasking.CanvasNoise`."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        torch.manual_seed(0)

    def positions(self, step: int, codebooks: int, frames: int) -> Tensor:
        return torch.rand(codebooks, frames, device=self._device)

    def classes(self, step: int, codebooks: int, frames: int, entries: int) -> Tensor:
        return torch.rand(codebooks, frames, entries, device=self._device)


def filled(fused: FusedMasked, request: MaskedRequest, steps: int) -> Tensor:
    """The codes (codebooks, frames) of ours."""
    config, rules, device = fused.config, Rules(), request.text.device
    canvas = Canvas(config.codebooks, request.frames, config.mask, device)
    noise = TorchNoise(device)
    for _ in demask(fused.begin(request, rules.guidance), canvas, Block(0, request.frames, steps), rules, noise):
        pass
    return canvas.codes


def _masked(config: MaskedConfig, request: MaskedRequest) -> Tensor:
    return torch.full((config.codebooks, request.frames), config.mask, device=request.text.device)


def _first_scores(fused: FusedMasked, request: MaskedRequest) -> Tensor:
    """Log-probabilities (codebooks, frames, entries) of the first step, without guidance."""
    run = fused.begin(request, 0.0)
    return run.scores(_masked(fused.config, request), 0, request.frames, Guide.ALONE).float().log_softmax(-1)


def _limit(plain: MaskedNetwork, request: MaskedRequest, steps: int) -> Limit:
    """How near ours stands to what the processor can do, from one profiled canvas."""
    fused = FusedMasked.of(plain)
    run = fused.begin(request, Rules().guidance)
    codes = _masked(fused.config, request)

    def passes() -> None:
        for _ in range(min(steps, 2)):
            run.scores(codes, 0, request.frames, Guide.BOTH)

    operations = min(steps, 2) * request.operations(fused.config, request.frames, Guide.BOTH)
    return arithmetic(passes, operations)


class OfficialCanvas:
    """``OmniVoice._generate_iterative`` of the official package on the weights of ``plain``, with ids for a text."""

    def __init__(self, plain: MaskedNetwork, request: MaskedRequest, steps: int) -> None:
        official.import_models(PACKAGE)
        from omnivoice.models import omnivoice

        config, upstream = plain.config, UpstreamTransformer(plain.llm).model
        settings = omnivoice.OmniVoiceConfig(
            audio_vocab_size=config.entries,
            audio_mask_id=config.mask,
            num_audio_codebook=config.codebooks,
            llm_config=upstream.config,
        )
        for weight in upstream.parameters():
            # The constructor draws new weights for all that do not say that they have theirs.
            setattr(weight, "_is_hf_initialized", True)  # noqa: B010
        self._model: Any = omnivoice.OmniVoice(settings, llm=upstream)
        self._model.audio_embeddings.weight = plain.audio_embeddings.weight
        self._model.audio_heads.weight = plain.audio_heads.weight
        # As from_pretrained has it; the constructor leaves none.
        self._model.set_attn_implementation("sdpa")
        self._model = self._model.to(request.text.device).eval().requires_grad_(False)
        inputs = self._inputs = self._prepared(request, config)
        self._model._prepare_inference_inputs = lambda *given: inputs
        self._task = omnivoice.GenerationTask(
            batch_size=1,
            texts=[""],
            target_lens=[request.frames],
            langs=[None],
            instructs=[None],
            ref_texts=[None],
            ref_audio_tokens=[None],
            ref_rms=[None],
        )
        self._steps, self._frames = omnivoice.OmniVoiceGenerationConfig(num_step=steps), request.frames

    @staticmethod
    def _prepared(request: MaskedRequest, config: MaskedConfig) -> dict[str, Tensor]:
        """What ``_prepare_inference_inputs`` returns: ids (1, codebooks, rows), and which rows are audio."""
        text = request.text.expand(config.codebooks, -1)
        ids = torch.cat([text, request.reference, _masked(config, request)], dim=1)[None]
        audio = torch.arange(ids.shape[2], device=ids.device) >= len(request.text)
        return {"input_ids": ids, "audio_mask": audio[None]}

    @torch.inference_mode()
    def __call__(self) -> Tensor:
        """The codes (codebooks, frames)."""
        torch.manual_seed(0)
        codes: Tensor = self._model._generate_iterative(self._task, self._steps)[0]
        return codes

    @torch.inference_mode()
    def first_scores(self) -> Tensor:
        """Log-probabilities (codebooks, frames, entries) of the first step, without guidance."""
        rows = self._inputs["input_ids"].shape[2]
        every = torch.ones(1, 1, rows, rows, dtype=torch.bool, device=self._inputs["audio_mask"].device)
        scores: Tensor = self._model(**self._inputs, attention_mask=every).logits[0, :, -self._frames :]
        return scores.float().log_softmax(-1)
