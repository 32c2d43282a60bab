"""Paretone in Python and notebooks: a loaded model with the functions of the command line and the window.

Every call uses the same executor and raises the same sentences (:class:`paretone.errors.PlainError`). Ctrl-C ends a
call; cautions are Python warnings.
"""

from __future__ import annotations

import base64
import json
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin, get_type_hints

import numpy as np

from paretone import files
from paretone.audio.recording import encoded, write_sound
from paretone.by_name import meant
from paretone.checks.faults import Checked
from paretone.checks.faults import checked as checked_for_faults
from paretone.checks.speech import speech_of
from paretone.commands import output
from paretone.commands.speak import first_codebooks
from paretone.commands.technique_args import with_file, with_weights
from paretone.commands.terminal import JOB, Session, Terminal
from paretone.errors import Cancelled, PlainError, SettingError, StudyError, placed
from paretone.extras import needing
from paretone.fields import Count, require_kind, require_usual_numbers, typed
from paretone.front_end.speakable import require_words
from paretone.models import catalogue
from paretone.models.base import ModelInfo, Utterance, Voice
from paretone.reading import shown
from paretone.session import commands
from paretone.session.events import Caution, Event
from paretone.session.executor import JobObserver, RunningJob
from paretone.setting.knobs import Values, checked
from paretone.setting.plan import imported
from paretone.setting.profile import Evidence, Profile
from paretone.setting.setting import Artefact, Setting, UsedTechnique, checked_seed
from paretone.setting.take import Measurements, Take, repeated
from paretone.studies.definition import SENTENCES
from paretone.studies.hooks import calibrated
from paretone.studies.report import rows_of_settings, rows_of_takes
from paretone.studies.results import Results, read
from paretone.studies.study import Candidate, results_folder, seeded
from paretone.studies.verifying import Check
from paretone.techniques import technique
from paretone.techniques.published import PUBLISHED, chosen, comparisons, options_of
from paretone.techniques.registry import applying_to
from paretone.techniques.trained import used_technique

if TYPE_CHECKING:
    import pandas

    from paretone.measure.roofline.report import RooflineReport
    from paretone.views.figure import Figure


@dataclass(frozen=True)
class Calibrated:
    """A technique with its knobs and its artefact: a value for ``techniques``."""

    used: UsedTechnique
    artefact: Artefact


Knobs = Mapping[str, object]
"""Knob values by name; missing ones have their defaults."""
Techniques = Mapping[str, Knobs | Calibrated]


@typed
def load(
    model: str = "",
    *,
    device: str = "auto",
    folder: str | Path = "",
    variant: str = "",
    vocoder: str | Path = "",
    progress: bool = False,
) -> Model:
    """Load a model of the catalogue (listed by ``paretone models``; default: that of ``folder``, else the first) onto
    ``device`` (``auto``, ``cpu``, ``cuda``, ``mps``).

    ``folder`` and ``vocoder``: the checkpoint's and the vocoder's folders, if not the defaults; ``variant``:
    architecture, if the folder does not determine it. With ``progress``, bars with estimates go to standard error.
    """
    model = model or catalogue.id_of(str(folder)) or catalogue.models()[0].id
    catalogue.entry(model).require_vocoder(str(vocoder))
    desk = _Desk(progress)
    desk.load(model, str(folder), variant, device, str(vocoder))
    return Model(desk)


@typed
def run_study(
    file: str | Path, *, folder: str | Path = "", ray: str = "", workers: int | None = None, progress: bool = False
) -> Rows:
    """Run the remaining tasks of the study in ``file``, and return its results. Every finished take is stored in
    ``folder`` (default: next to the file, as in ``paretone study run``), so that the same call continues after an
    interrupt. ``ray``: address of a Ray cluster."""
    return _Desk(progress).study(file, folder, ray, workers)


@typed
def verify_study(
    folder: str | Path, *, takes: Count = commands.VerifyStudy.takes, progress: bool = False
) -> tuple[Check, ...]:
    """Check the results of a study in ``folder`` against its file, the weights and the code, and make and judge
    ``takes`` of its takes again.

    >>> [one.detail for one in paretone.verify_study("small.study") if one.agrees is False]
    """
    return _Desk(progress).carry_out(commands.VerifyStudy(JOB, str(folder), takes)).checks


