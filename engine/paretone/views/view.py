"""Declaration of views, and the task that they are computed on. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paretone.models.base import FlowModel, SpeechModel, Utterance, flow_model
from paretone.observer import Observer, Passing, StepReport
from paretone.setting.knobs import Effect, Knob, Number, Values
from paretone.setting.setting import Setting
from paretone.views.figure import Panel


@dataclass(frozen=True)
class Task:
    """Input of a view's computation."""

    model: SpeechModel
    utterance: Utterance
    """The sentence that is looked at."""
    setting: Setting
    """Whose options the sampler has. Of its techniques a view uses what it shows; the knobs of one that a view
    calibrates say how."""
    knobs: Values
    """The view's own, all of them."""
    observer: Observer
    records: tuple[object, ...] = ()
    """What preparations measured and is at hand: a calibration's record, say, which may spare one."""

    @property
    def flow(self) -> FlowModel:
        """The model, for views of models that go from noise to speech in steps. Raises :class:`SettingError` if it
        is of another family."""
        return flow_model(self.model, "The view")


@dataclass(frozen=True)
class Findings:
    """Result of computing a view."""

    panels: tuple[Panel, ...]
    caption: str
    across: int = 2
    judged: tuple[Utterance, ...] = ()
    """Sentences in addition to the task's own."""


@dataclass(frozen=True)
class View:
    """One view, as a front end offers it and the engine computes it.

    ``knobs`` is given the number of layers and declares the view's knobs for such a model. ``compute`` runs the model;
    it calls the task's observer at least once a step. It imports what needs torch only when it is called.
    """

    name: str
    title: str
    question: str
    """Question that it answers."""
    source: str
    """Publication of such a figure."""
    families: tuple[str, ...]
    compute: Callable[[Task], Findings]
    knobs: Callable[[int], tuple[Knob, ...]] = lambda layers: ()


def sentences_knob(default: int, purpose: str = "spoken in every way") -> Number:
    """Knob for the number of sentences that a view speaks for ``purpose``."""
    return Number(
        "sentences",
        "Sentences",
        f"Number of Harvard sentences (of 30) {purpose}.",
        default=default,
        minimum=1,
        maximum=30,
        effect=Effect.NEXT_VIEW,
        whole=True,
    )


# --- One progress for work of many parts ------------------------------------------------------------------------------
class Stages:
    """Counts ``total`` units of work, by parts; a unit is best a layer evaluation, or as long as one."""

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
        """The next part: an observer of what does it; the part counts as done when the next one begins."""
        self._observer.status(text)
        begun, self._begun = self._begun, self._begun + units
        return ProgressStage(self._observer, lambda share: self._tell(begun + share * units))

    def _tell(self, units: float) -> None:
        self._observer.check()
        self._observer.progress(min(round(units), self._total), self._total)


class ProgressStage(Passing):
    """A part of the work. Its own lines are passed over."""

    def __init__(self, observer: Observer, tell: Callable[[float], None]) -> None:
        super().__init__(observer, "caution")
        self._tell = tell

    def step(self, report: StepReport) -> None:
        self.progress(report.chunk * report.steps + report.step + 1, report.chunks * report.steps)

    def progress(self, done: int, total: int) -> None:
        self._tell(done / total)
