"""Commands for an engine with the small flow model."""

from __future__ import annotations

from paretone.models.base import Utterance
from paretone.session.commands import LoadModel, Prepare, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.setting.setting import Setting, UsedTechnique
from tests.engine.preparing import calibrate
from tests.engine.recorder import Recorder
from tests.engine.small_speech import VOICE, setting

LOAD = LoadModel(1, "small")
ONE = Utterance("One sentence.", VOICE)


def synthesis(job: int, text: str = "One sentence.", chosen: Setting | None = None) -> Synthesise:
    return Synthesise(job, text, VOICE, chosen or setting())


def calibration(job: int, steps: int = 4) -> Prepare:
    return calibrate(job, (ONE,), setting(steps).with_technique(UsedTechnique("ditreducio")))


def loaded(engine: EngineThread, recorder: Recorder) -> None:
    recorder.finish(engine, LOAD)