class _Desk(Session):
    """Runs calls one after another, with cautions as Python warnings."""

    def __init__(self, progress: bool) -> None:
        super().__init__(Terminal(threading.Event(), quiet=not progress))

    def carry_out(self, command: commands.Command, hear: Callable[[Event], None] | None = None) -> Any:
        self.terminal.cancelled.clear()
        try:
            return super().carry_out(command, hear or self._hear)
        except Cancelled as error:
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise error.__cause__ from None
            raise
        finally:
            self.terminal.clear()

    def calibrate(self, name: str, utterances: Sequence[Utterance], setting: Setting) -> Artefact:
        self.terminal.cancelled.clear()
        observer = JobObserver(RunningJob(JOB, self._hear, self.terminal.cancelled))
        try:
            return calibrated(name, self.model, utterances, setting, observer)
        finally:
            self.terminal.clear()

    def study(self, file: str | Path, folder: str | Path = "", ray: str = "", workers: int | None = None) -> Rows:
        if workers and not ray:
            raise StudyError("workers needs ray: without a cluster, this process does everything.")
        place = output.folder(folder) if folder else results_folder(str(file))
        self.carry_out(commands.RunStudy(JOB, str(Path(str(file)).resolve()), str(place), ray, workers))
        return Rows(read(place))

    @property
    def loaded(self) -> commands.LoadModel:
        assert self.executor.loaded is not None
        return self.executor.loaded

    def _hear(self, event: Event) -> None:
        if isinstance(event, Caution):
            warnings.warn(event.sentence, stacklevel=2)
        else:
            self.terminal.hear(event)


