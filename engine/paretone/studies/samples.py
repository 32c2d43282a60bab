"""Listening samples: a few settings on one sentence, each with its figures. Torch-free.

A file lists the settings; those of each model run as a study of one sentence, so that artefacts and speeds are as in
any study. Judges hear the same recordings, and the original: the sentence by the synthesiser of the training speech.

    text = "…"                  # sentence of all samples
    voice = "…"                 # by default each model's first
    seed = 1
    rounds = 3                  # repeats per speed-up, a median
    title, introduction, closing: words of the page

    [[sample]]
    name = "few-steps"          # of the file
    title = "…"
    model = "f5-mini"           # without a model: the original
    options = {}                # as in a study
    techniques = {}
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paretone.errors import StudyError, placed
from paretone.measure.metrics import metric
from paretone.models import catalogue
from paretone.models.base import Voice
from paretone.reading import legible, parsed_toml, read_text, shown
from paretone.studies import definition
from paretone.studies.results import Results, SettingResult
from paretone.studies.space import study_fields
from paretone.studies.wording import described

if TYPE_CHECKING:
    from paretone.measure.evaluation.judging import Judgement


ROUNDS = 3


@dataclass(frozen=True)
class SampleChoice:
    name: str
    title: str
    model: str
    """``""`` for the original."""
    options: Mapping[str, Any]
    techniques: Mapping[str, Any]

    @property
    def listed(self) -> dict[str, Any]:
        return {"name": self.title, "options": dict(self.options), "techniques": dict(self.techniques)}


@dataclass(frozen=True)
class SampleChoices:
    title: str
    text: str
    voice: str
    """Name of the voice; ``""``: each model's first."""
    seed: int
    rounds: int
    samples: tuple[SampleChoice, ...]
    introduction: str = ""
    closing: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.model for one in self.samples if one.model))

    def study(self, model: str) -> dict[str, Any]:
        return {
            "title": f"{self.title}: {catalogue.entry(model).title}",
            "model": model,
            "sentences": [self.text],
            **({"voices": [self.voice]} if self.voice else {}),
            "seeds": [self.seed],
            "rounds": self.rounds,
            "setting": [one.listed for one in self.samples if one.model == model],
        }

    def voice_of(self, model: str) -> Voice:
        return catalogue.voice(self.voice, model)


@dataclass(frozen=True)
class Sample:
    choice: SampleChoice
    judgement: Judgement
    setting: SettingResult | None = None
    """``None`` for the original."""


def read(path: Path) -> SampleChoices:
    """Content of the TOML file at ``path``, with checked settings. Raises :class:`StudyError` with file and mistake."""
    with legible(StudyError, "file", path):
        text = read_text(path, "utf-8-sig")
    try:
        data = parsed_toml(text)
    except ValueError as error:
        raise StudyError(f"{path} could not be read as TOML ({error}).") from error
    with placed(StudyError, path):
        fields = study_fields(data)
        samples = tuple(_sample(one, index) for index, one in enumerate(fields.list("sample")))
        choices = SampleChoices(
            fields.text("title", "Listen"),
            fields.text("text").strip(),
            fields.text("voice"),
            fields.whole("seed", 0),
            fields.whole("rounds", ROUNDS, minimum=1),
            samples,
            fields.text("introduction").strip(),
            fields.text("closing").strip(),
        )
        fields.require_known()
        if not choices.text:
            raise StudyError("text is empty; write a sentence that all samples say.")
        if not choices.models:
            raise StudyError("no model speaks; give a [[sample]] with a model.")
        names = [one.name for one in samples]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise StudyError(f"two samples are named {shown(twice)}.")
        for model in choices.models:
            definition.parse(choices.study(model), catalogue.entry(model).title)
        return choices


def _sample(given: object, index: int) -> SampleChoice:
    fields = study_fields(given, f"sample[{index}].")
    name, title, model = map(fields.text, ("name", "title", "model"))
    one = SampleChoice(name, title, model, fields.table("options"), fields.table("techniques"))
    fields.require_known()
    if not one.name or not one.name.replace("-", "").isalnum() or not one.name.isascii():
        raise StudyError(f"sample[{index}].name must be letters, digits and hyphens, not {shown(one.name)}.")
    if not one.model and (one.options or one.techniques):
        raise StudyError(f"sample[{index}] has a setting, but no model.")
    return one


def found(choices: SampleChoices, results: Mapping[str, Results]) -> list[tuple[SampleChoice, SettingResult | None]]:
    """Each sample with its result in its model's study. Raises :class:`StudyError` for one that could not be made."""
    pairs: list[tuple[SampleChoice, SettingResult | None]] = []
    for one in choices.samples:
        if not one.model:
            pairs.append((one, None))
            continue
        alone = definition.parse({**choices.study(one.model), "setting": [one.listed]})
        setting = results[one.model].setting(alone.candidates[-1].key)
        if setting is None or not setting.takes:
            failures = results[one.model].failures
            why = (setting.problem if setting else "") or (failures[0] if failures else "its study is not finished")
            raise StudyError(f"The sample {one.name} could not be made: {why}")
        pairs.append((one, setting))
    return pairs


# --- The page, in Markdown --------------------------------------------------------------------------------------------
WIDTH = 120
_AS_WRITTEN = ("* ", "- ", "```", "| ")
FIGURES = ("naturalness", "voice_similarity", "pitch_range")
"""Judges' figures except word errors."""


def page(choices: SampleChoices, samples: Sequence[Sample], folder: str, machine: str, missing: Sequence[str]) -> str:
    """The whole page; the audio files are in ``folder`` next to it. ``missing``: sentences on unavailable judges."""
    voices = dict.fromkeys(choices.voice_of(model).title for model in choices.models)
    said = f"All say “{choices.text}” in the voice {' or '.join(voices)}; seed {choices.seed}."
    measured = (
        f"RTF, and speed-up over the same model without techniques, are medians of {choices.rounds} runs of the "
        f"sentence on {machine}. {metric('voice_similarity').title} is to the voice's recording. One sentence tells "
        "you what a figure sounds like; how settings compare, only studies of many sentences say."
    )
    titles = [metric(name).title for name in FIGURES]
    heads = ["", "sample", "setting", "RTF", "speed-up", "word errors", *(title.lower() for title in titles)]
    rows = [_line(heads), _line(["--:", "---", "---", *["---:"] * (len(heads) - 3)])]
    for number, one in enumerate(samples, start=1):
        name = f"[{one.choice.title or one.choice.name}]({folder}/{one.choice.name}.ogg)"
        rows.append(_line([str(number), name, *_setting(one), *_judged(one)]))
    parts = [f"# {choices.title}", *_paragraphs(choices.introduction), _filled(said), "\n".join(rows)]
    parts += [_filled(measured), *map(_filled, missing), *_paragraphs(choices.closing)]
    return "\n\n".join(parts) + "\n"


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
    """The filled paragraphs of ``text``; lists and code blocks stay unchanged."""
    return [one if one.startswith(_AS_WRITTEN) else _filled(one) for one in text.split("\n\n") if one]


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
