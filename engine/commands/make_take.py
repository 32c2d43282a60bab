"""What commands synthesise, as takes: the evidence of profiles."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from engine.measure.machine import describe
from engine.models.base import Synthesis, Voice
from engine.setting.setting import Setting
from engine.setting.take import Take


def taken(synthesis: Synthesis, text: str, voice: Voice, setting: Setting) -> Take:
    """``synthesis`` of ``text`` by ``voice`` under ``setting`` as a take of now and of this machine."""
    return Take(
        uuid.uuid4().hex,
        datetime.now(UTC).isoformat(timespec="milliseconds"),
        text,
        voice.id,
        setting,
        synthesis.sample_rate,
        synthesis.samples,
        synthesis.measurements,
        synthesis.trace,
        notes=synthesis.notes,
        machine=describe().line,
    )
