"""Declaration of views, and the task for computing them. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paretone.models.base import FLOW, FlowModel, ModelInfo, SpeechModel, Utterance, flow_model
from paretone.observer import Observer, Passing, StepReport
from paretone.setting.knobs import Choice, Effect, Knob, Number, Values, count
from paretone.setting.setting import Setting
from paretone.views.figure import Panel


@dataclass(frozen=True)
class Task:
    """Input of a view's computation."""

    model: SpeechModel
    utterance: Utterance
    setting: Setting
    """Setting whose options the sampler uses. Of its techniques a view uses those that it shows; a technique calibrated
    by the view takes its knobs from here."""
    knobs: Values
    observer: Observer
    records: tuple[object, ...] = ()
    """Available results of preparations, such as a calibration's record, which may make a new one unnecessary."""

    @property
    def flow(self) -> FlowModel:
        """The model, for views of flow models. Raises :class:`SettingError` for other families."""
        return flow_model(self.model, "The view")


@dataclass(frozen=True)
class Findings:
    panels: tuple[Panel, ...]
    caption: str
    across: int = 2
    judged: tuple[Utterance, ...] = ()
    """Sentences besides the task's own."""


@dataclass(frozen=True)
class View:
    """Declaration of a view for front ends and engine. ``knobs`` maps the number of layers to the view's knobs.
    ``compute`` runs the model and calls the task's observer at least once per step. It imports torch-dependent modules
    only when called."""

    name: str
    title: str
    question: str
    source: str
    """First publication of such a figure."""
    families: tuple[str, ...]
    compute: Callable[[Task], Findings]
    knobs: Callable[[int], tuple[Knob, ...]] = lambda layers: ()

    def subject(self, info: ModelInfo) -> ModelInfo | None:
        """What it draws of the model of ``info``: the model or, for flows, the flow after its language model if that is
        a diffusion transformer; ``None`` if it suits neither."""
        if info.family in self.families:
            return info
        after = FLOW in self.families and info.mel_flow is not None and info.mel_flow.transformer
        return info.of_flow if after else None


def count_knob(
    name: str, title: str, meaning: str, default: int, most: int, least: int = 1, unit: str = "", symbol: str = ""
) -> Number:
    return count(name, title, meaning, default, (least, most), symbol=symbol, unit=unit, effect=Effect.NEXT_VIEW)


def sentences_knob(default: int, purpose: str = "spoken in every way") -> Number:
    """Knob for the number of sentences that a view speaks for ``purpose``."""
    return count_knob("sentences", "Sentences", f"Number of Harvard sentences (of 30) {purpose}.", default, 30)


PUBLISHED, CHOSEN = "published", "chosen"
RULE = Choice(
    "rule",
    "Rule",
    "Knobs of the technique, as far as its source fixes them: as published, or as chosen for it.",
    default=PUBLISHED,
    effect=Effect.NEXT_VIEW,
    values=(PUBLISHED, CHOSEN),
    titles=("As published", "As chosen"),
)
"""Knob of views that cite a source and draw under a technique's knobs."""


# --- Progress of work in several parts --------------------------------------------------------------------------------
class Stages:
    """Counts ``total`` units of work by parts; a unit is ideally a layer evaluation, or as long as one."""

    def __init__(self, observer: Observer, total: float) -> None:
        self._observer = observer
        self._total = max(1, round(total))
        self._begun = 0.0

    def check(self) -> None:
        self._observer.check()

    def done(self, units: float) -> None:
        self._begun += units
        self._tell(self._begun)

    def part(self, units: float, text: str) -> ProgressStage:
        """Observer of the next part; a part counts as done when the next one begins."""
        self._observer.status(text)
        begun, self._begun = self._begun, self._begun + units
        return ProgressStage(self._observer, lambda share: self._tell(begun + share * units))

    def _tell(self, units: float) -> None:
        self._observer.check()
        self._observer.progress(min(round(units), self._total), self._total)


class ProgressStage(Passing):
    """Observer of one part of the work. Its status lines are ignored."""

    def __init__(self, observer: Observer, tell: Callable[[float], None]) -> None:
        super().__init__(observer, "caution")
        self._tell = tell

    def step(self, report: StepReport) -> None:
        self.progress(report.chunk * report.steps + report.step + 1, report.chunks * report.steps)

    def progress(self, done: int, total: int) -> None:
        self._tell(done / total)
