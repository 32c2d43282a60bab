"""Measuring the roofline of a loaded model under a setting."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from paretone.errors import SettingError
from paretone.measure.machine import describe
from paretone.measure.roofline import ceilings as store
from paretone.measure.roofline.benchmarks import ceilings_of
from paretone.measure.roofline.clock import ROUNDS, Clock, TimedPhase, run_all, write_chrome_trace
from paretone.measure.roofline.flow_stages import flow_stages
from paretone.measure.roofline.language_stages import OF_FLOW, language_stages
from paretone.measure.roofline.masked_stages import masked_stages, measured_block
from paretone.measure.roofline.report import RooflineReport, on_paper
from paretone.models.base import SpeechModel, Utterance
from paretone.models.families.evaluations import FlowInternals
from paretone.models.families.flow import FlowSpeech
from paretone.models.families.language import LanguageInternals, LanguageSpeech
from paretone.models.families.masked import MaskedInternals, MaskedSpeech
from paretone.observer import Check, Observer, Passing
from paretone.setting.plan import Launching
from paretone.setting.setting import Artefact, Setting
from paretone.techniques import resolve

ONCE = ("conditioning", "prefill", "decoder")
"""Phases that are never recorded or compiled."""
WHOLE = "Flow and vocoder were measured over the whole passage; a stream runs them part by part."
COMPILED = (
    "Only whole forward passes are compiled; components were measured one by one, without compiling. So the rest can "
    "be negative."
)


@dataclass(frozen=True)
class RooflineTarget:
    model: SpeechModel
    utterance: Utterance
    setting: Setting
    artefacts: tuple[Artefact, ...] = ()


@dataclass(frozen=True)
class _Parts:
    stages: tuple[TimedPhase, ...]
    device: torch.device
    audio_seconds: float
    notes: tuple[str, ...]
    launching: Launching


def measure_roofline(
    target: RooflineTarget,
    observer: Observer,
    again: bool = False,
    rounds: int = ROUNDS,
    trace: Path | None = None,
    card: str = "",
) -> RooflineReport:
    """Measure every component of ``target`` against this machine's ceilings, measured first if unknown or ``again``.
    ``trace``: file for a Chrome trace of one forward per phase. With a ``card``, components are counted here, their
    floors are that card's, and nothing is measured.

    Raises :class:`paretone.errors.PlainError`, and what the observer raises to cancel.
    """
    began = time.perf_counter()
    stated = store.card(card) if card else None
    model, setting = target.model, target.setting
    observer.status("Preparing …")
    plan = resolve(model.info, setting, target.artefacts)
    model.make_ready(plan, observer, target.utterance.voice)
    with torch.inference_mode():
        script = model.script(target.utterance.text, target.utterance.voice, plan, Passing(observer, "caution"))
        parts = _taken_apart(model, script, observer.check)
        if stated is None:
            observer.status("Measuring this machine's ceilings …")
        ceilings = stated or ceilings_of(parts.device, again, observer.check)
        observer.status("Measuring components …" if stated is None else "Counting components …")
        done = 0

        def tick() -> None:
            nonlocal done
            done += 1
            observer.progress(done, total)

        stages = _launched(parts)
        clock = Clock(parts.device, tick, rounds if stated is None else 0)
        total = clock.blocks(stages)
        phases = tuple(clock.measure(stage) for stage in stages)
    if trace is not None:

        def run() -> None:
            for stage in parts.stages:
                with torch.profiler.record_function(stage.title):
                    if stage.whole is not None:
                        stage.whole()
                    else:
                        run_all(stage.pieces)

        write_chrome_trace(run, trace, parts.device)
    machine = describe()
    report = RooflineReport(
        model.info.id,
        model.info.title,
        setting,
        ceilings,
        phases,
        target.utterance.text,
        target.utterance.voice.id,
        parts.audio_seconds,
        clock.overhead,
        (*parts.notes, *([COMPILED] if parts.launching.mode is not None else [])),
        machine.line,
        datetime.now(UTC).isoformat(timespec="seconds"),
        time.perf_counter() - began,
    )
    return report if stated is None else on_paper(report, stated)


def _taken_apart(model: SpeechModel, script: Any, check: Check) -> _Parts:
    more: tuple[str, ...] = ()
    works: FlowInternals | LanguageInternals | MaskedInternals
    if isinstance(model, FlowSpeech):
        works = model.internals(script, check)
        stages, seconds = flow_stages(works), works.audio_seconds
        device = works.sampler.noise.device
    elif isinstance(model, LanguageSpeech):
        works = model.internals(script, check)
        stages, seconds = language_stages(works, model.token_rate)
        more = (WHOLE,) if works.flow is not None and works.plan.options.get("stream") else ()
        device = works.request.embedded.device
    elif isinstance(model, MaskedSpeech):
        works = model.internals(script)
        stages, seconds, more = masked_stages(works), works.audio_seconds, _block_of(works)
        device = works.network.device
    else:
        raise SettingError(f"{model.info.title} cannot be measured by component.")
    first = () if works.passages == 1 else (f"Measured on the first of {works.passages} passages.",)
    return _Parts(stages, device, seconds, (*works.plan.notes, *first, *more), works.plan.launching)


def _launched(parts: _Parts) -> tuple[TimedPhase, ...]:
    """The phases, with the launch mode of the repeated ones set."""
    graphed, compiled = parts.launching.graphs is not None, parts.launching.mode is not None
    return tuple(
        stage
        if stage.name in ONCE or stage.name.startswith(OF_FLOW)  # The plan's launching is the language model's.
        else replace(stage, graphed=graphed and parts.device.type == "cuda", compiled=compiled)
        for stage in parts.stages
    )


def _block_of(works: MaskedInternals) -> tuple[str, ...]:
    plan, count = works.plan.blocks, len(works.blocks)
    if plan is None or count == 1:
        return ()
    sees = "" if plan.look_ahead is None else "; earlier ones see less of the canvas, later ones more"
    most = ", the most that each may take," if plan.adaptive or plan.step_seconds else ""
    steps = sum(block.steps for block in works.blocks)
    return (f"All {steps} steps{most} were measured on block {measured_block(works) + 1} of {count}{sees}.",)
