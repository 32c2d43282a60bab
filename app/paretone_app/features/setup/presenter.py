"""The setup presenter: model, device, voice, text and knobs; loading, downloading, and the questions that arise."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QInputDialog, QMessageBox
from shiboken6 import isValid

from paretone.errors import PlainError
from paretone.models import catalogue
from paretone.session.commands import DownloadModel, LoadModel
from paretone.session.events import Event, JobFailed
from paretone.setting.knobs import Choice, Knob
from paretone.techniques import problems
from paretone.techniques.base import GROUPS, Technique
from paretone.techniques.published import offered
from paretone_app.features.palette import Palette
from paretone_app.features.presenter import Presenter, Services
from paretone_app.features.setup.cards import fit_words, gain_details, gain_words
from paretone_app.features.setup.choices import CHECKPOINT_FOLDER, VOCODER_FOLDER
from paretone_app.features.setup.panel import SetupPanel
from paretone_app.features.training.presenter import TrainingPresenter
from paretone_app.numbers import fixed
from paretone_app.shell.bridge import Background
from paretone_app.shell.entries import Findable
from paretone_app.shell.notices import Level
from paretone_app.state.availability import Fit
from paretone_app.state.differences import value_text
from paretone_app.state.jobs import Job, Kind, Outcome
from paretone_app.widgets import build

COLUMNS = "Technique", "What it gains", "Here", "Measured here", "Paper"
CHOOSE_FOLDER, LOAD_AGAIN = "Choose folder…", "Load again"


class SetupPresenter(Presenter):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._settings = services.settings
        self._candidates: tuple[str, ...] = ()  # Possible architectures of the checkpoint that failed to load.
        self._files: tuple[str, ...] = ()  # Weight files in the folder that failed to load, the newest first.
        add, selection = services.actions.add, services.state.selection
        can = {
            "load": add("Lo&ad", self._load_shown, "Load the model"),
            "keep": add("&Keep", lambda: selection.consider_model(selection.model_id)),
            "choose_folder": add(
                "F&older…",
                lambda: self._ask_where_from(CHECKPOINT_FOLDER, self.load),
                "Load this model's official checkpoint from a folder",
            ),
            "choose_vocoder": add("Vocoder…", lambda: self._ask_where_from(VOCODER_FOLDER, self.load_vocoder)),
            "usual_vocoder": add("Usual vocoder", lambda: self.load_vocoder(self._shown, "")),
            "download": add(
                "Dow&nload…",
                lambda: self._ask_to_download(self._shown),
                "Show the licence, then download the official checkpoint",
            ),
            "add_technique": services.actions["add_technique"],
        }
        self.setup = SetupPanel(services.state, services.theme.colours, can, waits=True)
        self.setup.problem.connect(services.notices.warn)
        self.setup.techniques.training_wanted.connect(
            lambda name, knobs: services.features.find(TrainingPresenter).propose(name, **knobs)
        )
        services.workspaces.put("setup", self.setup)
        actions = services.actions
        actions.about_to_run.connect(self.setup.commit)
        actions.bind(actions["add_technique"], self._ask_for_technique)
        actions.bind(actions.reload, self._state.loading.reload)
        actions.model_wanted.connect(self.choose_model)
        actions.device_wanted.connect(self._state.loading.reload)

    def engine_starts(self) -> None:
        """Report the first plug-in left out, with its reason, and why the last model is not chosen."""
        self.setup.as_spoken.waits = False
        self.setup.as_spoken.show_text()
        found = problems()
        others = f" {len(found) - 1} more: Help › Check installation… lists them." if len(found) > 1 else ""
        if found:
            self._notices.warn(f"{found[0]}{others}")
        if (left := self._state.selection.not_recalled) is not None:
            sentence = f"{left.why}; {self._state.selection.entry.title} is loaded instead."
            if left.is_there:
                self._notices.ask(sentence, (LOAD_AGAIN,), lambda _: self.load(left.model))
            else:
                self._offer_folder(sentence, left.model)

    @property
    def _shown(self) -> str:
        return self._state.selection.candidate or self._state.selection.model_id

    def choose_model(self, model: str) -> None:
        """Load ``model``, or show in Setup what it lacks."""
        self._state.selection.consider_model(model)
        self._load_shown()

    def _load_shown(self) -> None:
        chosen = self._state.selection
        if chosen.is_installed(self._shown) and (chosen.candidate or not chosen.ready):
            self.load(self._shown)

    def _ask_where_from(self, title: str, use: Callable[[str, str], None]) -> None:
        model = self._shown
        self._ask_for_folder(title, lambda folder: use(model, str(folder)), True)

    def load(self, model: str, folder: str = "") -> None:
        """Load ``model`` from ``folder``, or from its last place."""
        self._state.loading.load_model(model, *((folder, "") if folder else self._state.selection.place(model)))

    def load_vocoder(self, model: str, vocoder: str) -> None:
        """As :meth:`load`, from its last place, with the vocoder in a folder (``""``: the usual one)."""
        self._state.loading.load_model(model, *self._state.selection.place(model), vocoder=vocoder)

    def _offer_folder(self, sentence: str, model: str) -> None:
        self._notices.ask(
            sentence,
            (CHOOSE_FOLDER,),
            lambda _: self._ask_for_folder(CHECKPOINT_FOLDER, lambda folder: self.load(model, str(folder)), True),
        )

    def findable(self) -> Iterator[Findable]:
        chosen, edit = self._state.selection, self._state.editing
        for model in catalogue.models():
            load = partial(self._actions.model_wanted.emit, model.id)
            yield Findable(model.title, "Model", model.family, model.summary, load)
        for voice in chosen.voices:
            meaning = f"Speak in the voice {voice.title}."
            yield Findable(voice.title, "Voice", "", meaning, partial(edit.choose_voice, voice.id))
        for knob in chosen.entry.options:
            yield self._setting(knob, chosen.options.get(knob.name, knob.default))
        yield from self._techniques()
        for one in chosen.techniques:
            for published in offered(one, chosen.entry.options):
                adopt = partial(edit.use_published, one.name, published)
                why_not = self._why_impossible(one)
                yield Findable(f"{one.title}: {published.name}", "As published", "", published.source, adopt, why_not)
            for knob in one.knobs if chosen.is_used(one.name) else ():
                yield self._setting(knob, chosen.knobs(one.name)[knob.name], one.title, one.name)

    def _techniques(self) -> Iterator[Findable]:
        """All that the model's family has, by group."""
        state = self._state
        for one in sorted(state.selection.techniques, key=lambda one: list(GROUPS).index(one.listed_in)):
            used, gain = state.selection.is_used(one.name), state.gains.of(one.name)
            fit = state.availability.applicability(one.name)
            title = one.title.partition(" (")[0]
            here = "In use" if used else fit_words(state, one, fit)
            paper = f"{one.paper.title}, {one.paper.reference}"
            meaning = " ".join(filter(None, (one.summary, fit.why, gain_details(gain), f"{paper}.")))
            cells = one.benefit or one.summary, here, gain_words(gain) if gain else "", one.paper.reference
            values = [value for knob in one.knobs if isinstance(knob, Choice) for value in knob.values]
            more = " ".join((one.title, one.paper.title, one.paper.reference, one.benefit, *values))
            use, detail = partial(self._use, one.name), "in use" if used else ""
            why_not = self._why_impossible(one)
            yield Findable(title, "Technique", detail, meaning, use, why_not, more, one.listed_in, cells)

    def _why_impossible(self, one: Technique) -> str:
        fit = self._state.availability.applicability(one.name)
        return fit.why if fit.fit is Fit.IMPOSSIBLE and not self._state.selection.is_used(one.name) else ""

    def _ask_for_technique(self) -> None:
        what = "techniques by name, benefit or paper"
        found = Palette("Add technique", what, self._techniques, self._settings, self._window, COLUMNS)
        self._state.selection.model_changed.connect(found.renew)
        build.show(found)

    def _setting(self, knob: Knob, value: object, owner: str = "", technique: str = "") -> Findable:
        detail = " · ".join(filter(None, (owner, value_text(knob, value))))
        go = partial(self._reveal, technique, knob.name)
        return Findable(knob.label, "Setting", detail, knob.meaning, go, more=owner)

    def _use(self, technique: str) -> None:
        """Switch the technique on, and show its card."""
        if not self._state.selection.is_used(technique):
            self._state.editing.switch(technique, True)
        self._reveal(technique)

    def _reveal(self, technique: str, knob: str = "") -> None:
        self._workspaces.go_to("setup")
        self.setup.reveal(technique, knob)

    def shut_down(self) -> None:
        self.setup.voice_choice.shut_down()

    def follow(self, event: Event) -> None:
        """Note the architectures and files to choose from after a failed load."""
        if isinstance(event, JobFailed):
            self._candidates, self._files = event.candidates, event.files

    def _choose_file(self, command: LoadModel, files: tuple[str, ...]) -> None:
        names = {Path(file).name: file for file in files}
        dialog = QInputDialog(self._window)
        dialog.setWindowTitle("Choose a checkpoint")
        dialog.setLabelText("Checkpoints, the newest first:")
        dialog.setComboBoxItems(list(names))
        dialog.setOption(QInputDialog.InputDialogOption.UseListViewForComboBoxItems)
        dialog.setOkButtonText("Load")
        load = self._state.loading.load_model
        dialog.textValueSelected.connect(
            lambda name: load(command.model, names[name], command.variant, command.device, command.vocoder)
        )
        build.show(dialog)

    def job_ended(self, job: Job, outcome: Outcome, sentence: str) -> None:
        command = job.command
        if isinstance(command, LoadModel) and outcome is Outcome.FAILED and not job.serves:
            self._tell_failure(command, sentence)
        if job.kind is Kind.DOWNLOAD and isinstance(command, DownloadModel) and outcome is Outcome.FINISHED:
            self._state.loading.load_model(command.model)

    def _tell_failure(self, command: LoadModel, sentence: str) -> None:
        """Say why a model was not loaded, and keep the window usable: with the last model, or a bundled one."""
        chosen, usual = self._state.selection, catalogue.models()[0]
        kept, load = chosen.info, self._state.loading.load_model
        if files := self._files:
            self._notices.ask(sentence, ("Choose a file…",), lambda _: self._choose_file(command, files))
        elif self._candidates:
            self._notices.ask(
                sentence,
                self._candidates,
                lambda variant: load(command.model, command.folder, variant, command.device, command.vocoder),
            )
        elif kept is not None:
            self._notices.say(f"{sentence} {kept.title} stays loaded.", "error")
        elif chosen.loading:
            self._notices.note(sentence, Level.WARNING)
        if kept is not None or chosen.loading:
            return
        if command.device not in ("auto", "", *self._state.machine.devices):
            self._notices.say(f"{sentence} {chosen.entry.title} runs on the best device there is.", "warning")
            load(command.model, command.folder, command.variant, "auto", command.vocoder)
        elif (command.model, command.folder) != (usual.id, ""):
            if not (self._candidates or self._files):
                self._offer_folder(f"{sentence} {usual.title} is loaded instead.", command.model)
            load(usual.id)
        else:
            self._notices.say(sentence, "error")

    def _ask_to_download(self, model: str) -> None:
        entry, machine = catalogue.entry(model), self._state.machine
        box = QMessageBox(self._window)
        box.setWindowTitle(f"Download {entry.title}")
        box.setText(f"The weights of {entry.title} are published under <b>{entry.licence}</b>.")
        question = f"Do you accept this licence and download them to {machine.host or entry.folder}?"
        box.setInformativeText(f"{question} Asking the server for the size…")
        box.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.Cancel)
        box.button(QMessageBox.StandardButton.Yes).setText("Accept and download")
        box.setDefaultButton(QMessageBox.StandardButton.Cancel)
        box.accepted.connect(lambda: self._state.loading.download_model(model, str(entry.folder)))
        build.show(box)

        def measured() -> tuple[int, int]:
            """Bytes of all files, and of those missing on the engine's machine."""
            from paretone.models.files.releases import extent

            if machine.ask is not None:
                total, missing = machine.ask("extent", model).result()
                return total, missing
            found = extent(entry.published, entry.folder, lambda: None)
            return found.total, found.missing

        def tell(found: tuple[int, int] | BaseException) -> None:
            if isValid(box):
                box.setInformativeText(f"{question} {size_text(found)}")

        sizes = Background("sizes", box)
        box.finished.connect(lambda: sizes.shut_down(wait=False))
        sizes.run(measured, tell)


def size_text(found: tuple[int, int] | BaseException) -> str:
    """The size of a download (bytes of all files, and of the missing ones), or why it is not known, as a sentence."""
    if isinstance(found, PlainError):
        return f"The size is not known: {found}"
    if isinstance(found, BaseException):
        raise found
    total, missing = found
    there = "" if missing == total else f"; {fixed((total - missing) / 1e9, 2)} GB of them are there already"
    return f"They are {fixed(total / 1e9, 2)} GB{there}."
