"""Speaking with the small language model: settings, and a model with all that can be trained of it."""

from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from paretone.models import load_model
from paretone.models.base import Piece, SpeechModel, Synthesis, Utterance, Voice
from paretone.models.catalogue import entry, voice
from paretone.models.families.together import Turn, speak_together
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.observer import SILENT, Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.speaking import scripted, synthesise
from paretone.techniques import spade, speculative
from paretone.views import compute_view
from paretone.views.figure import Figure
from paretone.views.view import Task
from tests.engine.small_language import write_draft, write_model, write_order, write_student

TEXT = "Rice is often served."
LONG = "Rice is often served in round bowls. The juice of lemons makes fine punch. The box was thrown beside the truck."


def spoken_together(model: Any, scripts: Sequence[Any]) -> list[Synthesis]:
    ended: dict[int, Any] = {}
    turns = iter([Turn(one, partial(ended.__setitem__, number)) for number, one in enumerate(scripts)])
    speak_together(model, lambda: next(turns, None), len(scripts))
    return [ended[number] for number in range(len(scripts))]


def load(root: Path) -> LmMiniSpeech:
    return load_model("lm-mini", folder=str(root), device="cpu")


def setting(*techniques: UsedTechnique, seed: int = 0, **options: object) -> Setting:
    # Fast speech is short.
    chosen = Setting("lm-mini", entry("lm-mini").options_with(**{"speed": 2.0, **options}), seed=seed)
    for one in techniques:
        chosen = chosen.with_technique(one)
    return chosen


def drafted(**knobs: object) -> UsedTechnique:
    return UsedTechnique(speculative.NAME, Values(knobs))


def shallow(**knobs: object) -> UsedTechnique:
    return UsedTechnique(spade.NAME, Values(knobs))


def spoken(model: LmMiniSpeech, chosen: Setting, text: str = TEXT, observer: object = None) -> Synthesis:
    return synthesise(model, text, voice("", "lm-mini"), chosen, (), observer or Observer())


def view(model: LmMiniSpeech, name: str, **knobs: object) -> Figure:
    task = Task(model, Utterance(TEXT, voice("", "lm-mini")), setting(), Values(knobs), Observer())
    return compute_view(name, task)


def write_all(root: Path) -> Path:
    """A model that never ends by itself, with a draft, students and a measurement of its layers."""
    write_model(root)
    write_draft(root, lambda weight: weight * 1.1)
    write_student(root, (0, 2))
    write_student(root, (0, 2), "minutes:5", 5.0)
    write_order(root)
    return root


def script_of(model: LmMiniSpeech, chosen: Setting) -> Any:
    return scripted(model, TEXT, voice("", "lm-mini"), chosen)


def stream(
    model: SpeechModel,
    text: str,
    by: Voice,
    chosen: Setting,
    artefacts: Sequence[Artefact] = (),
    observer: Observer = SILENT,
) -> Generator[Piece, None, Synthesis]:
    return (yield from model.stream(scripted(model, text, by, chosen, artefacts, observer), observer))
