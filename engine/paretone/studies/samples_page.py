"""The page of listening samples, in Markdown. Torch-free."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from paretone.measure.metrics import metric
from paretone.models import catalogue
from paretone.studies.samples import Sample, SampleChoices
from paretone.studies.wording import described

WIDTH = 120
_AS_WRITTEN = ("* ", "- ", "```", "| ")
FIGURES = ("naturalness", "voice_similarity", "pitch_range")
"""Those of the judges, word errors aside."""


def page(choices: SampleChoices, samples: Sequence[Sample], folder: str, machine: str, missing: Sequence[str]) -> str:
    """The whole page; the files are in ``folder`` next to it. ``missing`` says which judges could not be asked."""
    voices = dict.fromkeys(choices.voice_of(model).title for model in choices.models)
    said = f"All say “{choices.text}” in the voice {' or '.join(voices)}; seed {choices.seed}."
    measured = (
        f"RTF, and speed-up over the same model without techniques, are medians of {choices.rounds} runs of the "
        f"sentence on {machine}. {metric('voice_similarity').title} is to the voice's recording. One sentence tells "
        "you what a figure sounds like; how settings compare, only studies of many sentences say."
    )
    parts = [f"# {choices.title}", *_paragraphs(choices.introduction), _filled(said), _table(samples, folder)]
    parts += [_filled(measured), *map(_filled, missing), *_paragraphs(choices.closing)]
    return "\n\n".join(parts) + "\n"


def _table(samples: Sequence[Sample], folder: str) -> str:
    titles = [metric(name).title for name in FIGURES]
    heads = ["", "sample", "setting", "RTF", "speed-up", "word errors", *(title.lower() for title in titles)]
    rows = [_line(heads), _line(["--:", "---", "---", *["---:"] * (len(heads) - 3)])]
    for number, one in enumerate(samples, start=1):
        name = f"[{one.choice.title or one.choice.name}]({folder}/{one.choice.name}.ogg)"
        rows.append(_line([str(number), name, *_setting(one), *_judged(one)]))
    return "\n".join(rows)


def _setting(one: Sample) -> list[str]:
    if one.setting is None:
        return ["the speech that the voice's model learnt from", "–", "–"]
    title = f"{catalogue.entry(one.choice.model).title}, {described(one.setting.setting)}"
    factor, speed_up = one.setting.value("real_time_factor"), one.setting.value("speed_up")
    faster = "–" if speed_up is None or not one.setting.setting.techniques else f"{speed_up:.2f}"
    return [title, "–" if factor is None else f"{factor:.2f}", faster]


def _judged(one: Sample) -> list[str]:
    figures = one.judgement.figures
    words = f"{figures['edits']:.0f} of {figures['words']:.0f}" if "edits" in figures else "–"
    return [words, *(f"{figures[name]:.2f}" if name in figures else "–" for name in FIGURES)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _paragraphs(text: str) -> list[str]:
    """The paragraphs of ``text``, filled; lists and blocks of code stay as they are."""
    return [one if one.startswith(_AS_WRITTEN) else _filled(one) for one in text.split("\n\n") if one]


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
