"""From a synthesis to a take: with what it sounds like, when, and on which machine it was made."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from paretone import device
from paretone.measure.loudness import signal_metrics, too_loud
from paretone.models.base import Synthesis, Voice
from paretone.setting.setting import Setting
from paretone.setting.take import Metrics, Take


def make_take(
    synthesis: Synthesis,
    text: str,
    voice: Voice,
    setting: Setting,
    machine: str,
    on: str,
    checkpoint: str,
    *,
    name: str = "",
    label: str = "",
    first_audio_seconds: float | None = None,
    peak_memory_bytes: int = 0,
    listen: bool = True,
) -> Take:
    """``synthesis`` of ``text`` by ``voice`` under ``setting`` as a take of now.

    ``machine`` is described in a line and ``on`` is its device (such as ``cpu``); ``checkpoint`` is the SHA-256
    of the model's weights; ``name`` is the take's id, made up
    by default. ``first_audio_seconds`` is by default the model's own, or the whole time. With ``listen``, loudness,
    clipping and silence are measured as well.
    """
    measured = synthesis.measurements
    samples = np.ascontiguousarray(synthesis.samples, dtype=np.float32)
    metrics = signal_metrics(samples, synthesis.sample_rate) if listen else Metrics()
    return Take(
        id=name or uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        text=text,
        voice=voice.id,
        setting=setting,
        sample_rate=synthesis.sample_rate,
        samples=samples,
        measurements=replace(
            measured,
            first_audio_seconds=first_audio_seconds or measured.first_audio_seconds or measured.seconds,
            peak_memory_bytes=peak_memory_bytes,
            device=measured.device or device.title(on),
        ),
        trace=synthesis.trace,
        label=label,
        notes=(*synthesis.notes, *filter(None, (too_loud(metrics.true_peak),))),
        machine=machine,
        metrics=metrics,
        checkpoint=checkpoint,
        unfinished=synthesis.unfinished,
    )
