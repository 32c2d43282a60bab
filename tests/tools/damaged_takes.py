"""``python -m tests.tools.damaged_takes --export resources/docs/listen``: what the faults of ``checks.md`` sound like.

A shipped recording is damaged once per fault, at the strength that is easiest to hear; the page's table names the
files.
"""

import sys
from pathlib import Path

import numpy as np

from paretone.audio.recording import ogg
from paretone.checks.faults import checked
from paretone.files import write_atomically
from tests.peers.damage import DAMAGES
from tests.peers.faults import shipped
from tests.tools.exporting import run

HEARD = {"silence": 1, "clipped": 2, "level-jump": 1, "click": 1, "gap": 2, "burst": 1, "cut": 1, "loop": 1, "hum": 2}
HEARD |= {"bandwidth": 2, "shifted": 1, "repeated": 2}
"""Strength of each audible fault."""
BYTES = 30_000


def export(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    speech = shipped()[0].speech
    for damage in DAMAGES:
        if damage.fault not in HEARD:
            continue
        strength = damage.strengths[HEARD[damage.fault]]
        damaged = damage.do(speech, strength, np.random.default_rng(1))
        assert damaged is not None
        found = checked(damaged)
        write_atomically(folder / f"fault-{damage.fault}.ogg", ogg(damaged.sound, damaged.rate, BYTES))
        said = "; ".join(f"{one.start:.2f} s: {one.sentence}" for one in found.findings)
        print(f"| [{damage.fault}](listen/fault-{damage.fault}.ogg) | {strength} {damage.title} | {said} |")


if __name__ == "__main__":
    sys.exit(run("tests.tools.damaged_takes", __doc__, export, None))
