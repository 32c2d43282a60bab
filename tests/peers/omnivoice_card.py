"""OmniVoice's size on a GPU: speed over eager float32, distance from the floor, first audio of ten seconds.

The official way runs the Qwen3 of ``transformers`` in float32 as upstream does, both branches padded. The others run
with the exact savings, in float32, with the whole network in fewer bits, and with each step recorded as a CUDA graph on
top of that. Weights are random, so that no download is needed; the work does not depend on them. The reading of text
and voice is not part of it.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from paretone import device as devices
from paretone.bench import bundled
from paretone.bench.masked import EXACT, FULL_SIZE, OFFICIAL, official, random_network, random_request
from paretone.bench.report import Report
from paretone.errors import DeviceError
from paretone.measure.machine import describe
from paretone.measure.roofline.benchmarks import ceilings_of
from paretone.measure.roofline.ceilings import Ceilings
from paretone.measure.roofline.clock import launches
from paretone.measure.roofline.masked_stages import masked_stages
from paretone.measure.timing import paired_ratio
from paretone.models.families.masked import MaskedInternals
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.models.kernels.graphs import GraphCache, Record, record_cuda, with_graphs
from paretone.models.networks.masked_network import MaskedConfig
from paretone.models.omnivoice.config import FRAME_RATE
from paretone.models.omnivoice.higgs import HiggsConfig, HiggsDecoder, WindowedHiggs
from paretone.sampling.demasking import Canvas, Guide, Predictor, Rules, SeededCanvasNoise, demask
from paretone.sampling.demasking_schedule import Block
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.setting.plan import WHOLE, Blocks, MaskedPlan
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import foreseen
from tests.peers.omnivoice_exact import filled

NAME = "omnivoice-card"
STEPS = 32
TEXT, REFERENCE, SECONDS = 60, 75, 10
"""Text tokens, frames of a three-second voice, and seconds of the clip."""
NARROW = f"bfloat16{WHOLE}"
EXACT_LENGTHS = 1
"""Bucket of the graphs: all rounds fill the same canvas, without padding."""
GRAPHED = f"+ {NARROW}, CUDA graphs"
DEFINITION = (
    "Seconds that eager float32, run as upstream, takes to fill in a canvas of ten seconds, over those with all exact "
    "savings, bfloat16 and CUDA graphs; median of paired, interleaved rounds. Targets: at least 5, within 4 × the "
    "floor, first audio within 40 ms."
)


@dataclass(frozen=True)
class Case:
    """Configuration of the measurement: model, device, recording of graphs."""

    config: MaskedConfig
    decoder: HiggsConfig
    request: MaskedRequest
    device: torch.device
    steps: int = STEPS
    record: Record = record_cuda


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="auto or cuda (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="interleaved rounds (default: %(default)s)")


def run(arguments: argparse.Namespace) -> Report:
    """Whole canvases, then the first block. Raises :class:`DeviceError` without an NVIDIA GPU."""
    device = devices.choose(arguments.device)
    if device.type != "cuda":
        raise DeviceError(
            f"This bench needs an NVIDIA graphics card, but {devices.title(device)} is not one; the bench omnivoice "
            "measures processors."
        )
    request = random_request(FULL_SIZE, TEXT, REFERENCE, round(SECONDS * FRAME_RATE), device)
    case = Case(FULL_SIZE, HiggsConfig(), request, device)
    bundled.say("Measuring this card's ceilings …")
    ceilings = ceilings_of(device)
    bundled.say(f"Filling in canvases, {arguments.rounds} rounds …")
    rows, headline, interval = canvases(case, arguments.rounds, ceilings)
    bundled.say("Timing first blocks …")
    rows.append(first_audio(case, arguments.rounds))
    return Report(NAME, headline, interval, DEFINITION, tuple(rows), describe().to_json())


@torch.inference_mode()
def canvases(case: Case, rounds: int, ceilings: Ceilings) -> tuple[list[dict[str, object]], float, tuple[float, float]]:
    """A row per way of filling the canvas; speed-up of the last over the official one, and its interval."""
    plain = random_network(case.config, case.device)
    exact, narrow = FusedMasked.of(plain), FusedMasked.of(plain, NARROW)
    cache: GraphCache = GraphCache(case.record)
    cache.most = 4
    begin: Mapping[str, Callable[[MaskedRequest, float], Predictor]] = {
        OFFICIAL: official(plain),
        EXACT: exact.begin,
        f"+ {NARROW}": narrow.begin,
        GRAPHED: with_graphs(narrow, cache, EXACT_LENGTHS).begin,
    }
    floors = {EXACT: floor(case, exact, "float32", ceilings)}
    floors[OFFICIAL], floors[f"+ {NARROW}"] = floors[EXACT], floor(case, narrow, "bfloat16", ceilings)
    floors[GRAPHED] = floors[f"+ {NARROW}"]

    def fill(name: str) -> torch.Tensor:
        return filled(begin[name], case.config, case.request, Rules(), case.steps, 0)

    found = paired_ratio({name: partial(fill, name) for name in begin}, rounds, device=str(case.device))
    rows: list[dict[str, object]] = []
    for name in begin:
        taken, gain = float(np.median(found.seconds[name])), found.speed_up.get(name)
        row: dict[str, object] = {"way": name, "ms": 1000 * taken, "floor (ms)": 1000 * floors[name]}
        row |= {"over the floor": taken / floors[name], "speed-up": 1.0 if gain is None else gain.median}
        if gain is not None:
            row |= {"low": gain.low, "high": gain.high}
        predictor = begin[name](case.request, Rules().guidance)
        row["launches per step"] = launches(partial(_step, case, predictor), case.device)
        rows.append(row)
    said = [one for one in cache.notes() if one.startswith("No CUDA graph")]
    if said:
        raise DeviceError(said[0])
    gain = found.speed_up[GRAPHED]
    return rows, gain.median, (gain.low, gain.high)


@torch.inference_mode()
def first_audio(case: Case, rounds: int) -> dict[str, object]:
    """Latency from the request to the first block, with the technique's default sizes; warm."""
    plan = blocks()
    network = FusedMasked.of(random_network(case.config, case.device), NARROW)
    cache: GraphCache = GraphCache(case.record)
    cache.most = 4
    graphed, codec = with_graphs(network, cache, EXACT_LENGTHS), HiggsDecoder(case.decoder).to(case.device).eval()
    end = min(plan.first_size, case.request.frames)
    seen = case.request.frames if plan.look_ahead is None else min(end + plan.look_ahead, case.request.frames)

    def speak() -> None:
        canvas = Canvas(case.config.codebooks, case.request.frames, case.config.mask, case.device)
        predictor = graphed.begin(case.request.shortened(seen), Rules().guidance)
        for _ in demask(predictor, canvas, Block(0, end, plan.first_steps), Rules(), SeededCanvasNoise(0, case.device)):
            pass
        WindowedHiggs(codec).push(canvas.codes[:, :end].clamp(max=case.decoder.codebook_size - 1))

    found = paired_ratio({"first": speak, "again": speak}, rounds, device=str(case.device))
    taken = 1000 * np.array([*found.wall_seconds["first"], *found.wall_seconds["again"]])
    return {
        "way": f"first audio: {end} frames in {plan.first_steps} steps, {NARROW}, CUDA graphs, decoded",
        "ms": float(np.median(taken)),
        "p90 (ms)": float(np.percentile(taken, 90)),
    }


