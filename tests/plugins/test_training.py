"""A plug-in's training, declared by its job's form: the window draws the form, trains, and takes up what came of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from paretone.techniques import problems
from paretone.training.forms import training_form
from paretone_app.state.jobs import Kind, Outcome
from tests.app.conftest import MakeWindow, close, ready
from tests.engine.training.toy_model import toy_manifest
from tests.packages import needs
from tests.plugins.writing import DECLARED, written

pytestmark = needs("accelerate")
NAME = "paced"
SOURCE = """
import json
from pathlib import Path

from paretone.setting.knobs import Number
from paretone.training.forms import Figure, TrainingForm
from paretone.training.requests import Trained, TrainingProgress, TrainingRequest

RATE = Number("rate", "Learning rate", "How far a step goes.", default=0.5, minimum=0.01, maximum=1.0)


@dataclass(frozen=True, kw_only=True)
class Request(TrainingRequest):
    rate: float = 0.5


def train(task):
    '''Learns how many seconds a character takes, from the manifest's recordings.'''
    from paretone.audio.recording import read_recording
    from paretone.training.manifest import read_manifest

    request, pace, steps = task.request, 0.0, 12
    clips = [(len(one.text), read_recording(one.audio)) for one in read_manifest(Path(request.manifest))]
    pairs = [(count, len(clip.samples) / clip.sample_rate) for count, clip in clips]
    scale = sum(count * count for count, _ in pairs)
    for step in range(1, steps + 1):
        task.observer.check()
        slope = sum((count * pace - seconds) * count for count, seconds in pairs) / scale
        pace -= request.rate * slope
        share, seconds = step / steps, float(step)
        task.observer.report("training", TrainingProgress(step, share, seconds, None, {"loss": slope * slope}, {}))
        task.observer.report("training", TrainingProgress(step, share, seconds, None, {}, {"slope": abs(slope)}))
    file = Path(request.work) / "pace.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"pace": pace, "clips": len(pairs)}))
    return Trained(str(file), f"{1000 * pace:.0f} ms a character.", Values(pace=pace), steps, 1.0, {})


from paretone.setting.knobs import Values

FORM = TrainingForm(
    name=NAME,
    title="Pace of a voice",
    families=("flow",),
    intro="Learns how fast a voice speaks.",
    knobs=(RATE,),
    found=(Figure("slope", "slope that is left", share=False),),
    progress="At step {step} a slope of {found} is left.",
    request=lambda place, plan: Request(
        model=place.model, work=plan.work, manifest=plan.manifest, minutes=plan.minutes, rate=float(plan.knobs["rate"])
    ),
    minutes=lambda info: 1.0,
    folder=lambda model, knobs: f"{model}-pace-{knobs['rate']:g}",
    ready=lambda figures: ({"pace": round(figures["pace"], 3)}, "The pace is learnt: switch The paced on."),
)
TECHNIQUE = declared(
    knobs=(Number("pace", "Pace", "Seconds a character.", default=0.0, minimum=0.0, maximum=1.0, unit="s"),),
    jobs=(
        Job("train", "Learning the pace", f"{__name__}:Request", f"{__name__}:train", False, form=f"{__name__}:FORM"),
    ),
)
"""


def test_a_plug_ins_training_is_done_from_the_window(
    visible: Callable[[Path], None], make_window: MakeWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    written(tmp_path, NAME, DECLARED + SOURCE)
    visible(tmp_path)
    assert not problems()
    window = ready(make_window(), qtbot)
    window.workspaces.go_to("training")
    panel = window.panels["training"]
    window.state.selection.switch(NAME, True)
    assert panel.training is training_form(NAME), "that of the technique that was switched on"
    assert panel.work.text().endswith("-pace-0.5") and panel.minutes.value() == 1.0, "as its form proposes"
    panel.knobs.editor("rate").setValue(0.4)
    panel.manifest.setText(str(toy_manifest(tmp_path)))
    qtbot.waitUntil(panel.start_button.isEnabled)
    with qtbot.waitSignal(window.jobs.ended) as ended:
        qtbot.mouseClick(panel.start_button, Qt.MouseButton.LeftButton)
    job, outcome, sentence = ended.args
    assert (job.kind, outcome) == (Kind.TRAIN, Outcome.FINISHED), sentence
    file = Path(panel.work.text()) / "pace.json"
    learnt = json.loads(file.read_text(encoding="utf-8"))
    assert file.parent.name.endswith("-pace-0.4") and learnt["clips"] > 1 and learnt["pace"] > 0
    assert "ms a character" in panel.state.text() and str(file) in panel.state.text()
    slopes = panel.curves.found["slope"]
    assert len(slopes) == 12 and slopes[-1] < 0.01 * slopes[0], "a curve of its figure"
    assert "The pace is learnt" in window.notices.banner.text
    assert window.state.selection.knobs(NAME)["pace"] == pytest.approx(learnt["pace"], abs=0.001)
    close(window, qtbot)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("TrainingForm", "must be a TrainingForm"),
        ("FORM.__class__(**{**vars(FORM), 'name': 'other'})", "its name must be that of the technique, 'paced'"),
        ("FORM.__class__(**{**vars(FORM), 'found': ()})", "one to three Figures"),
    ],
)
def test_a_form_with_a_fault_is_named(form: str, said: str, visible: Callable[[Path], None], tmp_path: Path) -> None:
    written(tmp_path, NAME, DECLARED + SOURCE + f"\nFORM = {form}\n")
    visible(tmp_path)
    (problem,) = problems()
    assert "plugin-paced 2.0 was left out: form of the job 'train'" in problem and said in problem
