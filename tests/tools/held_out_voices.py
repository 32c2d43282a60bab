"""``python -m tests.tools.held_out_voices --export FOLDER``: voices and sentences that no threshold was set with.

``paretone bench faults --held-out FOLDER`` speaks with them. Each voice has a prompt with a sentence of its own, and
pitch and formants that no shipped voice has, within what the bundled models know.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from paretone.files import write_atomically
from paretone.models.voices import INDEX
from paretone.training.natural_teacher import NaturalTeacher
from tests.tools.exporting import run
from tests.tools.natural_voices import SPEAKER, NamedVoice, export

PROMPTS = {
    NamedVoice("freya", "Freya", 0.91, 0.98): "The last bus to the airport leaves ten minutes after midnight.",
    NamedVoice("greta", "Greta", 1.08, 0.99): "Nobody had watered the plants, but most of them were still alive.",
    NamedVoice("hanna", "Hanna", 1.15, 1.01): "I bought this coat in a market, from a man who could not count.",
    NamedVoice("ida", "Ida", 0.83, 0.99): "Her garden is full of roses, nettles and broken chairs.",
    NamedVoice("jana", "Jana", 1.0, 0.92): "If you hear the whistle, put down your tools and step outside.",
    NamedVoice("klara", "Klara", 1.05, 1.05): "The road over the pass is open from June until the first snow.",
    NamedVoice("lena", "Lena", 0.88, 0.94): "We shared a table with two painters and a very quiet judge.",
}
SENTENCES = Path(__file__).with_name("held_out.txt")


def export_all(folder: Path) -> None:
    teacher, listed = NaturalTeacher(), dict[str, object]()
    for voice, text in PROMPTS.items():
        export(folder, teacher, (voice,), text)
        listed |= json.loads((folder / INDEX).read_text(encoding="utf-8"))["voices"]
    write_atomically(folder / INDEX, (json.dumps({"speaker": SPEAKER, "voices": listed}, indent=1) + "\n").encode())
    write_atomically(folder / "sentences.txt", SENTENCES.read_bytes())


if __name__ == "__main__":
    sys.exit(run("tests.tools.held_out_voices", __doc__, export_all, None))
