"""``python -m tests.tools.natural_voices --export FOLDER``: the named voices of natural speech, a
resource.

A voice is a prompt: one sentence that the teacher speaks at a pitch and a formant scale. These five are farther from
each other, to a speaker judge, than each is from itself in other sentences, and all sound natural: pitch and formants
of one teacher cannot be moved farther without harm.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import soundfile

from paretone.files import write_atomically
from paretone.front_end.phones import timed_phones
from paretone.models.minis.natural_decoder import HOP, SAMPLE_RATE
from paretone.models.voices import INDEX
from paretone.training.natural_corpus import Manner, Speaker
from paretone.training.natural_teacher import NaturalTeacher, at_prompt_level
from paretone.training.sentences import PROMPT
from tests.tools.exporting import run

SEED = 5
SPEAKER = "hibari-tts"


@dataclass(frozen=True)
class NamedVoice:
    name: str
    title: str
    pitch: float
    formant: float
    """Factors on the teacher's own."""


VOICES = (
    NamedVoice("anna", "Anna (female, US English)", 1.0, 1.0),
    NamedVoice("bella", "Bella (female, US English, high and bright)", 1.12, 1.04),
    NamedVoice("clara", "Clara (female, US English, low and dark)", 0.85, 0.93),
    NamedVoice("daria", "Daria (female, US English, dark)", 1.03, 0.95),
    NamedVoice("ella", "Ella (female, US English, bright)", 0.95, 1.04),
)


def export(folder: Path, teacher: Speaker, voices: Sequence[NamedVoice] = VOICES, text: str = PROMPT) -> None:
    """Write the prompt of every voice as 24-bit audio at the level of a prompt, its text and phones with their times,
    and the index of :mod:`paretone.models.voices`."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in voices:
        sentences = teacher.speak(text, Manner(pitch=one.pitch, formant=one.formant, seed=SEED))
        symbols = [symbol for sentence in sentences for symbol in sentence.symbols]
        lengths = [length for sentence in sentences for length in sentence.lengths]
        phones = timed_phones(symbols, lengths, HOP / SAMPLE_RATE)
        soundfile.write(folder / f"{one.name}.wav", at_prompt_level(sentences), SAMPLE_RATE, subtype="PCM_24")
        content = {"text": text, "phones": [list(phone) for phone in phones]}
        write_atomically(folder / f"{one.name}.json", (json.dumps(content, ensure_ascii=False) + "\n").encode())
    listed = {one.name: {"title": one.title, "pitch": one.pitch, "formant": one.formant} for one in voices}
    write_atomically(folder / INDEX, (json.dumps({"speaker": SPEAKER, "voices": listed}, indent=1) + "\n").encode())


def main(arguments: list[str] | None = None) -> int:
    return run("tests.tools.natural_voices", __doc__, lambda folder: export(folder, NaturalTeacher()), arguments)


if __name__ == "__main__":
    sys.exit(main())
