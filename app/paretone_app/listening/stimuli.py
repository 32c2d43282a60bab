"""Stimuli of a listening test: settings, their common sentences, and the prepared sounds. No Qt, no torch."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from paretone.audio.resampling import resample
from paretone.errors import SettingError
from paretone.listening import trials
from paretone.listening.trials import MUSHRA, SIMILARITY, VOICE, ConditionRecord, ItemRecord, RecordError
from paretone.measure.loudness import integrated_loudness, matching_gains
from paretone.models import catalogue
from paretone.setting.knobs import Values
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Setting
from paretone.setting.take import Take
from paretone_app.state.differences import keeps_timing, technique_text

SECONDS = 4
LOWEST_HERTZ, HIGHEST_HERTZ = 100.0, 8000.0
"""Range of the pink noise (equal power per octave), about that of speech."""


def noise(rate: int) -> np.ndarray:
    """Pink noise at ``rate`` hertz, seamlessly loopable, (n,) float32; always the same."""
    count = SECONDS * rate
    frequencies = np.fft.rfftfreq(count, 1 / rate)
    heard = (frequencies >= LOWEST_HERTZ) & (frequencies <= min(HIGHEST_HERTZ, rate / 2))
    sizes = np.zeros(len(frequencies))
    sizes[heard] = frequencies[heard] ** -0.5
    phases = np.random.default_rng(1534).uniform(0, 2 * np.pi, len(frequencies))
    samples = np.fft.irfft(sizes * np.exp(1j * phases), count)
    return (0.1 * samples / samples.std()).astype(np.float32)


def tone(rate: int) -> np.ndarray:
    """A sine of 1 kHz at ``rate`` hertz, seamlessly loopable, (n,) float32."""
    return (0.1 * np.sin(2 * np.pi * 1000 * np.arange(SECONDS * rate) / rate)).astype(np.float32)


def gain(samples: np.ndarray, rate: int, target: float) -> float:
    """Linear gain that brings ``samples`` to ``target`` LUFS (ITU-R BS.1770)."""
    return float(10 ** ((target - integrated_loudness(samples, rate).lufs) / 20))


LONGEST_SECONDS = 12.0
"""Longest sentence in MUSHRA (BS.1534-3)."""
MOST_SLIDERS = 12
"""Most sounds on one MUSHRA page, with hidden reference and anchors (BS.1534-3)."""
SILENT_LUFS = -120.0
TOLERANCE_DECIBELS = 0.1
"""Largest difference in loudness between the sounds of a trial."""


@dataclass(frozen=True)
class Condition:
    """A setting to be judged, without its seed."""

    key: str
    setting: Setting
    """The setting with seed 0."""
    title: str

    @property
    def accelerated(self) -> bool:
        return bool(self.setting.techniques)


@dataclass(frozen=True)
class Item:
    """A sentence with the id of one take per condition."""

    text: str
    voice: str
    seed: int
    takes: tuple[str, ...]
    fingerprints: tuple[str, ...]
    real_time_factors: tuple[float, ...]
    """Of the takes; only their ratios matter."""


@dataclass(frozen=True)
class Stimulus:
    """A prepared sound: at the device's rate, and as loud as the others of its item."""

    record: ConditionRecord
    samples: np.ndarray = field(repr=False, compare=False)
    """(n,) float32, before the gain."""

    @property
    def amplified(self) -> np.ndarray:
        """The samples with the gain applied, (n,) float32."""
        return self.samples * np.float32(10 ** (self.record.gain / 20))


@dataclass(frozen=True)
class PreparedItem:
    """All sounds for the trials of one sentence."""

    record: ItemRecord
    stimuli: tuple[Stimulus, ...]
    """By condition; MUSHRA's anchors, or the voice's recording for similarity, last."""
    rate: int
    aligned: bool
    """Whether the models keep the timing between takes."""
    target: float
    """LUFS of every sound after its gain."""
    exact: bool
    """False if a sound is too short for the gated measurement."""


def setting_key(setting: Setting) -> str:
    """Key of a condition: fingerprint of ``setting`` with seed 0, equal for all its takes."""
    return replace(setting, seed=0).fingerprint


def conditions(settings: Iterable[Setting]) -> tuple[Condition, ...]:
    """The conditions among ``settings``, in order of appearance, with distinct titles."""
    found = {setting_key(one): replace(one, seed=0) for one in settings}
    parts = {key: _parts(one) for key, one in found.items()}
    # Omit parts common to all.
    common = set.intersection(*map(set, parts.values())) if len(parts) > 1 else set()
    titles = {key: " · ".join([own[0], *(one for one in own[1:] if one not in common)]) for key, own in parts.items()}
    doubled = {title for title in titles.values() if list(titles.values()).count(title) > 1}
    return tuple(
        Condition(key, one, f"{titles[key]} ({key[:4]})" if titles[key] in doubled else titles[key])
        for key, one in found.items()
    )


