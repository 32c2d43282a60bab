"""``paretone samples``: short Ogg files of a few settings, and a page with their figures."""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from paretone import files
from paretone.commands.command import Result
from paretone.commands.output import folder as made_folder
from paretone.commands.output import write_json
from paretone.commands.terminal import JOB, Session
from paretone.models import catalogue
from paretone.paths import resource
from paretone.session.commands import RunStudy
from paretone.wording import grouped

if TYPE_CHECKING:
    from paretone.studies.results import Results
    from paretone.studies.samples import Sample, SampleChoices

NAME = "samples"
SUMMARY = "Make listening samples of a few settings: Ogg files, and a page with their figures."
FILE = ("samples", "listen.toml")
LARGEST_BYTES = 60_000


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="which samples (TOML; default: those of the documentation)"
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="FOLDER",
        help="folder of the page, FILE with the ending .md, and of the samples",
    )
    parser.add_argument(
        "--work",
        type=Path,
        metavar="FOLDER",
        help="folder that keeps the studies of the samples, so that the same command resumes (default: kept nowhere)",
    )


def run(options: argparse.Namespace, session: Session) -> Result:
    from paretone.audio.recording import ogg
    from paretone.studies import samples
    from paretone.studies.results import read
    from paretone.studies.store import read_audio

    file = options.file or resource(*FILE)
    choices = samples.read(file)
    place = made_folder(options.out)
    audio = made_folder(str(place / file.stem))
    with ExitStack() as stack:
        if options.work:
            work = made_folder(str(options.work))
        else:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paretone-samples-")))
        results: dict[str, Results] = {}
        for model in choices.models:
            study = work / f"{model}.json"
            write_json(study, choices.study(model))
            ended = session.carry_out(RunStudy(JOB, str(study), str(study.with_suffix(".study"))))
            results[model] = read(ended.folder)
        made, missing = _judged(choices, results, work, session)
        written = []
        for one in made:
            written.append(audio / f"{one.choice.name}.ogg")
            files.write(written[-1], ogg(*read_audio(Path(one.judgement.file)), LARGEST_BYTES))
    page = place / f"{file.stem}.md"
    files.write(page, samples.page(choices, made, file.stem, session.machine, missing).encode())
    data = {"page": str(page), "files": [str(path) for path in written], "samples": [_row(one) for one in made]}
    lines = [f"Wrote {path} ({grouped(path.stat().st_size)} bytes)." for path in written]
    return Result({**data, "missing": list(missing)}, "\n".join([*lines, f"Wrote {page}.", *missing]))


def _judged(
    choices: SampleChoices, results: dict[str, Results], work: Path, session: Session
) -> tuple[list[Sample], tuple[str, ...]]:
    from paretone.measure.evaluation.judging import FileJudges, reference_speech
    from paretone.studies.samples import Sample, found

    session.terminal.status("Judging")
    # The judge of words knows other sentences, too, so that it can be wrong.
    texts, check = list(dict.fromkeys([choices.text, *catalogue.judged_sentences()])), session.terminal.check
    made: list[Sample] = []
    judges: dict[str, FileJudges] = {}
    for choice, setting in found(choices, results):
        voice = choices.voice_of(choice.model or choices.models[0])
        if setting is None:
            path = work / f"{choice.name}.wav"
            samples, rate = reference_speech(choices.text, voice)
            files.write_wav(path, samples, rate)
        else:
            path = results[choice.model].heard[setting.key][0].path
        if voice.audio not in judges:
            judges[voice.audio] = FileJudges(texts, Path(voice.audio))
        made.append(Sample(choice, judges[voice.audio].judge(path, choices.text, check), setting))
    return made, tuple(dict.fromkeys(sentence for one in judges.values() for sentence in one.missing))


def _row(one: Sample) -> dict[str, object]:
    setting = one.setting
    speeds = {name: None if setting is None else setting.value(name) for name in ("real_time_factor", "speed_up")}
    said = {"setting": None if setting is None else setting.setting.to_json(), **speeds, **one.judgement.figures}
    return {"name": one.choice.name, "model": one.choice.model, **said, "heard": one.judgement.heard}
