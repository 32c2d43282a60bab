"""Faults of a prompt and settings known to collapse, said before anything is spoken. Torch-free.

Faults of prompts are found like those of takes (:mod:`paretone.checks.faults`). Settings are judged by their plans, so
no technique is named here. Reasons are measured: ``resources/docs/checks.md`` has the figures and the commands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from paretone.checks import signal
from paretone.checks.faults import checked, table
from paretone.checks.signal import Found, sureness
from paretone.checks.speech import FLOOR, FRAME_SECONDS, Speech, prompt_of
from paretone.models.base import FLOW, LANGUAGE, MASKED, ModelInfo, Voice


def length(speech: Speech) -> Iterator[Found]:
    sure = max(sureness(-speech.seconds, -2.0, 0.3), sureness(speech.seconds, 30.0, 3.0))
    yield 0.0, speech.seconds, sure, f"It lasts {speech.seconds:.1f} s."


def late(speech: Speech) -> Iterator[Found]:
    start = speech.span[0]
    yield 0.0, start, sureness(start, 0.5, 0.1), f"It begins with {start:.1f} s of silence."


def noise(speech: Speech) -> Iterator[Found]:
    above = signal_to_noise(speech)
    yield 0.0, speech.seconds, sureness(-above, -22.0, 2.0), f"Its noise is {above:.0f} dB below the speech."


def signal_to_noise(speech: Speech) -> float:
    """Decibels. Even between the words of somebody who never pauses, speech stops for 20 ms; the quietest such piece of
    steady noise is 2.5 dB below its mean."""
    low, high = (round(hertz / speech.bin_hertz) for hertz in (100, min(7000, speech.rate / 2.4)))
    start, end = (round(one / FRAME_SECONDS) for one in speech.span)
    power = speech.spectra[:, low:high].mean(1) + FLOOR
    within, spoken = power[start:end], power[speech.speaking_frames]
    if len(power) < 10 or not len(within) or not len(spoken):
        return 100.0
    return float(10 * np.log10(spoken.mean() / within.min()) - 2.5)


def reverberation(speech: Speech) -> Iterator[Found]:
    """Sounds that nowhere fade fast: in a dry room 2 % of the falls within 80 ms are of 14.5 dB or more. Noise would
    hide them."""
    levels = np.maximum(speech.levels, speech.loud - 45)
    if len(levels) >= 100 and signal_to_noise(speech) >= 18:
        fall = float(np.quantile(levels[:-8] - levels[8:], 0.98))
        said = f"Its sounds fade by only {fall:.0f} dB in 80 ms."
        yield 0.0, speech.seconds, sureness(-fall, -14.5, 1.0), said


def bandwidth(speech: Speech) -> Iterator[Found]:
    """As in takes; a sample rate below 22,050 Hz is a narrow band, too."""
    if speech.rate >= 22050:
        yield from signal.bandwidth(speech)
    else:
        said = f"At {speech.rate} samples per second it has nothing above {speech.rate / 2000:g} kHz."
        yield 0.0, speech.seconds, 1.0, said


OWN = """
length, Length: One second tells models little: with 0.9 s F5 mini and LM mini are less similar (0.70 instead of 0.80).
  Of a long prompt they use the beginning, or become slow. Use 3 to 12 s.
late, Late start: F5 mini and LM mini trim it; other models copy the pause, or take it for slow speech. Cut it off.
noise, Noise: It is copied with the voice: at −10 dB F5 mini is less similar (0.74 instead of 0.80). Use a cleaner
  recording.
reverberation, Reverberation: The room is copied with the voice: in one of 0.6 s F5 mini is less similar (0.77 instead
  of 0.80). Record closer to the microphone, or in a room with soft furniture.
bandwidth, Narrow band: The voice becomes dull and changes: by way of 16 kHz F5 mini's similarity falls from 0.80 to
  0.63. Use a recording of 24 kHz or more, without a telephone or a strong codec.
"""
SHARED = """
clipped, Clipped: Peaks that are cut off make the voice harsh: at 12 dB F5 mini is less similar (0.76 instead of 0.80).
  Record at a lower level.