def _parts(setting: Setting) -> list[str]:
    """Techniques, options that differ from the model's defaults, and the model."""
    model, usual = setting.model, Values()
    with contextlib.suppress(SettingError):  # Takes outlive models and techniques.
        entry = catalogue.entry(setting.model)
        model, usual = entry.title, entry.options_with()
    try:
        techniques = technique_text(setting)
    except SettingError:
        techniques = " + ".join(one.technique for one in setting.techniques)
    options = [f"{name} {value}" for name, value in setting.options.items() if usual.get(name) != value]
    return [techniques, *options, model]


def items(takes: Iterable[TakeSummary], wanted: Sequence[Condition]) -> tuple[Item, ...]:
    """Sentences spoken by all ``wanted`` conditions with the same voice and seed, so that only the setting differs. The
    first of several equal takes counts: pass the newest first."""
    keys = {one.key: place for place, one in enumerate(wanted)}
    found: dict[tuple[str, str, int], dict[int, TakeSummary]] = {}
    for take in takes:
        place = keys.get(setting_key(take.setting))
        if place is not None:
            found.setdefault((take.text, take.voice, take.setting.seed), {}).setdefault(place, take)
    return tuple(
        _item_of([by_place[place] for place in range(len(wanted))])
        for by_place in found.values()
        if len(by_place) == len(wanted)
    )


def _item_of(takes: Sequence[Take | TakeSummary]) -> Item:
    """One item with these takes; text, voice and seed of the first."""
    first = takes[0]
    return Item(
        first.text,
        first.voice,
        first.setting.seed,
        tuple(one.id for one in takes),
        tuple(one.setting.fingerprint for one in takes),
        tuple(one.measurements.real_time_factor for one in takes),
    )


def compared(takes: Sequence[Take]) -> tuple[tuple[Condition, ...], tuple[Item, ...], str]:
    """Conditions and item for a test of two takes, whatever they say, and why no test is possible, as a sentence."""
    found = conditions(one.setting for one in takes)
    if len(takes) < 2:
        return found, (), "Choose two takes as A and B first."
    cut = next((one.unfinished for one in takes if one.unfinished), "")
    if cut:
        return found, (), f"One of the takes was {cut}; choose takes of the whole text."
    if len(found) < 2:
        return found, (), "A and B have the same setting; choose takes of different settings."
    return found, (_item_of(takes),), ""


def prepared(
    item: Item, judged: Sequence[Condition], method: str, rate: int, load: Callable[[str], tuple[np.ndarray, int]]
) -> PreparedItem:
    """The sounds of ``item`` at ``rate`` hertz, equally loud; for MUSHRA with anchors made from the first, for
    similarity with the voice's recording. ``load`` returns a take's samples and rate by id, and a recording's by
    ``voice:`` and the voice's id. Raises :class:`PlainError` if a sound is not usable."""
    sounds = [resample(*load(take), rate) for take in item.takes]
    names = [(one.key, one.title, one.accelerated) for one in judged]
    origins = [
        (take, one.setting.to_json(), fingerprint)
        for take, one, fingerprint in zip(item.takes, judged, item.fingerprints, strict=True)
    ]
    if method == MUSHRA:
        seconds = max(map(len, sounds)) / rate
        if seconds > LONGEST_SECONDS:
            raise RecordError(
                f"“{item.text[:40]}…” lasts {seconds:.1f} s; MUSHRA allows {LONGEST_SECONDS:g} s. Leave it out."
            )
        for name, cutoff in trials.CUTOFFS.items():
            sounds.append(trials.low_passed(sounds[0], rate, cutoff))
            names.append((name, trials.TITLES[name], False))
            origins.append(("", {}, ""))
    if method == SIMILARITY:
        sounds.append(resample(*load(f"{VOICE}:{item.voice}"), rate))
        names.append((VOICE, "Voice", False))
        origins.append(("", {}, ""))
    match = matching_gains([(one, rate) for one in sounds])
    made = tuple(
        Stimulus(ConditionRecord(*name, *origin, round(gain, 4), round(max(SILENT_LUFS, level), 4)), sound)
        for name, origin, gain, level, sound in zip(names, origins, match.gains, match.levels, sounds, strict=True)
    )
    record, aligned = ItemRecord(item.text, item.voice, item.seed), all(keeps_timing(one.setting) for one in judged)
    return PreparedItem(record, made, rate, aligned, match.target, match.exact)


def levelled(made: Sequence[PreparedItem]) -> tuple[PreparedItem, ...]:
    """``made``, all as loud as the quietest, so that one volume setting holds for the whole test."""
    target = min((one.target for one in made if np.isfinite(one.target)), default=0.0)
    lowered = []
    for item in made:
        less = item.target - target if np.isfinite(item.target) else 0.0
        records = (replace(one.record, gain=round(one.record.gain - less, 4)) for one in item.stimuli)
        stimuli = tuple(replace(one, record=record) for one, record in zip(item.stimuli, records, strict=True))
        lowered.append(replace(item, stimuli=stimuli, target=item.target - less))
    return tuple(lowered)