@typed
class Model:
    """A loaded model. Use it in one thread at a time; :meth:`cancel` may be called from another.

    Settings have the same form everywhere: ``options`` are the model's own knobs; ``techniques`` maps the name of each
    technique in use to its knobs, to ``{}`` for their defaults, or to a result of :meth:`calibrate`. ``weights`` among
    the knobs of a trained technique names its weights, and ``table`` and its like a file, as on the command line.
    ``voice`` is a voice's name, the path of a recording (with its ``transcript``, if unknown), or empty: the first.
    """

    def __init__(self, desk: _Desk) -> None:
        self._desk = desk
        self._calibrated: dict[str, Artefact] = {}

    @property
    def info(self) -> ModelInfo:
        """Checkpoint, architecture, device, voices and weights."""
        return self._desk.model.info

    @property
    def voices(self) -> tuple[str, ...]:
        """Names of its bundled voices."""
        return tuple(one.id for one in catalogue.voices(self.info.id, self._folder))

    @property
    def options(self) -> dict[str, object]:
        """Its sampler options with their defaults."""
        entry = catalogue.entry(self.info.id)
        usual = entry.options_with()
        return {knob.name: usual[knob.name] for knob in entry.options}

    @property
    def techniques(self) -> dict[str, dict[str, object]]:
        """Techniques for it, with their knobs' defaults."""
        entry = catalogue.entry(self.info.id)
        return {
            one.name: {knob.name: knob.default for knob in one.knobs}
            for one in applying_to(self.info.family, entry.options, entry.mel_flow)
        }

    def setting(
        self,
        options: Knobs | None = None,
        techniques: Techniques | None = None,
        seed: int = 0,
        as_published: bool | str = False,
    ) -> Setting:
        """A checked setting of this model, without missing artefacts. ``as_published``: as in :meth:`speak`."""
        return self._setting(options, techniques, seed, as_published)[0]

    def speak(
        self,
        text: str,
        voice: str | Path | Voice = "",
        *,
        transcript: str = "",
        options: Knobs | None = None,
        techniques: Techniques | None = None,
        seed: int = 0,
        as_published: bool | str = False,
        profile: Profile | str | Path | None = None,
        repeat: int = 0,
    ) -> Speech:
        """Speak ``text``: the same samples as in the window and from ``paretone speak`` under the same setting.

        A technique that needs calibration is calibrated on the text itself, once for all texts under the same setting;
        see :meth:`calibrate`. ``as_published`` takes missing knobs and options from the papers: ``True`` for their main
        settings, or the name of another, such as ``"T2"``; see :attr:`Speech.published`. A ``profile``, or its file,
        replaces ``options``, ``techniques`` and ``seed``.
        ``repeat``: number of further runs for timing; the times are then medians. After an error or an interrupt in the
        middle of a text, :func:`paretone.finished_part` gives the finished passages.
        """
        require_words(text)
        if profile is not None:
            if options or techniques or seed or as_published:
                raise SettingError("A profile has its own options, techniques and seed; give either these or it.")
            used = profile if isinstance(profile, Profile) else Profile.load(str(profile))
            used.check(self.info)
            setting, artefacts = used.setting, used.artefacts
            speaker = self._voice(voice, transcript) if voice else used.voice(self._folder)
        else:
            speaker = self._voice(voice, transcript)
            setting, artefacts = self._prepared(text, speaker, *self._setting(options, techniques, seed, as_published))
        made = self._desk.carry_out(commands.Synthesise(JOB, text, speaker, setting, artefacts))
        speech = Speech(made.take, self, speaker, artefacts)
        return speech.time_again(repeat) if repeat else speech

    def calibrate(
        self,
        name: str,
        texts: str | Iterable[str],
        voice: str | Path | Voice = "",
        *,
        transcript: str = "",
        options: Knobs | None = None,
        techniques: Techniques | None = None,
        seed: int = 0,
        as_published: bool | str = False,
        **knobs: object,
    ) -> Calibrated:
        """Calibrate the technique ``name`` with its ``knobs`` on ``texts``; returns a value for ``techniques``. The
        argument ``techniques``: others in use during calibration; ``as_published``: as in :meth:`speak`.

        >>> table = model.calibrate("ditreducio", ["Rice.", "Milk."], threshold=0.2)
        >>> model.speak("Good morning.", techniques={"ditreducio": table})
        """
        texts = _listed(texts)
        for text in texts or ("",):
            require_words(text)
        declared = technique(name)
        if declared.prepared_by != "calibration":
            raise SettingError(f"{declared.title} is not calibrated; use it as it is, or train what it needs.")
        speaker = self._voice(voice, transcript)
        setting, _ = self._setting(options, {**(techniques or {}), name: knobs}, seed, as_published)
        artefact = self._desk.calibrate(name, [Utterance(text, speaker) for text in texts], setting)
        used = setting.technique(name)
        assert used is not None
        return Calibrated(UsedTechnique(name, used.knobs, artefact.fingerprint), artefact)

    def sweep(
        self,
        texts: str | Path | Iterable[str] = (),
        voices: str | Iterable[str | Mapping[str, str]] = (),
        *,
        manifest: str | Path = "",
        manifest_audio: str | Path = "",
        count: int = 0,
        options: Knobs | None = None,
        techniques: Mapping[str, object] | None = None,
        seeds: Iterable[int] = (0,),
        as_published: str | Iterable[str] = (),
        rounds: int = 1,
        judges: str | Iterable[str] = (),
        calibration: str | Iterable[str] = (),
        title: str = "Sweep",
        folder: str | Path | None = None,
    ) -> Rows:
        """Speak ``texts`` (a list, or ``"harvard"``, ``"unseen"``, ``"demo"`` or a file) under every combination of
        values: lists in ``options`` and ``techniques`` vary, with ``"off"`` for without the technique. The baseline
        (the same without techniques) is always included. ``as_published``: settings of the papers by name, such as
        ``("T1", "T2")``, in addition, with the papers' sampler options in place of ``options``.

        ``manifest``, in place of ``texts`` and ``voices``: the list of an evaluation set. ``manifest_audio``: the
        folder of LibriSpeech's recordings, for its list. ``count``: only the first texts.

        ``judges`` are ``words``, ``naturalness``, ``voice`` and so on; ``rounds`` repeats the timing. This is a study:
        see ``resources/docs/studies.md`` for the measurements. With ``folder``, its file and results are stored there
        for the window and ``paretone study``, and the same call continues; otherwise they are removed with the rows.
        """
        spoken = texts if isinstance(texts, str | Path) else _listed(texts)
        if not (spoken or manifest):
            raise SettingError("There is nothing to speak; give texts, or the list of an evaluation set as manifest.")
        loaded = self._desk.loaded
        definition: dict[str, Any] = {
            "title": title,
            "model": self.info.id,
            "folder": _absolute(self._folder),
            "variant": loaded.variant,
            "vocoder": _absolute(loaded.vocoder),
            "device": loaded.device,
            "sentences": spoken if isinstance(spoken, list) or spoken in SENTENCES else _absolute(spoken),
            "voices": _listed(voices),
            "manifest": _absolute(manifest),
            "manifest_audio": _absolute(manifest_audio),
            "count": count or "",
            "seeds": _listed(seeds),
            "rounds": rounds,
            "judges": _listed(judges),
            "calibration": _listed(calibration),
            **_varied(options or {}, techniques or {}),
        }
        if named := _listed(as_published):
            definition["setting"] = [{"as": one} for one in named]
        owner = tempfile.TemporaryDirectory(prefix="paretone-sweep-") if folder is None else None
        file = output.folder(owner.name if owner is not None else str(folder)) / "sweep.json"
        content = {name: value for name, value in definition.items() if value not in ("", [])}
        files.write(file, json.dumps(content, ensure_ascii=False, indent=1, default=_refuse).encode())
        try:
            rows = self._desk.study(file)
        except StudyError as error:
            raise StudyError(str(error).removeprefix(f"{file}: ")) from error
        rows.owner = owner
        return rows

    def study(self, file: str | Path, folder: str | Path = "") -> Rows:
        """Run the remaining tasks of the study in ``file``, on this model if it is its own: :func:`run_study`."""
        return self._desk.study(file, folder)

    def view(
        self,
        name: str,
        text: str = "",
        voice: str | Path | Voice = "",
        *,
        transcript: str = "",
        options: Knobs | None = None,
        techniques: Techniques | None = None,
        seed: int = 0,
        **knobs: object,
    ) -> Figure:
        """Compute the view ``name`` (listed by ``paretone view --help``) with its own ``knobs``, on a sample sentence
        unless ``text`` is given. ``techniques``: the technique's knobs for ``rule="chosen"``.

        >>> model.view("attention-maps", layer=5, step=1).to_csv()
        """
        setting, _ = self._setting(options, techniques, seed)
        said, speaker = text or catalogue.sentences()[0], self._voice(voice, transcript)
        require_words(said)
        command = commands.ComputeView(JOB, name, Utterance(said, speaker), setting, Values(knobs))
        return self._desk.carry_out(command).figure

    def roofline(
        self,
        text: str = "",
        voice: str | Path | Voice = "",
        *,
        transcript: str = "",
        options: Knobs | None = None,
        techniques: Techniques | None = None,
        seed: int = 0,
        as_published: bool | str = False,
        card: str = "",
        rounds: Count = commands.MeasureRoofline.rounds,
    ) -> RooflineReport:
        """Time of each component against the least time that this machine needs for it; with a ``card``, such as
        ``"h100"``, the least times there, on paper.

        >>> model.roofline(card="h100").to_json()
        """
        said, speaker = text or catalogue.sentences()[0], self._voice(voice, transcript)
        require_words(said)
        setting, artefacts = self._prepared(said, speaker, *self._setting(options, techniques, seed, as_published))
        measure = commands.MeasureRoofline(JOB, Utterance(said, speaker), setting, artefacts, rounds=rounds, card=card)
        return self._desk.carry_out(measure).report

    def prepare(self, name: str, job: str = "", **values: object) -> Any:
        """Carry out a ``job`` of the technique ``name``, such as its training; by default its only one. ``values``:
        fields of its request (see its class in ``paretone.techniques``); model, folder and device are the loaded ones.
        New weights are then available to the model.

        >>> model.prepare("guidance_free", weight=0.67, work="runs/guidance-free", minutes=5)
        """
        declared = technique(name)
        if not declared.jobs:
            raise SettingError(f"{declared.title} prepares nothing; use it as it is.")
        found = [one for one in declared.jobs if job in ("", one.name)]
        if len(found) != 1:
            said = f"has no job named {shown(job)}" if job else "has several jobs"
            raise SettingError(f"{declared.title} {said}; {meant(job, [one.name for one in declared.jobs], 'it has')}")
        kind = imported(found[0].request)
        known = {one.name: one.default is MISSING and one.default_factory is MISSING for one in fields(kind)}
        if unknown := sorted(set(values) - set(known)):
            instead = meant(unknown[0], known, "it takes")
            raise SettingError(f"{declared.title}: {found[0].name} takes no {shown(unknown[0])}; {instead}")
        here = {name: getattr(self._desk.loaded, name) for name in ("model", "folder", "variant", "vocoder", "device")}
        given = {**{name: value for name, value in here.items() if name in known}, **values}
        if lacking := [one for one, required in known.items() if required and one not in given]:
            raise SettingError(f"{declared.title}: {found[0].name} also needs {', '.join(lacking)}.")
        of_fields = get_type_hints(kind)
        with placed(SettingError, f"{declared.title}: {found[0].name}"):
            require_usual_numbers(given, SettingError)
            for field, one in given.items():
                if isinstance(one, Path):
                    given[field] = str(one)
                elif get_origin(of_fields[field]) is tuple and (isinstance(one, str) or _is_list(one)):
                    given[field] = tuple(_listed(one))
                require_kind(field, given[field], of_fields[field])
        return self._desk.carry_out(commands.Prepare(JOB, name, kind(**given))).result

    def export(self, profile: Profile | str | Path, target: str, folder: str | Path) -> tuple[Path, ...]:
        """Write ``profile``, or its file, into ``folder`` in the form of another program's ``target`` (listed by
        ``paretone export --help``); returns the files."""
        given = profile if isinstance(profile, Profile) else Profile.load(str(profile))
        written = self._desk.carry_out(commands.ExportProfile(JOB, given, target, str(folder), self._folder))
        return tuple(Path(str(folder)) / name for name in written.files)

    def cancel(self) -> None:
        """End the running call within a step; for another thread."""
        self._desk.terminal.cancelled.set()

    def __repr__(self) -> str:
        return f"<{self.info.title} on {self.info.device}>"

    @property
    def _folder(self) -> str:
        return self._desk.loaded.folder

    def _voice(self, voice: str | Path | Voice, transcript: str) -> Voice:
        if isinstance(voice, Voice):
            return voice
        return catalogue.voice_or_recording(str(voice), transcript, self.info.id, self._folder)

    def _setting(
        self, options: Knobs | None, techniques: Techniques | None, seed: int, as_published: bool | str = False
    ) -> tuple[Setting, tuple[Artefact, ...]]:
        entry, model = catalogue.entry(self.info.id), self._desk.model
        named, used = PUBLISHED if as_published is True else as_published, dict(techniques or {})
        published = chosen(entry.id, named, used) if named else {}
        used = used or {one: {} for one in published}
        values = entry.options_with(**{**options_of(published), **(options or {})})
        setting = Setting(entry.id, checked(entry.options, values, entry.title), seed=checked_seed(seed))
        artefacts: tuple[Artefact, ...] = ()
        for name, given in used.items():
            if isinstance(given, Calibrated):
                setting, artefacts = setting.with_technique(given.used), (*artefacts, given.artefact)
                continue
            own = published[name].knobs if name in published else {}
            knobs = {**own, **given}
            declared = technique(name)
            file = declared.artefact_file
            if file is not None and file.option in knobs:
                setting, found = with_file(setting, model, file.option, str(knobs.pop(file.option)), knobs)
                artefacts = (*artefacts, *found)
                continue
            setting = setting.with_technique(used_technique(declared, knobs))
        kept = {one.fingerprint for one in artefacts}
        trained = [one for one in setting.techniques if one.artefact not in kept]
        weighed = with_weights(Setting(entry.id, setting.options, tuple(trained)), self.info)
        for one in weighed.techniques:
            setting = setting.with_technique(one)
        return setting, artefacts

    def _prepared(
        self, text: str, voice: Voice, setting: Setting, artefacts: tuple[Artefact, ...]
    ) -> tuple[Setting, tuple[Artefact, ...]]:
        """The setting with missing artefacts calibrated, once for all texts."""
        while lacking := (candidate := Candidate(setting, origin="")).unprepared:
            key = setting.bare.fingerprint + lacking
            if key not in self._calibrated:
                self._calibrated[key] = self._desk.calibrate(lacking, [Utterance(text, voice)], setting)
            artefact = self._calibrated[key]
            setting = seeded(candidate, setting.seed, artefact.fingerprint)
            artefacts = (*artefacts, artefact)
        return setting, artefacts


