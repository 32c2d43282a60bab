"""The figures of one synthesis as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from paretone.measure.signal import with_signal_metrics
from paretone.models.base import Synthesis
from paretone.setting.take import Metrics, Take
from paretone.wording import percent

OF_ITS_OWN = ("loudness", "true_peak", "clipping", "silence")
"""Figures of :class:`paretone.setting.take.Metrics` that need no baseline."""


def figures(spoken: Synthesis | Take) -> dict[str, float | None]:
    """Measurements as a row; seconds are wall seconds, operations a share of the baseline's. ``None``: not measured."""
    measured = spoken.measurements
    heard = asdict(
        spoken.metrics if isinstance(spoken, Take) else with_signal_metrics(spoken.samples, spoken.sample_rate)
    )
    return {
        "sample_rate": spoken.sample_rate,
        "samples": len(spoken.samples),
        "real_time_factor": measured.real_time_factor,
        "seconds": measured.seconds,
        "audio_seconds": measured.audio_seconds,
        "first_audio_seconds": measured.first_audio_seconds,
        "largest_gap_seconds": measured.largest_gap_seconds,
        "pause_seconds": measured.pause_seconds,
        "text_seconds": measured.text_seconds,
        "backbone_seconds": measured.backbone_seconds,
        "decoder_seconds": measured.decoder_seconds,
        "cpu_seconds": measured.cpu_seconds,
        "cpu_time_factor": measured.cpu_time_factor,
        "other_share": measured.other_share,
        "busy": measured.busy,
        "evaluations": measured.evaluations,
        "tokens": measured.tokens,
        "target_passes": measured.target_passes,
        "ops_ratio": measured.ops_ratio,
        "streaming_difference": measured.streaming_difference,
        **{name: heard[name] for name in OF_ITS_OWN},
    }


def heard_line(row: Mapping[str, float | None]) -> str:
    """Loudness and clipping of a take, as a sentence; ``row`` has the figures of :data:`OF_ITS_OWN`."""
    if row["loudness"] is None:
        return "It is silent."
    clipped = f"{percent(row['clipping'], 2)} of it clips" if row["clipping"] else "nothing clips"
    return (
        f"Loudness {row['loudness']:.1f} LUFS, true peak {row['true_peak']:.1f} dBTP; {clipped}; "
        f"{percent(row['silence'] or 0.0)} is silence."
    )


def parts_line(row: Mapping[str, float | None]) -> str:
    """Seconds of a take by part, as a sentence."""
    return (
        f"Front end {row['text_seconds']:.3f} s, backbone {row['backbone_seconds']:.3f} s, decoder "
        f"{row['decoder_seconds']:.3f} s."
    )


def difference_line(distance: float | None, metrics: Metrics, of: str) -> str:
    """Differences between two takes, as a sentence that begins with ``of``."""
    parts = [] if distance is None else [f"log-mel distance {distance:.4f} (natural-log units)"]
    if metrics.mel_cepstral_distortion is not None:
        parts.append(f"mel-cepstral distortion {metrics.mel_cepstral_distortion:.2f} dB")
    if metrics.timbre_distance is not None:
        parts.append(f"timbre distance {metrics.timbre_distance:.2f} dB")
    if metrics.pitch_error is not None:
        parts.append(f"F0 error {metrics.pitch_error:.2f} semitones")
    if metrics.voicing_error is not None:
        parts.append(f"voicing differs in {percent(metrics.voicing_error, 1)} of the frames")
    return f"{of}: {', '.join(parts)}."