hum, Hum: It is copied with the voice. Filter it out, or record again.
offset, Constant offset: It wastes level, and is audible as a click at the ends. Subtract the mean.
"""
PROMPT_FAULTS = (*table(sys.modules[__name__], OWN), *table(signal, SHARED))


def prompt_faults(voice: Voice) -> tuple[str, ...]:
    """Faults of a user's recording as sentences; bundled ones have none. Whether it says its transcript is left to the
    models (:mod:`paretone.front_end.transcripts`), which know how much of it they use."""
    prompt = prompt_of(voice.audio, voice.transcript) if voice.audio and not voice.phones else None
    return () if prompt is None else faults_of_prompt(prompt, Path(voice.audio).name)


@lru_cache(maxsize=16)
def faults_of_prompt(prompt: Speech, name: str) -> tuple[str, ...]:
    about = {one.name: one.about for one in PROMPT_FAULTS}
    found = {one.fault: one.sentence for one in checked(prompt, PROMPT_FAULTS).findings}
    return tuple(f"{name}: {sentence} {about[fault]}" for fault, sentence in found.items())


# --- Settings ---------------------------------------------------------------------------------------------------------
COLLAPSES: Mapping[str, tuple[Callable[[Any, ModelInfo], object], str]] = {
    "no guidance": (
        lambda plan, info: (
            info.family == FLOW
            and "guidance" in plan.options
            and plan.branches == 1
            and plan.fingerprint == info.fingerprint
            and info.trained_guidance is None
        ),
        "No guidance: without it a word error rate of 8–9 % instead of 2 % was found (arXiv 2504.20334). Weights that "
        "were trained to speak without guidance are another matter.",
    ),
    "no guidance, masked": (
        lambda plan, info: info.family == MASKED and not plan.options["guidance"],
        "No guidance: the model speaks less clearly and less like the voice without it.",
    ),
    "guidance stride": (
        lambda plan, info: info.family == MASKED and plan.guidance.every > 1 and plan.options["steps"] < 16,
        "Guidance at every n-th of fewer than 16 steps: CrispASR's authors found noise at 7 steps and n = 2. Omni mini "
        "bears it (no fault in 20 takes at 7 steps); for other models use 16 steps or more.",
    ),
    "stale guidance": (
        lambda plan, info: (often := plan.guidance.saturation) is not None and often.reuse and often.threshold >= 1,
        "Guidance that is reused up to δ = 1 or more: at δ = 2 and 7 steps 2 of 5 takes of F5 mini had faults "
        "(clipping, added words), at δ = 0.5 none. Use δ = 0.5 or less.",
    ),
    "stale cache": (
        # What changes as it runs decides, not a table made for these steps.
        lambda plan, info: (
            getattr(plan, "evaluator", None) is not None and plan.evaluated_share is None and plan.options["steps"] < 8
        ),
        "A cache that decides as it runs, in fewer than 8 steps: what it reuses is old. Of F5 mini's takes with 4 and "
        "7 steps, 4 of 10 had clipping or added words (first-block cache, τ = 0.4), with 12 steps none of 5. "
        "Use more steps, or a lower threshold.",
    ),
    "text taken away": (
        lambda plan, info: plan.options.get("intelligibility", 1.0) < 0.5,
        "Intelligibility below 1 guides away from the text: at 0 none of 5 takes of MegaTTS 3 mini said its words, at "
        "1 all did.",
    ),
    "too fast": (
        lambda plan, info: info.family == LANGUAGE and plan.options.get("speed", 1.0) >= 1.6,
        "At speed 1.6 LM mini had 16 % word errors and missing words in 2 of 5 takes, at 1.3 none.",
    ),
    "float16": (
        lambda plan, info: plan.precision.startswith("float16") and plan.precision != info.precision,
        "float16 ends at 65,504 and is infinite above. The bundled models stay below 2,800, but other networks were "
        "reported to exceed it, so that audio breaks off or is silent. bfloat16 has the range of float32.",
    ),
    "bfloat16": (
        lambda plan, info: plan.precision.startswith("bfloat16") and "bfloat16" in dict(info.lacking),
        "This card emulates bfloat16 by way of float32: no time is saved, and digits are lost (a processor that "
        "emulates it took 5 times as long as in float32). Use float16 or float32.",
    ),
    "card": (lambda plan, info: "card" in dict(info.lacking), ""),
}
"""When each kind of setting collapses, by its plan and the model's description; the measured reason, and what to do."""


def collapses(plan: Any, info: ModelInfo) -> tuple[str, ...]:
    """Warnings of a setting's ``plan`` for the model of ``info``."""
    found = [name for name, (applies, _) in COLLAPSES.items() if applies(plan, info)]
    return tuple(COLLAPSES[name][1] or dict(info.lacking)[name] for name in found)


def cautions(plan: Any, info: ModelInfo, voice: Voice) -> tuple[str, ...]:
    """All that should be said before ``voice`` speaks under ``plan``."""
    return (*collapses(plan, info), *prompt_faults(voice))
