"""What techniques gained in a study: its settings with one technique, against their baselines. Torch-free."""

from __future__ import annotations

from paretone.measure.gains import Gain, Place, completed, improved
from paretone.measure.machine import hardware
from paretone.measure.processor_time import clock_name
from paretone.studies.results import Results, SettingResult


def of_study(found: Results, place: Place) -> tuple[Gain, ...]:
    """The gains that a study shows at ``place``; none if it was run elsewhere as well, or with other weights."""
    machines = {hardware(one) for one in found.machines}
    elsewhere = machines != {hardware(place.machine)} or set(found.clocks) != {clock_name(place.device_type)}
    if elsewhere or found.model != place.model or found.checkpoint != place.checkpoint:
        return ()
    gains = []
    for one in found.settings:
        setting, baseline = completed(one.setting), found.setting(one.baseline)
        if setting is None or baseline is None or len(setting.techniques) != 1 or baseline.setting.techniques:
            continue
        entry = setting.techniques[0]
        if improved(entry.technique) == "real_time_factor":
            gain = one.figures.get("speed_up")
            if gain is not None:
                interval = (gain.low, gain.high) if gain.spreads else None
                gains.append(Gain(entry, gain.value, gain.n, found.created, (), interval, found.title))
        elif ratio := _ratio(baseline, one, improved(entry.technique)):
            gains.append(Gain(entry, ratio, one.finished, found.created, study=found.title))
    return tuple(gains)


def _ratio(baseline: SettingResult, one: SettingResult, name: str) -> float | None:
    before, after = baseline.value(name), one.value(name)
    return before / after if before and after else None
