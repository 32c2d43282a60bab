"""``python -m tests.tools.held_out_voices --export FOLDER``: voices and sentences for ``python -m tests.peers faults``.

``FOLDER/seen`` was looked at when the thresholds of the checks were set; nothing in ``FOLDER/unseen`` was, nor in
``FOLDER/fresh``, which was made after figures of the former had been published. Each voice has a prompt with a sentence
of its own, and pitch and formants that no shipped voice has, within what the bundled models know.
"""

import json
import sys
from pathlib import Path

from paretone.files import write_atomically
from paretone.models.voices import INDEX
from paretone.training.natural_teacher import NaturalTeacher
from tests.tools.exporting import run
from tests.tools.natural_voices import SPEAKER, NamedVoice, export

SEEN = {
    NamedVoice("freya", "Freya", 0.91, 0.98): "The last bus to the airport leaves ten minutes after midnight.",
    NamedVoice("greta", "Greta", 1.08, 0.99): "Nobody had watered the plants, but most of them were still alive.",
    NamedVoice("hanna", "Hanna", 1.15, 1.01): "I bought this coat in a market, from a man who could not count.",
    NamedVoice("ida", "Ida", 0.83, 0.99): "Her garden is full of roses, nettles and broken chairs.",
    NamedVoice("jana", "Jana", 1.0, 0.92): "If you hear the whistle, put down your tools and step outside.",
    NamedVoice("klara", "Klara", 1.05, 1.05): "The road over the pass is open from June until the first snow.",
    NamedVoice("lena", "Lena", 0.88, 0.94): "We shared a table with two painters and a very quiet judge.",
}
UNSEEN = {
    NamedVoice("maren", "Maren", 0.94, 0.96): "Two of the windows face the yard, and the third one faces a wall.",
    NamedVoice("nora", "Nora", 1.1, 1.02): "Bring a warm jacket, since the evenings in the valley are damp.",
    NamedVoice("olga", "Olga", 0.87, 0.97): "The kitchen clock stopped in April, and nobody has wound it since.",
    NamedVoice("petra", "Petra", 1.02, 1.02): "At low tide you can still see the ribs of a sunken ship.",
    NamedVoice("rosa", "Rosa", 0.97, 0.93): "He gave each of the twins a drum, which he came to regret.",
    NamedVoice("sina", "Sina", 1.13, 0.99): "The mail arrives late on days when the drawbridge is open.",
    NamedVoice("tilda", "Tilda", 0.9, 1.02): "We picked blackberries until our fingers were purple.",
    NamedVoice("ulla", "Ulla", 1.06, 0.97): "Ask at the front desk, and they will lend you a boat.",
}
FRESH = {
    NamedVoice("alma", "Alma", 0.93, 1.0): "The harbor master keeps a parrot that announces every storm.",
    NamedVoice("britta", "Britta", 1.07, 0.95): "Someone has left a pair of green boots on the chapel steps.",
    NamedVoice("carla", "Carla", 0.86, 0.95): "You will find sugar, string and candles in the lower drawer.",
    NamedVoice("dora", "Dora", 1.12, 1.0): "The gate was open, yet none of the horses had wandered off.",
    NamedVoice("edda", "Edda", 0.98, 0.97): "Half of the village came to see the new fire engine arrive.",
    NamedVoice("frida", "Frida", 1.04, 1.03): "He never learned to whistle, so he rings a small brass bell.",
    NamedVoice("gerda", "Gerda", 0.89, 1.01): "Our map ends at the river, and so does the patience of my wife.",
    NamedVoice("helga", "Helga", 1.1, 0.98): "The film began without sound, and nobody in the room objected.",
}
THIRD = {
    NamedVoice("ines", "Ines", 0.92, 0.94): "The carpet is older than the house, and it has seen worse parties.",
    NamedVoice("jutta", "Jutta", 1.09, 1.0): "Take the stairs on the right, because the others lead to the kitchen.",
    NamedVoice("katja", "Katja", 0.88, 0.99): "Three of the boats were named after the same impatient woman.",
    NamedVoice("lotte", "Lotte", 1.01, 0.94): "A thin layer of ash covered the chairs in front of the cafe.",
    NamedVoice("mila", "Mila", 1.11, 1.03): "My neighbor tunes his radio to static and calls it the ocean.",
    NamedVoice("nele", "Nele", 0.96, 1.01): "The bus driver waved us through and would not take our money.",
    NamedVoice("paula", "Paula", 1.06, 1.01): "They found the missing page inside a recipe for pickled plums.",
    NamedVoice("runa", "Runa", 0.85, 0.97): "Every evening the ferryman counts his coins beneath the lamp.",
}


def export_set(folder: Path, teacher: NaturalTeacher, prompts: dict[NamedVoice, str], sentences: str) -> None:
    listed = dict[str, object]()
    for voice, text in prompts.items():
        export(folder, teacher, (voice,), text)
        listed |= json.loads((folder / INDEX).read_text(encoding="utf-8"))["voices"]
    write_atomically(folder / INDEX, (json.dumps({"speaker": SPEAKER, "voices": listed}, indent=1) + "\n").encode())
    write_atomically(folder / "sentences.txt", Path(__file__).with_name(sentences).read_bytes())


def export_all(folder: Path) -> None:
    teacher = NaturalTeacher()
    export_set(folder / "seen", teacher, SEEN, "held_out_seen.txt")
    export_set(folder / "unseen", teacher, UNSEEN, "held_out.txt")
    export_set(folder / "fresh", teacher, FRESH, "held_out_fresh.txt")
    export_set(folder / "third", teacher, THIRD, "held_out_third.txt")


if __name__ == "__main__":
    sys.exit(run("tests.tools.held_out_voices", __doc__, export_all, None))
