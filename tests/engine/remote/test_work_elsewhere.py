"""Work on another machine besides the main job: looking inside, training, downloads, exports, evaluation sets."""

import json
import shutil
import time
import wave
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")

from aiohttp import web

from paretone.export.language import LanguageExport, export_language
from paretone.front_end.pronunciations import teach
from paretone.models.base import Utterance, Voice
from paretone.models.catalogue import entry
from paretone.models.voices import own_voice
from paretone.observer import Observer
from paretone.serving.records import Level, Order, Target
from paretone.session import commands, events
from paretone.session.engine_thread import EngineThread
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting
from paretone.studies.store import Store
from paretone.techniques.guidance_free import GuidanceFreeRequest
from paretone.training.requests import TrainingProgress
from paretone.training.spoken_tokens import VOCABULARY
from tests.engine.models.hub import WEIGHTS, Hub, assert_complete
from tests.engine.models.megatts3.small_release import write_release, write_voice
from tests.engine.recorder import Recorder, is_of
from tests.engine.remote.elsewhere import Host, Window, window
from tests.engine.remote.test_elsewhere import VOICE, setting
from tests.engine.serving.answering import answering
from tests.engine.training.toy_model import toy_manifest, toy_model
from tests.packages import needs
from tests.parity.fixtures import golden_folder


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    made = Host(tmp_path_factory.mktemp("host"))
    yield made
    made.kill()


@pytest.fixture(scope="module")
def here(host: Host, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    with window(host.port, host.token, tmp_path_factory.mktemp("here")) as made:
        yield made


Do = Callable[[Callable[[int], commands.Command]], events.Event]


def doing(here: Window) -> Do:
    """Has the host carry a command out; its last event before the end, or the failure."""

    def carry_out(make: Callable[[int], commands.Command]) -> events.Event:
        job = 1 + max((one.job for one in here.recorder.events), default=0)
        here.engine.submit(make(job))
        end = here.recorder.end_of(job)
        return end if isinstance(end, events.JobFailed) else here.recorder.of(job)[-2]

    return carry_out


@pytest.fixture
def do(here: Window) -> Do:
    return doing(here)


def test_attention_views_and_rooflines_are_as_on_this_machine(do: Do, tmp_path: Path) -> None:
    """Live figures, heat maps and traces: each of the same form and content as from an engine here."""
    said, trace = Utterance("Milk.", VOICE), tmp_path / "trace.json"
    looks = [
        lambda job: commands.LoadModel(job, "f5-mini", device="cpu"),
        lambda job: commands.CaptureAttention(job, "Milk.", VOICE, setting(), 1, 2),
        lambda job: commands.ComputeView(job, "temporal-redundancy", said, setting(), Values()),
        lambda job: commands.MeasureRoofline(job, said, setting(), rounds=1, trace=str(trace)),
    ]
    _, attention, view, roofline = map(do, looks)
    assert isinstance(roofline, events.RooflineMeasured), roofline
    assert json.loads(trace.read_text())["traceEvents"] and roofline.report.machine
    recorder = Recorder()
    own = EngineThread(recorder.post)
    own.start()
    for job, look in enumerate(looks[:3], start=1):
        recorder.finish(own, look(job))
    own.submit(commands.ShutDown(0))
    (captured,), (computed,) = recorder.of(2, events.AttentionCaptured), recorder.of(3, events.ViewComputed)
    for one in fields(captured.capture):
        left, right = getattr(captured.capture, one.name), getattr(attention.capture, one.name)
        assert np.shape(left) == np.shape(right)
        if isinstance(left, np.ndarray | float | tuple):
            np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-4)
    assert type(computed.figure) is type(view.figure) and computed.figure.title == view.figure.title
    assert own.join(60)


@needs("accelerate")
def test_a_training_runs_is_cancelled_and_resumed_there(do: Do, here: Window, host: Host, tmp_path: Path) -> None:
    work = here.data / "training" / "w"
    asked = {"model": "f5-mini", "manifest": str(toy_manifest(tmp_path)), "folder": str(toy_model(tmp_path / "model"))}

    def train(steps: int, place: Path = work, **more: bool) -> Callable[[int], commands.Command]:
        request = GuidanceFreeRequest(
            **asked, work=str(place), weight=0.5, steps=steps, device="cpu", threads=1, **more
        )
        return lambda job: commands.Prepare(job, "guidance_free", request)

    assert "to resume from; start afresh" in do(train(9, resume=True, place=work / "none")).sentence
    job = 10_000
    here.engine.submit(train(100_000)(job))
    here.recorder.wait_for(lambda one: is_of(one, TrainingProgress) and one.job == job and one.report.step == 2)
    here.engine.submit(commands.Cancel(0, job))
    assert isinstance(here.recorder.end_of(job), events.JobCancelled)
    assert (host.data / "training" / "w" / "checkpoint.pt").is_file() and not work.exists()
    assert "holds an earlier run; resume it" in do(train(9)).sentence
    reached = here.recorder.reports(job, TrainingProgress)[-1].step
    prepared = do(train(reached + 2, begun_again=True))  # As a queue does: the host knows whether it has a checkpoint.
    assert prepared.result.steps == reached + 2
    weights = Path(prepared.result.checkpoint)
    assert weights.is_relative_to(host.data) and weights.is_file()