@typed
@dataclass(frozen=True, eq=False)
class Speech:
    """A take from :meth:`Model.speak`, playable in a notebook."""

    take: Take
    model: Model
    voice: Voice
    artefacts: tuple[Artefact, ...] = ()

    @property
    def samples(self) -> np.ndarray:
        """(n,) float32 mono."""
        return self.take.samples

    @property
    def sample_rate(self) -> int:
        """Sample rate in Hz."""
        return self.take.sample_rate

    @property
    def seconds(self) -> float:
        return self.take.seconds

    @property
    def setting(self) -> Setting:
        return self.take.setting

    @property
    def repeats(self) -> tuple[Measurements, ...]:
        """Each run, if it was timed again: see :func:`paretone.spread`."""
        return self.take.repeats

    @property
    def measurements(self) -> Measurements:
        return self.take.measurements

    @property
    def real_time_factor(self) -> float:
        """Wall seconds per second of audio."""
        return self.measurements.real_time_factor

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the take, in sentences."""
        return self.take.notes

    @property
    def published(self) -> tuple[str, ...]:
        """Sentences on what its techniques have otherwise than their papers."""
        return tuple(one.sentence for one in comparisons(self.setting))

    def save(self, path: str | Path) -> None:
        """Write the audio in the format of the suffix. WAV files hold exactly the samples."""
        for remark in write_sound(Path(path), self.samples, self.sample_rate):
            warnings.warn(remark, stacklevel=2)

    def profile(self, baseline: Speech | None = None) -> Profile:
        """Setting, artefacts and measurements, for use elsewhere; with a ``baseline``, also the speed-up."""
        evidence = Evidence.of(self.take, None if baseline is None else baseline.take)
        return Profile.of(self.setting, self.model.info, self.artefacts, evidence)

    @cached_property
    def checked(self) -> Checked:
        """Faults of the take, with their places, and the checks that could not be made.

        >>> [one.sentence for one in speech.checked.findings]
        """
        return checked_for_faults(speech_of(self.take, self.take.text, self.voice))

    def judge(self) -> dict[str, float]:
        """Naturalness, similarity to the voice and pitch range, by the installed judges."""
        command = commands.JudgeTake(JOB, self.take.id, self.samples, self.sample_rate, str(self.voice.audio))
        return dict(self.model._desk.carry_out(command).figures)

    def first_codebooks(self, count: Count) -> np.ndarray:
        """(n,) float32 mono: what the first ``count`` codebooks of a masked model alone sound like."""
        if self.take.trace.demasking is None:
            raise SettingError(f"{self.model.info.title} has no codebooks; load a masked model.")
        return first_codebooks(self.take, count, self.voice, self.model._desk)

    def time_again(self, times: Count = commands.REPEATS) -> Speech:
        """The same speech timed again: its times are medians of all :attr:`repeats`."""
        again = commands.TimeAgain(
            JOB, self.take.text, self.voice, self.setting, self.artefacts, take=self.take.id, times=times
        )
        return replace(self, take=repeated(self.take, self.model._desk.carry_out(again).runs))

    def __repr__(self) -> str:
        return f"<{self.seconds:.2f} s of speech, RTF {self.real_time_factor:.3f}>"

    def _repr_html_(self) -> str:
        data = base64.b64encode(encoded(np.clip(self.samples, -1, 1), self.sample_rate, "WAV", "PCM_16")).decode()
        return f'{escape(repr(self)[1:-1])}<br><audio controls src="data:audio/wav;base64,{data}"></audio>'


@typed
class Rows(Sequence[dict[str, Any]]):
    """Results of a sweep or study: one row per setting, the baseline first, with every figure and its 95 % interval.
    Columns are those of ``results.csv``, such as ``setting``, ``speed_up``, ``speed_up_low``, ``speed_up_high`` and
    ``speed_up_n`` (takes), and the varied knobs, such as ``ditreducio.threshold`` and ``options.steps``."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.owner: object = None
        """Keeps a temporary folder alive."""
        knobs = _varied_knobs(results)
        self._rows = [row | varied for row, varied in zip(rows_of_settings(results), knobs, strict=True)]
        self._about = {
            one.key: {"setting": row["setting"]} | varied
            for one, row, varied in zip(results.settings, self._rows, knobs, strict=True)
        }

    @property
    def folder(self) -> Path:
        """Folder of the results, which the window and ``paretone study`` open."""
        return self.results.folder

    @property
    def takes(self) -> list[dict[str, Any]]:
        """One row per finished take, as in ``takes.csv``; ``audio`` is its file."""
        return [
            row
            | self._about[str(row["setting"])]
            | {"audio": str(self.folder / str(row["audio"])) if row["audio"] else ""}
            for row in rows_of_takes(self.results)
        ]

    @property
    def problems(self) -> tuple[str, ...]:
        """Reasons of failed settings and takes, without duplicates."""
        failed = [one.problem for one in self.results.settings if one.problem]
        return tuple(dict.fromkeys([*failed, *self.results.failures]))

    def front(self, *figures: str) -> list[dict[str, Any]]:
        """Rows on the Pareto front of ``figures``, such as ``"speed_up", "naturalness"``."""
        best = self.results.front(figures or ("speed_up",))
        return [row for row in self._rows if row["key"] in best]

    def to_pandas(self, takes: bool = False) -> pandas.DataFrame:
        """The rows, or those of the ``takes``, as a data frame. Needs pandas."""
        with needing(PlainError, "pandas is not installed; run: pip install pandas"):
            import pandas
        return pandas.DataFrame(self.takes if takes else self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{self.results.title}: {len(self)} settings in {self.folder}>"


def _varied(options: Knobs, techniques: Mapping[str, Any]) -> dict[str, Any]:
    fixed = {name: one for name, one in options.items() if not _is_list(one)}
    grid: dict[str, list[Any]] = {name: _listed(one) for name, one in options.items() if _is_list(one)}
    for name, given in techniques.items():
        if isinstance(given, Calibrated):
            raise SettingError(f"{name}: a sweep calibrates by itself; give its knobs, and the texts as calibration.")
        if _is_list(given):
            grid[f"{name}.used"] = list(given)
            continue
        require_kind(f"techniques[{name!r}]", given, Knobs)
        grid |= {f"{name}.{knob}": list(one) if _is_list(one) else [one] for knob, one in given.items()}
        if not given:
            grid[f"{name}.used"] = ["on"]
    return {"options": fixed, **({"grid": grid} if grid else {"setting": [{"name": "baseline"}]})}


def _varied_knobs(results: Results) -> list[dict[str, object]]:
    """Varied options and knobs of each setting, by their names in a study's grid; ``None`` without the technique."""
    found = []
    for one in results.settings:
        knobs: dict[str, object] = {f"options.{name}": value for name, value in one.setting.options.items()}
        for used in one.setting.techniques:
            knobs |= {f"{used.technique}.{name}": value for name, value in used.knobs.items()}
        found.append(knobs)
    names = dict.fromkeys(name for knobs in found for name in knobs)
    varied = [name for name in names if len({repr(knobs[name]) for knobs in found if name in knobs}) > 1]
    return [{name: knobs.get(name) for name in varied} for knobs in found]


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _listed(given: Any) -> list[Any]:
    """``given`` as a list, of one if it is a text."""
    return [given] if given and isinstance(given, str) else [*given]


def _absolute(path: str | Path) -> str:
    return str(path) and str(Path(str(path)).absolute())


def _refuse(value: Any) -> object:
    """``value`` as a JSON value, for numbers of numpy. Raises :class:`SettingError` for others."""
    if hasattr(value, "item"):
        return value.item()
    raise SettingError(f"a sweep takes numbers, texts and lists, not {shown(value)}.")
