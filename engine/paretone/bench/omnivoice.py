"""A masked model in the official way, then with each technique added: latency, first audio, launches, quality, memory.

Forwards are timed at OmniVoice's size with random weights, whole takes on a model that speaks. In every round all ways
speak the same two sentences with the same seed, in an order that changes; a first round warms up. The official way runs
the Qwen3 of ``transformers`` on both branches, padded, with float32 weights; all others run with the exact savings.
What a technique costs in words, timbre and codes is measured against the exact savings alone, on single sentences in
all voices (:mod:`paretone.bench.masked`).
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from paretone.bench import bundled, masked
from paretone.bench.bundled import used
from paretone.bench.masked import EXACT, FULL_SIZE, OFFICIAL, judged, official, random_network, random_request
from paretone.bench.report import Report
from paretone.commands.arguments import count, positive
from paretone.measure.memory import PeakMemory
from paretone.measure.roofline.clock import launches
from paretone.measure.timing import interval, paired_ratio, ratios
from paretone.measure.verdicts import ORIGINAL
from paretone.models.base import ModelInfo, Voice
from paretone.models.catalogue import harvard_sentences
from paretone.models.families.masked import MaskedSpeech, offered
from paretone.models.kernels.fused_masked import FusedMasked
from paretone.sampling.demasking import Guide, Predictor
from paretone.sampling.demasking_schedule import Block
from paretone.setting.plan import WHOLE
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted, synthesise
from paretone.techniques import problem, technique

NAME = "omnivoice"
FASTEST = (f"bfloat16{WHOLE}", "bfloat16")
"""The usually fastest precisions, best first."""
SETTLED = 10
"""Generations after which memory should stop growing."""
DEFINITION = (
    "Latency of two sentences, run as the official code does, over that with the exact savings, in the fastest "
    "precision of the device; wall time, median of paired, interleaved rounds."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    masked.add_arguments(parser, rounds=20)
    parser.add_argument("--full-rounds", type=count, default=3, help="rounds at OmniVoice's size; 0: none (default: 3)")
    parser.add_argument(
        "--full-rows", type=positive, nargs=3, default=[36, 75, 50], help="text, reference and canvas rows"
    )
    parser.add_argument("--generations", type=count, default=50, help="for the memory; 0: none (default: 50)")
    bundled.add_listening_arguments(parser, sentences=10)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="quick look: 4 rounds, 1 at OmniVoice's size, 15 generations, 2 judged sentences",
    )


@dataclass(frozen=True)
class Way:
    setting: Setting
    judged: bool = True
    headline: bool = False


def run(arguments: argparse.Namespace) -> Report:
    if arguments.quick:
        arguments.rounds, arguments.full_rounds, arguments.generations, arguments.sentences = 4, 1, 15, 2
    model = masked.loaded(arguments)
    device = model.networks.own.device
    rows: list[dict[str, object]] = []
    found_ways = possible_ways(bundled.setting(arguments), model.info)
    ways = {name: way.setting for name, way in found_ways.items()}
    memory = []
    if arguments.generations:  # First, because remains of a full-size network would hide growth.
        memory.append(_memory(model, ways[EXACT], bundled.speaker(arguments), arguments.generations))
    if arguments.full_rounds:
        rows += _full_size(arguments.full_rounds, arguments.full_rows, device)
    taken = masked.taken(model, ways, arguments, apart=1, within=partial(_as, model))
    counts = _launches(model, ways, bundled.speaker(arguments))
    listened = {name: way.setting for name, way in found_ways.items() if way.judged}
    said = judged(model, listened, bundled.heard_sentences(arguments), bundled.heard_voices(arguments))
    latency = {name: [one.seconds for one in found] for name, found in taken.items()}
    gains = {name: interval(ratios(latency[OFFICIAL], own)) for name, own in latency.items()}
    for name, found in taken.items():
        row: dict[str, object] = {"weights": arguments.model, "way": name}
        for what, values in (("latency", latency[name]), ("first audio", [one.first_audio_seconds for one in found])):
            row |= {f"{what} p{share} (s)": float(np.percentile(values, share)) for share in (50, 90)}
        row |= gains[name].columns()
        row["forwards per second"] = sum(one.evaluations for one in found) / sum(one.backbone_seconds for one in found)
        row["launches per forward"] = counts[name]
        row["playback waits p90 (s)"] = float(np.percentile([one.pause_seconds or 0.0 for one in found], 90))
        rows.append(row | said.get(name, {}))
    if said:
        rows.append({"weights": arguments.model, "way": ORIGINAL, **said[ORIGINAL]})
    rows += memory
    precise = (name for name, way in found_ways.items() if way.headline)
    return Report.of(NAME, max((gains[name] for name in precise), key=lambda one: one.median), DEFINITION, rows)


def possible_ways(plain: Setting, info: ModelInfo) -> dict[str, Way]:
    half = max(int(plain.options["steps"]) // 2, 1)
    found = {OFFICIAL: Way(plain, judged=False), EXACT: Way(plain, headline=True)}

    def add(title: str, below: str, *added: UsedTechnique, judged: bool = True, headline: bool = False) -> None:
        setting = found[below].setting
        for one in added:
            setting = setting.with_technique(one)
        if problem(info, setting) is None:
            found[title] = Way(setting, judged, headline)

    for precision in info.precisions:
        if precision != "float32":
            add(f"+ {precision}", EXACT, used("precision", precision=precision), headline=True)
    fastest = next((f"+ {one}" for one in FASTEST if f"+ {one}" in found), EXACT)
    for below in dict.fromkeys((EXACT, fastest)):
        add(f"{below}, CUDA graphs", below, used("graphs"))
    # Only where graphs are recorded, too, that is on GPUs: on CPUs compiling takes minutes for little.
    if not technique("graphs").not_offered(info):
        add("exact, torch.compile", EXACT, used("compilation"))
    add(f"exact, {half} steps", EXACT, used("fewer_steps", steps=half))
    add(f"exact, guided at the first {half}", EXACT, used("guidance_interval", steps=half))
    add("exact, guided at every second", EXACT, used("guidance_stride"))
    add("exact, text and reference at every fourth", EXACT, used("frozen_prefix"))
    # Small models lack the layers for it, and have no such row.
    add("exact, all layers at every second", EXACT, used("layer_reuse"))
    together = used("fewer_steps", steps=half), used("guidance_stride"), used("frozen_prefix")
    add(f"{fastest}, with all of these together", fastest, *together)
    # On the judged single sentences it equals the exact savings.
    add("exact, sentence by sentence", EXACT, used("sentencewise"), judged=False)
    add("exact, blockwise", EXACT, used("blockwise"))
    return found


@contextlib.contextmanager
def _as(model: MaskedSpeech, name: str) -> Iterator[None]:
    """``model``, in the official way if ``name`` says so."""
    if name != OFFICIAL:
        yield
        return
    networks = model.networks
    with networks.standing_in(networks.own.beginning(official(networks.plain))):
        yield


def _launches(model: MaskedSpeech, ways: Mapping[str, Setting], voice: Voice) -> dict[str, int]:
    """Kernels of one guided forward and its scoring on a GPU; operator calls on a CPU."""
    counts = {}
    for name, setting in ways.items():
        with _as(model, name):
            works = model.internals(scripted(model, harvard_sentences()[0], voice, setting))
            begun = works.network.begin(works.request, works.rules.guidance)
        config, frames, device = works.network.config, works.request.frames, works.network.device
        codes = torch.full((config.codebooks, frames), config.mask, device=device)
        forward = partial(_scored, begun, codes, works.blocks[0])
        forward()
        counts[name] = launches(forward, device)
    return counts


def _scored(begun: Predictor, codes: torch.Tensor, block: Block) -> object:
    return begun.scores(codes, block.start, block.end, Guide.BOTH).float().max(-1)


def _memory(model: MaskedSpeech, setting: Setting, voice: Voice, generations: int) -> dict[str, object]:
    """Peak memory after some generations and after all, of different lengths."""
    bundled.say(f"memory of {generations} generations …")
    memory, sentences = PeakMemory(str(model.networks.own.device)), harvard_sentences()
    settled = 0
    longest = " ".join(sentences[:3])
    for number in range(generations):
        text = longest if number in (0, generations - 1) else sentences[number % len(sentences)]
        words = text.split()
        text = " ".join(words[: 2 + number % max(len(words) - 1, 1)]) if number % 3 else text
        synthesise(model, text, voice, replace(setting, seed=number))
        if number + 1 == min(SETTLED, generations):
            settled = memory.peak_bytes
    return {
        "weights": setting.model,
        "way": f"{EXACT}, {generations} generations of different lengths",
        f"peak after {min(SETTLED, generations)} (MB)": settled / 1e6,
        f"peak after {generations} (MB)": memory.peak_bytes / 1e6,
        "growth since (MB)": (memory.peak_bytes - settled) / 1e6,
    }


def _full_size(rounds: int, shape: list[int], device: torch.device) -> list[dict[str, object]]:
    """Single forwards at OmniVoice's size, with random weights."""
    bundled.say(f"forwards at OmniVoice's size, {rounds} rounds …")
    plain = random_network(FULL_SIZE, device)
    text, reference, frames = shape
    request = random_request(FULL_SIZE, text, reference, frames, device)
    exact = FusedMasked.of(plain)
    begun = {OFFICIAL: official(plain)(request, 2.0), EXACT: exact.begin(request, 2.0)}
    for name in offered(device):
        if name != "float32":
            begun[f"+ {name}"] = FusedMasked.of(plain, name).begin(request, 2.0)
    codes = torch.full((FULL_SIZE.codebooks, frames), FULL_SIZE.mask, device=device)

    def forward(name: str) -> torch.Tensor:
        return begun[name].scores(codes, 0, frames, Guide.BOTH).float().log_softmax(-1)

    expected = forward(OFFICIAL)
    found = paired_ratio({name: partial(forward, name) for name in begun}, rounds, device=str(device))
    rows = []
    for name in begun:
        taken = float(np.median(found.seconds[name]))
        gain = found.speed_up.get(name)
        row: dict[str, object] = {
            "weights": f"OmniVoice's size, random ({text} + {reference} + {frames} rows)",
            "way": name,
            "ms per forward": 1000 * taken,
            "forwards per second": 1 / taken,
            "speed-up": 1.0 if gain is None else gain.median,
        }
        if gain is not None and rounds > 1:  # A single round has no interval.
            row |= {"low": gain.low, "high": gain.high}
        row["launches per forward"] = launches(partial(forward, name), device)
        rows.append({**row, "largest difference": float((forward(name) - expected).abs().max())})
    return rows
