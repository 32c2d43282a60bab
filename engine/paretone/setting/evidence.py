"""What was measured under a setting, and on which device, as a profile holds it. Torch-free."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from paretone.errors import ProfileError
from paretone.fields import is_of
from paretone.models.own_voices import without_folder
from paretone.reading import shown
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.profile_file import only, typed
from paretone.setting.setting import checked_seed
from paretone.setting.take import Take


@dataclass(frozen=True)
class Evidence:
    """Measurements of a profile's setting, and their device.

    ``metrics`` are named numbers: ``real_time_factor``, ``cpu_time_factor``, ``other_share`` (of the cores, taken by
    other processes meanwhile), ``first_audio_seconds``, ``ops_ratio``, ``speed_up`` (over the baseline, by real-time
    factor), ``log_mel_distance`` (to the baseline), ``streaming_difference`` (decibels; of
    decoders that do not stream exactly), and those of :class:`paretone.setting.take.Metrics`.
    """

    metrics: Values = NO_VALUES
    machine: str = ""
    seed: int = 0
    date: str = ""
    """UTC, ISO 8601."""
    text: str = ""
    voice: str = ""

    @classmethod
    def of(cls, take: Take, baseline: Take | None = None) -> Evidence:
        """The figures of ``take``, and of its ``baseline`` if there is one."""
        measured = take.measurements
        metrics: dict[str, float] = {
            "real_time_factor": measured.real_time_factor,
            "first_audio_seconds": measured.first_audio_seconds,
            "ops_ratio": measured.ops_ratio,
        }
        if baseline is not None and measured.real_time_factor > 0:
            metrics["speed_up"] = baseline.measurements.real_time_factor / measured.real_time_factor
        for name in ("cpu_time_factor", "other_share"):
            if (value := getattr(measured, name)) is not None:
                metrics[name] = value
        if take.log_mel_distance is not None:
            metrics["log_mel_distance"] = take.log_mel_distance
        if measured.streaming_difference is not None:
            metrics["streaming_difference"] = measured.streaming_difference
        metrics |= {name: value for name, value in asdict(take.metrics).items() if value is not None}
        return cls(Values(metrics), take.machine, take.setting.seed, take.created, take.text, take.voice)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values; :meth:`from_json` reads them back."""
        return {
            "metrics": dict(self.metrics),
            "machine": self.machine,
            "seed": self.seed,
            "date": self.date,
            "text": self.text,
            "voice": self.voice,
        }

    @classmethod
    def from_json(cls, data: object) -> Evidence:
        """Read what :meth:`to_json` wrote. Raises :class:`ProfileError` that names the field at fault."""
        if not isinstance(data, dict):
            raise ProfileError(f"evidence must be an object, not {type(data).__name__}.")
        only(data, "evidence.", ("metrics", "machine", "seed", "date", "text", "voice"))
        metrics: dict[str, Any] = typed(data, "evidence.", "metrics", dict)
        for name, value in metrics.items():
            if not is_of(value, int | float):
                raise ProfileError(f"evidence.metrics.{name} must be a number, not {shown(value)}.")
        date = typed(data, "evidence.", "date", str)
        try:
            if date:
                datetime.fromisoformat(date)
        except ValueError:
            raise ProfileError(f"evidence.date must be an ISO 8601 date, not {shown(date)}.") from None
        words = {name: typed(data, "evidence.", name, str) for name in ("machine", "text", "voice")}
        seed = checked_seed(data["seed"], "evidence.seed")
        words["voice"] = without_folder(words["voice"])
        return cls(Values(metrics), seed=seed, date=date, **words)