def test_weights_are_exported_to_this_machine_all_or_none(do: Do, tmp_path: Path) -> None:
    do(lambda job: commands.LoadModel(job, "lm-mini", device="cpu"))
    export = lambda job: commands.ExportWeights(job, "lm-mini", "draft", "", str(tmp_path / "there"))  # noqa: E731
    written = do(export)
    assert isinstance(written, events.WeightsExported) and written.folder == str(tmp_path / "there")
    export_language(LanguageExport("lm-mini", "draft", tmp_path / "here"), Observer())
    files = sorted(one.relative_to(tmp_path / "here") for one in (tmp_path / "here").rglob("*") if one.is_file())
    assert sorted(map(Path, written.files)) == files
    for one in files:
        assert (tmp_path / "there" / one).read_bytes() == (tmp_path / "here" / one).read_bytes(), one
    assert "is there already and was not replaced" in do(export).sentence


@needs("huggingface_hub")
def test_downloads_go_to_the_host_and_are_cancelled_and_resumed(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = entry("F5TTS_v1_Base")
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    host = Host(tmp_path / "host")
    with window(host.port, host.token, tmp_path / "here") as here:
        here.recorder.wait_for_kind(events.EngineReady)
        total, missing = here.engine.ask("extent", model.id).result(60)
        assert total == missing > 1_000_000 and here.engine.ask("models").result(60)[model.id] is False
        place, refused = str(tmp_path / "here" / "models" / model.id), str(tmp_path / "no")
        here.engine.submit(commands.DownloadModel(1, model.id, refused, "MIT"))
        assert "accept that licence" in here.recorder.end_of(1).sentence

        def cancelled() -> None:
            while not any(part.stat().st_size for part in host.data.rglob("*.part")):
                time.sleep(0.01)  # cancelled before the first block, it would have nothing to go on with
            here.engine.submit(commands.Cancel(0, 2))
            here.engine.submit(commands.LoadModel(9, "f5-mini", folder="here"))
            assert "not a whole path" in here.recorder.end_of(9).sentence, "said after what was sent before"

        hub.break_off_after, hub.before_break_off = [1_300_000], cancelled
        here.engine.submit(commands.DownloadModel(2, model.id, place, model.licence))
        assert isinstance(here.recorder.end_of(2), events.JobCancelled)
        here.recorder.finish(here.engine, commands.DownloadModel(3, model.id, place, model.licence))
        assert here.recorder.of(3, events.Progress) and hub.transfers()[-1] is not None, "it went on"
        assert_complete(tmp_path / "host" / "models" / model.id)
        assert here.engine.ask("extent", model.id).result(60) == [total, 0]
        assert here.engine.ask("models").result(60)[model.id] is True
        assert not (tmp_path / "here").exists() and len(hub.transfers(WEIGHTS)) == 2
    host.kill()


# --- Recordings -------------------------------------------------------------------------------------------------------
def evaluation_set(folder: Path) -> Path:
    """A small set in the form of Seed-TTS, with its study."""
    (folder / "en" / "prompt-wavs").mkdir(parents=True)
    (folder / "en" / "wavs").mkdir()
    shutil.copy(VOICE.audio, folder / "en" / "prompt-wavs" / "a.wav")
    shutil.copy(VOICE.audio, folder / "en" / "wavs" / "one.wav")
    with wave.open(str(folder / "en" / "prompt-wavs" / "b.wav"), "wb") as file, wave.open(VOICE.audio) as whole:
        file.setparams(whole.getparams())
        file.writeframes(whole.readframes(whole.getnframes()))
    rows = [("one", "a", "Milk."), ("two", "a", "Rice."), ("three", "b", "Bread.")]
    lines = [f"{name}|{VOICE.transcript}|prompt-wavs/{prompt}.wav|{text}" for name, prompt, text in rows]
    (folder / "en" / "meta.lst").write_text("\n".join(lines))
    (folder / "set.toml").write_text('manifest = "en/meta.lst"\ncount = 2\n[[setting]]\noptions = {steps = 2}\n')
    return folder / "set.toml"


def run_study(do: Do, file: Path, *lines: str) -> None:
    file.write_text("\n".join(lines))
    ended = do(lambda job: commands.RunStudy(job, str(file), str(file.with_suffix(""))))
    assert isinstance(ended, events.StudyEnded) and ended.made == 1, ended


def test_servers_are_asked_from_there_with_the_files_that_they_need(do: Do, here: Window, tmp_path: Path) -> None:
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(await request.json())
        return web.Response(body=b"\1\0" * 24_000)

    (tmp_path / "request.json").write_text('{"steps": 8}')
    shutil.copy(VOICE.audio, tmp_path / "me.wav")
    with answering(answer) as address:
        lines = 'model = "f5-mini"', 'sentences = ["Milk."]', "[[server]]", f'url = "{address}"', "rate = 50"
        run_study(do, tmp_path / "served.toml", *lines, 'request = "request.json"', 'ref_audio = ["me.wav"]')
        target, loads = Target(address, like=own_voice(tmp_path / "me.wav")), (Level(clients=2), Level(rate=50.0))
        order = Order(target, ("Milk.",), loads=loads, requests=3, kept=3, judges=True)
        found = do(lambda job: commands.MeasureServer(job, order))
    assert isinstance(found, events.ServerMeasured) and [one["requests"] for one in found.record.loads] == [3, 3]
    told = [one for one in here.recorder.of(found.job) if isinstance(one, events.ServerMeasured)]
    assert [len(one.takes) for one in told[:2]] == [3, 3] and "word_error_rate" in found.record.loads[1]["judged"]
    sent = [(one["steps"], one["ref_audio"][:27]) for one in asked if "steps" in one]
    assert set(sent) == {(8, "data:audio/wav;base64,UklGR")}
    with Store(tmp_path / "served", read_only=True) as store:
        assert len(store.cells()) == 1 and not store.lost()


@needs("accelerate")
def test_the_host_reads_what_was_taught_here_and_nothing_that_was_taught_there(
    do: Do, here: Window, host: Host, tmp_path: Path
) -> None:
    (host.data / "lexicon.json").write_text('{"schema": 1, "words": {"Milk": "rice"}}')
    teach("Nguyen", "win")
    do(lambda job: commands.LoadModel(job, "f5-mini", device="cpu"))
    lines = 'model = "f5-mini"', 'sentences = ["Nguyen, milk."]', "count = 900", "[[setting]]", "options = {steps = 2}"
    run_study(do, tmp_path / "taught.toml", *lines)
    said = [one.sentence for one in here.recorder.events if isinstance(one, events.Caution)]
    assert "The study's count is 900, and it has no more sentences than 1: all are spoken." in said
    spoken = do(lambda job: commands.Synthesise(job, "Nguyen, milk.", VOICE, setting(2)))
    teach("Milk", "bread")
    file = tmp_path / "taught.toml"
    assert do(lambda job: commands.RunStudy(job, str(file), str(file.with_suffix("")))).made == 0, "as it was begun"
    with Store(tmp_path / "taught", read_only=True) as store:
        used = [spoken.take.setting, *(one.setting for one in store.settings())]
        assert len(store.cells()) == 1 and {one.options["pronunciations"] for one in used} == {"Nguyen = win"}
    about = {"model": "f5-mini", "folder": str(toy_model(tmp_path / "model")), "work": str(host.data / "own")}
    learn = GuidanceFreeRequest(**about, sentences=1, texts=("Milk.",), weight=0.5, steps=1, device="cpu", threads=1)
    do(lambda job: commands.Prepare(job, "guidance_free", learn))
    with np.load(next((host.data / "own").rglob("000000.npz"))) as spoken:
        *_, said = filter(None, "".join(VOCABULARY.phones[one] for one in spoken["0.ids"]).split("^"))
    assert set("bd") < set(said) and not set("mlk") & set(said), "bread, after the prompt"
    (host.data / "lexicon.json").unlink()


def test_an_evaluation_set_is_sent_once_and_spoken_there(do: Do, here: Window, host: Host, tmp_path: Path) -> None:
    do(lambda job: commands.LoadModel(job, "f5-mini", device="cpu"))
    file = evaluation_set(tmp_path)
    run = lambda job: commands.RunStudy(job, str(file), str(tmp_path / "set"))  # noqa: E731
    ended = do(run)
    assert isinstance(ended, events.StudyEnded) and ended.made == 2, ended
    assert ended.evaluation.startswith("Seed-TTS test-en: 3 lines")
    assert "recordings of 1 of the texts" in ended.evaluation
    with Store(tmp_path / "set", read_only=True) as store:
        assert len(store.cells()) == 2 and not store.lost() and store.about()["file"] == str(file)
    there = {one.name: one for one in (host.data / "remote" / "received").rglob("*.wav") if "-wavs" in str(one)}
    assert set(there) == {"a.wav", "b.wav"} and there["a.wav"].stat().st_nlink == 2, "one copy on the host's disk"
    before = [one.stat().st_mtime_ns for one in there.values()]
    assert do(run).made == 0 and before == [one.stat().st_mtime_ns for one in there.values()]
    listed = tmp_path / "en" / "meta.lst"
    listed.write_text(listed.read_text().replace("prompt-wavs/b.wav", str(tmp_path / "en" / "prompt-wavs" / "b.wav")))
    assert "whole paths, which a host does not have" in do(run).sentence


@pytest.mark.slow
@needs("transformers")
def test_voices_that_lie_with_the_weights_speak_there_and_own_ones_take_their_latents_along(tmp_path: Path) -> None:
    # A grapheme model with random weights never comes to an end.
    host = Host(tmp_path / "host", first="from paretone.models.megatts3 import graphemes; graphemes.LONGEST = 6")
    with window(host.port, host.token, tmp_path / "here") as here:
        do = doing(here)
        model, text, folder = "MegaTTS3", "A short sentence.", host.data / "models" / "MegaTTS3"
        write_release(folder)
        write_voice(folder / "voices" / "some_noise.wav")
        here.recorder.wait_for_kind(events.EngineReady)
        asked = here.engine.ask("voices", f"{model}\n").result(60)
        assert asked == [["some_noise", "some noise", f"there:{folder / 'voices' / 'some_noise.wav'}", ""]]
        assert here.engine.ask("voices", f"{model}\n{tmp_path}").result(60) == []
        assert isinstance(do(lambda job: commands.LoadModel(job, model, device="cpu")), events.ModelLoaded)
        released = Voice(*asked[0])
        own = own_voice(write_voice(tmp_path / "mine.wav"))
        chosen = Setting(model, entry(model).options_with(steps=2), (), 3)
        for voice in (released, own):
            spoken = do(lambda job, one=voice: commands.Synthesise(job, text, one, chosen))
            assert isinstance(spoken, events.TakeReady) and spoken.take.voice == voice.id, spoken
        sent = (host.data / "remote" / "received").rglob("mine.npy")
        assert [one.with_suffix(".wav").is_file() for one in sent].count(True) == 1
        (tmp_path / "mine.npy").unlink()
        (tmp_path / "mine.wav").write_bytes((tmp_path / "mine.wav").read_bytes() + b"\0\0")
        alone = own_voice(tmp_path / "mine.wav")
        refused = do(lambda job: commands.Synthesise(job, text, alone, chosen))
        assert isinstance(refused, events.JobFailed) and "latents" in refused.sentence
        lines = f'model = "{model}"', f'sentences = ["{text}"]', 'voices = ["some_noise"]', "[[setting]]"
        run_study(do, tmp_path / "released.toml", *lines, "options = {steps = 2}")
    host.kill()


@needs("tokenizers")
def test_named_speakers_speak_there(do: Do, here: Window, tmp_path: Path) -> None:
    model, folder = "Qwen3-TTS-12Hz-1.7B-CustomVoice", golden_folder() / "qwen3" / "qwen3_release_custom_voice"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}")
    here.recorder.wait_for_kind(events.EngineReady)
    there = here.engine.ask("voices", f"{model}\n{folder}").result(60)
    assert ["ryan", "Ryan", "", ""] in there, "they have no recordings"
    loaded = do(lambda job: commands.LoadModel(job, model, str(folder), device="cpu"))
    assert isinstance(loaded, events.ModelLoaded), loaded
    chosen = Setting(model, entry(model).options_with(), (), 3)
    spoken = do(lambda job: commands.Synthesise(job, "Good day.", Voice("ryan", "Ryan", "", ""), chosen))
    assert isinstance(spoken, events.TakeReady) and spoken.take.voice == "ryan", spoken
    lines = f'model = "{model}"', f'folder = "{folder}"', 'sentences = ["Good day."]', 'voices = ["ryan"]'
    run_study(do, tmp_path / "named.toml", *lines, "[[setting]]")
