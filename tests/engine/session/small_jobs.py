"""Commands for an engine with the small flow model."""

from paretone.models.base import Utterance
from paretone.session.commands import LoadModel, Prepare, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import ditreducio
from paretone.techniques.ditreducio.record import CalibrationRequest
from tests.engine.recorder import Recorder
from tests.engine.small_speech import VOICE, setting

LOAD = LoadModel(1, "small")


def synthesis(job: int, text: str = "One sentence.", chosen: Setting | None = None) -> Synthesise:
    return Synthesise(job, text, VOICE, chosen or setting())


def calibrate(job: int, utterance: Utterance, chosen: Setting) -> Prepare:
    return Prepare(job, ditreducio.NAME, CalibrationRequest((utterance,), chosen))


def calibration(job: int, steps: int = 4) -> Prepare:
    one = Utterance("One sentence.", VOICE)
    return calibrate(job, one, setting(steps).with_technique(UsedTechnique(ditreducio.NAME)))


def loaded(engine: EngineThread, recorder: Recorder) -> None:
    recorder.finish(engine, LOAD)
