"""Which engine the window talks to. Hosts are kept in the settings; the last engine is used again at the next start."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMenu
from shiboken6 import isValid

from paretone.errors import Cancelled, PlainError
from paretone.extras import require_serving
from paretone.models.base import Voice
from paretone.remote import INSTALL, START, TAKE_OVER
from paretone.session.events import EngineReady, Event, ModelDownloaded, ModelLoaded
from paretone_app.engines.dialogs import PYTHON, HostDialog, InstallDialog
from paretone_app.features.presenter import Presenter, Services, listed_in
from paretone_app.shell.bridge import Background, arrived
from paretone_app.widgets import build

if TYPE_CHECKING:
    from paretone.remote.client import Line, RemoteEngine
    from paretone.session.engine_thread import EngineThread
    from paretone_app.shell.window import MainWindow
    from paretone_app.widgets.action import Action

_HOSTS, _CURRENT = "engines/hosts", "engines/current"
_AGAIN, _HERE = "Try again", "This machine"


class EnginesPresenter(Presenter):
    _told = Signal(object)
    """A line's state, from the engine's thread."""
    _said = Signal(str, float)
    """A step of an installation, and the share that is done."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._settings, self._folder, self._status = services.settings, services.folder, services.status
        kept = (one.split("\t") for one in listed_in(self._settings, _HOSTS))
        self.known = {one[0]: (one[1], one[2]) for one in kept if len(one) == 3}
        """Start command and Python of each host, by its name for ssh."""
        self._hosts: dict[str, Action] = {}
        self._menu: QMenu | None = None
        self.engine: RemoteEngine | None = None
        self._broken = False
        """Whether the user was told of the line that is broken now."""
        self._background = Background("host", self)
        self._installer = Background("install", self)
        actions = self._actions
        actions.bind(actions["this_machine"], self.use_this_machine, self._why_not)
        actions.bind(actions["add_host"], self._ask_for_host, self._why_not)
        actions.bind(actions["forget_host"], self.forget, lambda: "" if self.engine else "This machine is in use.")
        self._told.connect(self._follow_line, Qt.ConnectionType.QueuedConnection)
        last = str(self._settings.value(_CURRENT, ""))
        if last in self.known:
            with suppress(PlainError):  # Without the packages for it, this machine computes.
                self.use(last)

    # --- Hosts --------------------------------------------------------------------------------------------------------
    def panels_built(self) -> None:
        self._menu = next(one for one in self._window.menuBar().findChildren(QMenu) if one.title() == "&Engine")
        self.refresh()

    def refresh(self) -> None:
        """Check the entry of the engine in use. Each host has one; those forgotten are hidden."""
        host = self._state.machine.host
        self._actions["this_machine"].setChecked(not host)
        for name in self.known:
            if name not in self._hosts and (menu := self._menu) is not None:
                self._hosts[name] = action = self._actions.make(name, f"Compute on {name}", checkable=True)
                self._actions.bind(action, partial(self.use, name), self._why_not)
                there = menu.actions()
                # Before the separator above the other entries.
                menu.insertAction(there[there.index(self._actions["add_host"]) - 1], action)
        for name, action in self._hosts.items():
            action.setVisible(name in self.known)
            action.setChecked(name == host)

    def _why_not(self) -> str:
        return "Jobs run or wait on this engine: let them end, or cancel them (Queue)." if self._state.jobs.busy else ""

    def _ask_for_host(self) -> None:
        require_serving("An engine elsewhere")
        dialog = HostDialog(self._window)
        dialog.submitted.connect(self.add)
        build.show(dialog)

    def add(self, name: str, start: str = START, python: str = PYTHON) -> None:
        self.known[name] = start, python
        self._actions.attempt(lambda: self.use(name))

    def forget(self) -> None:
        del self.known[self._state.machine.host]
        self.use_this_machine()

    # --- Engines ------------------------------------------------------------------------------------------------------
    def use(self, name: str, take_over: bool = False) -> None:
        """Compute on the host ``name``. Raises :class:`PlainError`."""
        require_serving("An engine elsewhere")
        from paretone.remote.client import RemoteEngine
        from paretone.remote.ssh import SshHost, SshLink

        def make(post: Any) -> EngineThread:
            link = SshLink(SshHost(name, self.known[name][0]))
            self.engine = RemoteEngine(post, link, self._folder, self._told.emit, take_over=take_over)
            self._state.machine.ask = self.engine.ask
            return cast("EngineThread", self.engine)  # It has the same interface.

        self._switch(make, name)

    def use_this_machine(self) -> None:
        if self.engine is not None:
            self.engine = None
            self._state.machine.ask = None
            self._switch(None, "")
        self.refresh()

    def _switch(self, make: Any, name: str) -> None:
        self._settings.setValue(_HOSTS, json.dumps(["\t".join([one, *more]) for one, more in self.known.items()]))
        self._settings.setValue(_CURRENT, name)
        self._settings.sync()
        self._broken = False
        self._state.machine.lacking = {}
        # Bundled models are everywhere; the host says which others it has.
        self._state.selection.elsewhere = {} if name else None
        window = cast("MainWindow", self._window)
        self._state.machine.set_line(name)
        window.use_engine(make or window.make_own_engine)
        self.changed.emit()

    def _follow_line(self, line: Line) -> None:
        """Show the line's state; say once that it broke, and that it is back."""
        if self.engine is None or line is not self.engine.line:
            return
        machine = self._state.machine
        machine.set_line(line.host, line.connected, line.round_trip)
        if line.sentence:
            self._status.say(line.sentence)
        if line.lost:
            choices = tuple(filter(None, (line.remedy or _AGAIN, _HERE)))
            self._notices.ask(line.sentence, choices, partial(self._remedy, line.host), "error")
        elif not line.connected and "broke" in line.sentence and not self._broken:
            self._broken = True
            self._notices.warn(f"{line.host}: {line.sentence}")
        elif line.connected and self._broken:
            self._broken = False
            self._notices.note(f"The line to {line.host} is back.")
            self._status.say(f"The line to {line.host} is back.")

    def _remedy(self, host: str, choice: str) -> None:
        if choice == _HERE:
            self.use_this_machine()
        elif choice == INSTALL:
            self.install(host)
        else:
            self._actions.attempt(lambda: self.use(host, take_over=choice == TAKE_OVER))

    def install(self, host: str) -> None:
        """Install Paretone on the host with its Python, then use it; closing the dialog cancels."""
        from paretone.remote.ssh import SshHost, install
        from paretone.serving import watched

        start, python = self.known[host]
        dialog = InstallDialog(self._window, host)
        self._said.connect(dialog.tell, Qt.ConnectionType.QueuedConnection)

        def work() -> str:
            installing = install(SshHost(host, start), self._said.emit, python)
            return asyncio.run(watched(installing, self._installer.check))

        def done(found: str | BaseException) -> None:
            if isValid(dialog):
                dialog.close()
            if isinstance(found, Cancelled):
                self._status.say(f"Nothing was installed on {host}.")
            elif arrived(found, partial(self._notices.say, level="error")):
                # After what stands before it, such as a scheduler's command.
                self.add(host, start.replace(START, found) if START in start else found, python)

        dialog.rejected.connect(self._installer.cancel)
        build.show(dialog)
        self._installer.run(work, done)

    def follow(self, event: Event) -> None:
        if self.engine is None:
            return
        chosen = self._state.selection
        if isinstance(event, EngineReady | ModelDownloaded):
            self._ask("models", "", partial(setattr, chosen, "elsewhere"))
            self._ask("lacking", "", partial(setattr, self._state.machine, "lacking"))
        elif isinstance(event, ModelLoaded) and chosen.entry.voices.in_folder:
            place = chosen.model_id, chosen.model_folder
            offer = lambda found: chosen.note_voices(*place, [Voice(*one) for one in found])  # noqa: E731
            self._ask("voices", "\n".join(place), offer)

    def _ask(self, what: str, text: str, use: Callable[[Any], object]) -> None:
        engine = self.engine
        assert engine is not None

        def done(found: Any) -> None:
            if engine is self.engine and not isinstance(found, BaseException):
                use(found)
                self.changed.emit()

        self._background.run(engine.ask(what, text).result, done)

    def shut_down(self) -> None:
        self._installer.shut_down(wait=False)
        self._background.shut_down(wait=False)
