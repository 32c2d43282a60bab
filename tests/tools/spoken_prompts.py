"""``python -m tests.tools.spoken_prompts MODEL [FAULT…]``: what damaged prompts do to speech, for ``checks.md``.

Harvard sentences are spoken from the first shipped recording as it is, and with each damage at its strongest: word
errors, naturalness, similarity to the undamaged recording, and seconds of speech.
"""

import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np

from paretone.errors import PlainError
from paretone.files import write_wav
from paretone.measure.evaluation.judging import judged_figures
from paretone.measure.intelligibility import Judge
from paretone.models import catalogue, load_model
from paretone.models.voices import own_voice, shipped_voices
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from tests.peers.damage import PROMPT_DAMAGES
from tests.peers.faults import shipped

SENTENCES = 4


def main(model: str, *faults: str) -> int:
    loaded, prompt, texts = load_model(model, device="cpu"), shipped()[0].speech, catalogue.harvard_sentences()
    texts = texts[:SENTENCES]
    judge, setting = Judge(texts), Setting(model, catalogue.entry(model).options_with())
    cases = [("none", prompt)]
    for damage in (one for one in PROMPT_DAMAGES if not faults or one.fault in faults):
        for strength in (1, 2):
            damaged = damage.do(prompt, damage.strengths[strength], np.random.default_rng(0))
            assert damaged is not None
            if damage.fault == "length":  # Its beginning, with the words in it.
                words, share = prompt.text.split(), (0.5, 0.3)[strength - 1]
                samples = prompt.sound[: round(share * len(prompt.sound))]
                damaged = replace(prompt, samples=samples, text=" ".join(words[: round(share * len(words))]))
            cases.append((f"{damage.strengths[strength]} {damage.title}", damaged))
    with TemporaryDirectory() as folder:
        for number, (title, damaged) in enumerate(cases):
            path = Path(folder) / f"{number}.wav"
            write_wav(path, damaged.sound, damaged.rate)
            try:
                takes = [synthesise(loaded, text, own_voice(path, damaged.text), setting) for text in texts]
            except PlainError as error:
                print(f"| {title} | {error} |", flush=True)
                continue
            sounds = [(one.samples, one.sample_rate) for one in takes]
            heard = [judged_figures(*one, shipped_voices()[0].audio) for one in sounds]
            figures = [fmean(one[name] for one in heard) for name in ("naturalness", "voice_similarity")]
            rate, seconds = judge.word_errors(texts, sounds).rate, sum(len(one) / hertz for one, hertz in sounds)
            print(f"| {title} | {rate:.3f} | {figures[0]:.2f} | {figures[1]:.2f} | {seconds:.1f} s |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
