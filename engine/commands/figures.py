"""The figures of one synthesis as JSON values."""

from __future__ import annotations

from engine.models.base import Synthesis


def figures(synthesis: Synthesis) -> dict[str, float | None]:
    """What was measured; seconds are wall seconds, the operations a share of the baseline's. ``None`` stands for what
    there is not."""
    measured = synthesis.measurements
    return {
        "sample_rate": synthesis.sample_rate,
        "samples": len(synthesis.samples),
        "real_time_factor": measured.real_time_factor,
        "seconds": measured.seconds,
        "audio_seconds": measured.audio_seconds,
        "first_audio_seconds": measured.first_audio_seconds,
        "largest_gap_seconds": measured.largest_gap_seconds,
        "text_seconds": measured.text_seconds,
        "backbone_seconds": measured.backbone_seconds,
        "decoder_seconds": measured.decoder_seconds,
        "evaluations": measured.evaluations,
        "tokens": measured.tokens,
        "target_passes": measured.target_passes,
        "ops_ratio": measured.ops_ratio,
        "streaming_difference": measured.streaming_difference,
    }
