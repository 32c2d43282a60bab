from __future__ import annotations

from dataclasses import replace

import numpy as np

from paretone.models.catalogue import entry
from paretone.setting.evidence import Evidence
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements, Take
from paretone.techniques import precision

ACCELERATED = Setting(
    "f5-mini",
    entry("f5-mini").options_with(steps=4),
    (UsedTechnique(precision.TECHNIQUE.name, Values(precision="bfloat16")),),
    seed=7,
)


def test_evidence_quotes_a_take_and_its_baseline() -> None:
    def take(seconds: float, of: Setting) -> Take:
        measured = Measurements(seconds=seconds, audio_seconds=2.0, first_audio_seconds=0.5, ops_ratio=0.4)
        return Take(
            "a", "2026-11-21T10:00:00+00:00", "Text.", "anna", of, 24_000, np.zeros(4), measured, machine="here"
        )

    accelerated = replace(take(1.0, ACCELERATED), log_mel_distance=0.3)
    found = Evidence.of(accelerated, take(3.0, ACCELERATED.baseline))
    assert dict(found.metrics) == {
        "first_audio_seconds": 0.5,
        "log_mel_distance": 0.3,
        "ops_ratio": 0.4,
        "real_time_factor": 0.5,
        "speed_up": 3.0,
    }
    assert (found.machine, found.seed, found.text, found.voice) == ("here", 7, "Text.", "anna")
    assert "speed_up" not in Evidence.of(accelerated).metrics


def test_what_is_written_is_read_back() -> None:
    evidence = Evidence(
        Values(real_time_factor=0.25), "a machine", 7, "2026-11-21T10:00:00+00:00", "Héllo “δ”.", "anna"
    )
    assert Evidence.from_json(evidence.to_json()) == evidence
    assert Evidence.from_json(Evidence().to_json()) == Evidence()