def blocks() -> Blocks:
    """Division of the canvas by the technique at its defaults."""
    plan = foreseen(Setting("OmniVoice").with_technique(UsedTechnique("blockwise")))
    assert isinstance(plan, MaskedPlan) and plan.blocks is not None
    return plan.blocks


def floor(case: Case, network: FusedMasked, precision: str, ceilings: Ceilings) -> float:
    """Lower bound in seconds of all steps by the roofline, without the decoder."""
    nothing = Values()
    works = MaskedInternals(
        network,
        MaskedPlan(nothing, nothing, "", Compatibility("", "", "", nothing), precision),
        case.request,
        lambda request: network.begin(request, Rules().guidance),
        Rules(),
        (Block(0, case.request.frames, case.steps),),
        lambda: WindowedHiggs(HiggsDecoder(case.decoder)),
        1,
        0.0,
    )
    steps = [stage for stage in masked_stages(works) if stage.name == "evaluation"]
    return sum(
        stage.forwards * part.calls * ceilings.floor(part.work, part.precision)
        for stage in steps
        for part in stage.parts
        if part.work is not None
    )


def _step(case: Case, predictor: Predictor) -> None:
    codes = torch.full((case.config.codebooks, case.request.frames), case.config.mask, device=case.device)
    predictor.scores(codes, 0, case.request.frames, Guide.BOTH)
