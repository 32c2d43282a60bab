"""Faults of a take: what each is, and where a take has it. Torch-free.

Many faults raise no error: skipped words, numbers that are none and become silence, half speed from a wrong header,
noise at the end. Each check is one function of :class:`paretone.checks.speech.Speech`, listed once in :data:`FAULTS`
with what the fault probably is and what to do. ``resources/docs/checks.md`` has figures of how often each is found, and
marked in clean speech.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from paretone.by_name import by_name
from paretone.checks import signal, words
from paretone.checks.speech import Speech
from paretone.errors import FaultError

MARKED = 0.5
"""Sureness from which a finding is shown."""


@dataclass(frozen=True)
class Finding:
    """One place of a take with a fault."""

    fault: str
    start: float
    end: float
    """Seconds."""
    sure: float
    """From 0 to 1; 0.5 at the threshold."""
    sentence: str

    def to_json(self) -> dict[str, object]:
        numbers = {"start": round(self.start, 3), "end": round(self.end, 3), "sure": round(self.sure, 2)}
        return {"fault": self.fault, **numbers, "sentence": self.sentence}


@dataclass(frozen=True)
class Fault:
    name: str
    title: str
    about: str
    """What it probably comes from, and what to do, in sentences."""
    find: Callable[[Speech], Iterable[signal.Found]]
    hears: bool = False
    """Whether pocketsphinx listens for it, which takes longer than milliseconds."""


def table(module: object, written: str, hears: bool = False) -> tuple[Fault, ...]:
    """Faults of a written table, with ``name, title: about`` in each line and those indented after it, found by the
    functions of their names in ``module``."""
    faults = []
    for line in written.strip().replace("\n  ", " ").split("\n"):
        head, about = line.split(": ", 1)
        name, title = head.split(", ")
        faults.append(Fault(name, title, about, getattr(module, name.replace("-", "_")), hears))
    return tuple(faults)


SIGNAL = """
not-a-number, Not a number: The network or the codec overflowed, often in float16; players turn these samples into
  silence. Use float32, fewer guidance or more steps.
silence, Silence: The model produced nothing there, or a piece of audio was lost or replaced by zeros. Try another seed
  or more steps; in streaming, look for a lost piece.
clipped, Clipped: The audio was made too loud and cut off at full scale. Lower the level of the prompt, or write floats
  and turn them down.
level-jump, Level jump: Passages were spoken at different levels, or the model lost the prompt's level. Use shorter
  passages, or another seed.
click, Click: Two pieces of audio do not meet: a seam without a cross-fade, or a lost sample. Use a cross-fade, or a
  decoder with context at the seams.
gap, Gap: Two pieces of audio were joined with samples missing between them. Join pieces at the decoder's exact lengths.
burst, Burst at the end: The model went on after the text, or the decoder had no context for its last frames. Trim after
  the last sound, or try another seed.
cut, Cut at the end: The estimated length was too short, or the last piece of audio was not written. Use a lower speed
  or a longer duration; flush the decoder.
loop, Loop: The model repeats itself, or a buffer was played twice. Raise the repetition penalty or the temperature, or
  try another seed.
hum, Hum: A steady tone: mains hum of the prompt, or a tone of the vocoder. Clean the prompt, or use another vocoder.
offset, Constant offset: The samples are not around zero: a fault of the prompt or of the decoder. Subtract the mean.
bandwidth, Narrow band: Material of a lower sample rate was resampled: the prompt, or the output of a decoder of another
  rate. Use a prompt of the model's rate or above.
pace, Pace: Words are missing or repeated, the length was badly estimated, or the sample rate is wrong. Check the
  transcript of the prompt, the speed, and the sample rate.
shifted, Pitch shifted: The file says another sample rate than it was made at, so pitch, formants and pace are moved
  alike. Write the file with the model's sample rate.
voice, Another voice: The model lost the prompt's voice. Use a longer, cleaner prompt, or more guidance.
"""
WORDS = """
missing, Words missing: The model skipped words. Use more steps, a lower temperature, or another seed.
repeated, Words repeated: The model said words twice. Raise the repetition penalty, or try another seed.
added, Words added: The model said what is not in the text; often the end of a prompt whose transcript is incomplete.
  Check that the transcript has exactly the words of the prompt.
"""
FAULTS = (*table(signal, SIGNAL), *table(words, WORDS, hears=True))
"""Faults of takes; those found in milliseconds first."""


def fault(name: str) -> Fault:
    """Fault by ``name``. Raises :class:`SettingError` for unknown names."""
    return by_name(name, {one.name: one for one in FAULTS}, "fault", "faults")


@dataclass(frozen=True)
class Checked:
    """What the checks found in a take."""

    findings: tuple[Finding, ...] = ()
    """By start."""
    unavailable: tuple[str, ...] = ()
    """Checks that could not be made, as sentences."""

    @property
    def summary(self) -> str:
        """Titles of the faults, such as ``Click (2), Loop``."""
        counts = Counter(fault(one.fault).title for one in self.findings)
        return ", ".join(f"{title} ({count})" if count > 1 else title for title, count in counts.items())


def checked(speech: Speech, faults: Sequence[Fault] = FAULTS) -> Checked:
    """Check ``speech`` for ``faults``. Listening to words takes about 0.1 s per second of speech."""
    reason = words.unavailable(speech) if any(one.hears for one in faults) else ""
    places = ((one.name, place) for one in faults if not (one.hears and reason) for place in one.find(speech))
    found = [Finding(name, *place) for name, place in places if place[2] >= MARKED]
    return Checked(tuple(sorted(found, key=lambda one: (one.start, one.fault))), (reason,) if reason else ())


def strict(names: Sequence[str], asked: bool) -> tuple[str, int]:
    """Problem and exit code of takes with these ``names`` that have faults, if it was ``asked`` for; else none."""
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return (f"Faults were found: {shown}.", FaultError.exit_code) if names and asked else ("", 0)


def sentences(found: Checked) -> list[str]:
    """Lines for a terminal: each finding with its place, what it probably is and what to do."""
    said = ((f"{one.start:.2f} to {one.end:.2f} s (sure: {one.sure:.2f})", one) for one in found.findings)
    return [f"{place}: {one.sentence} {fault(one.fault).about}" for place, one in said]
