"""A screen reader's view of a window: what AT-SPI, the accessibility bus of Linux desktops, says of another process.

It reads roles, names, descriptions and texts, hears focus and announcements, and types on the display's keyboard, as
Orca and its listener do. Nothing here knows the window's code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from jeepney import DBusAddress, HeaderFields, MatchRule, Message, MessageType, new_method_call
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import DBusConnection, open_dbus_connection

PATIENCE_SECONDS = 120.0
"""When waiting is given up; never what is measured."""
_FAR = 80
"""Presses of Tab after which nothing more is to be found."""
_SERVICE = Path("/usr/share/dbus-1/services/org.a11y.Bus.service")
_ATSPI = "org.a11y.atspi."
_ACCESSIBLE = _ATSPI + "Accessible"
_ROOT = "/org/a11y/atspi/accessible/root"
_LABELLED_BY = 2
_STATES = {"checked": 4, "enabled": 8, "focusable": 11, "focused": 12, "selected": 23, "showing": 25, "visible": 30}
"""States that are asked for, and their bits."""
_EVENTS = (
    "announcement",
    "state-changed:checked",
    "state-changed:focused",
    "property-change:accessible-description",
    "property-change:accessible-name",
    "property-change:accessible-value",
)
_KEYS = {"Control": 37, "Shift": 50, "Alt": 64}
"""Key codes of modifiers on the keyboard that Xvfb has."""
_SYMBOLS = {
    **{"Backspace": 0xFF08, "Tab": 0xFF09, "Return": 0xFF0D, "Escape": 0xFF1B, "Home": 0xFF50, "End": 0xFF57},
    **{"Space": 0x20, "Left": 0xFF51, "Up": 0xFF52, "Right": 0xFF53, "Down": 0xFF54, "F6": 0xFFC3, "Delete": 0xFFFF},
}
_PRESS, _RELEASE, _TYPE = 0, 1, 3


class Gone(Exception):
    """What was asked about something that is no longer there, or cannot be asked."""


@dataclass(frozen=True)
class Heard:
    """One thing that a screen reader says."""

    kind: str
    """``announcement``; ``focus`` for what has it now; ``state`` or ``change`` for what became of that."""
    text: str


class ScreenReader:
    """Connected to the accessibility bus of the session at ``address``."""

    def __init__(self, address: str) -> None:
        with open_dbus_connection(address) as session:
            place = DBusAddress("/org/a11y/bus", "org.a11y.Bus", "org.a11y.Bus")
            self._bus = open_dbus_connection(_ask(session, place, "GetAddress")[0])
        self._events: deque[Message] = deque()
        rule = MatchRule(type="signal", interface=_ATSPI + "Event.Object")
        self._bus.send_and_get_reply(message_bus.AddMatch(rule))
        self._filter = self._bus.filter(rule, queue=self._events)
        registry = DBusAddress("/org/a11y/atspi/registry", _ATSPI + "Registry", _ATSPI + "Registry")
        for event in _EVENTS:
            _ask(self._bus, registry, "RegisterEvent", "s", (f"object:{event}",))
        self.heard: list[Heard] = []
        """Everything that was said, in order."""

    def close(self) -> None:
        self._filter.close()
        self._bus.close()

    def ask(self, owner: str, path: str, interface: str, method: str, signature: str = "", *body: object) -> tuple:
        return _ask(self._bus, DBusAddress(path, owner, interface), method, signature or None, body)

    def applications(self) -> list[Accessible]:
        return Accessible(self, _ATSPI + "Registry", _ROOT).children()

    # --- Hearing -----------------------------------------------------------------------------------------------------
    def listen(self) -> list[Heard]:
        """Take in what has happened; everything that was heard so far."""
        while True:
            try:
                self._bus.recv_messages(timeout=0.02)
            except TimeoutError:
                break
        while self._events:
            # What an event is about may be gone by now.
            with suppress(Gone):
                said = self._said(self._events.popleft())
                if said is not None:
                    self.heard.append(said)
        return self.heard

    def _said(self, event: Message) -> Heard | None:
        member, (detail, first, _second, value, *_) = event.header.fields[HeaderFields.member], event.body
        source = Accessible(self, event.header.fields[HeaderFields.sender], event.header.fields[HeaderFields.path])
        if member == "Announcement":
            return Heard("announcement", value[1])
        if member == "StateChanged" and detail == "focused" and first:
            return Heard("focus", source.spoken())
        if "focused" not in source.states:
            return None
        if member == "StateChanged":
            return Heard("state", f"{source.name}: {'' if first else 'not '}checked") if detail == "checked" else None
        return Heard("change", source.text if detail == "accessible-value" else str(value[1]))

    def wait(self, ready: Callable[[], object], what: str) -> None:
        """Wait until ``ready``; ``what`` says for what, if it never is."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not ready():
            assert time.monotonic() < end, f"{what}; heard: {[one.text for one in self.listen()]}"
            self.listen()

    def hear(self, keys: str, part: str, kind: str = "") -> str:
        """Press ``keys``, and wait until something (of a ``kind``) with ``part`` is said: that."""
        before = len(self.listen())
        self.press(keys)

        def found() -> list[str]:
            return [one.text for one in self.listen()[before:] if part in one.text and kind in one.kind]

        self.wait(found, f"“{part}” was not said after {keys}")
        return found()[0]

    def reach(self, part: str, key: str = "Tab") -> str:
        """Press ``key`` until ``part`` is said of what has the focus: all that is said of it."""
        passed: list[str] = []
        while not passed or part not in passed[-1]:
            assert len(passed) < _FAR, f"{key} does not reach “{part}”: {passed}"
            passed.append(self.hear(key, "", "focus"))
        return passed[-1]

    # --- The keyboard ------------------------------------------------------------------------------------------------
    def press(self, keys: str) -> None:
        """Press a key such as ``Ctrl+B``, ``Return`` or ``x`` on the display's keyboard."""
        *held, last = keys.replace("Ctrl", "Control").split("+")
        for one in held:
            self._key(_KEYS[one], _PRESS)
        self._key(_SYMBOLS.get(last) or ord(last.lower()), _TYPE)
        for one in reversed(held):
            self._key(_KEYS[one], _RELEASE)

    def _key(self, key: int, kind: int) -> None:
        controller = _ATSPI + "DeviceEventController"
        path = "/org/a11y/atspi/registry/deviceeventcontroller"
        self.ask(_ATSPI + "Registry", path, controller, "GenerateKeyboardEvent", "isu", key, "", kind)


@dataclass(frozen=True)
class Accessible:
    """One thing that a screen reader can go to."""

    reader: ScreenReader
    owner: str
    path: str

    def _ask(self, method: str, signature: str = "", *body: object, interface: str = "Accessible") -> tuple:
        return self.reader.ask(self.owner, self.path, _ATSPI + interface, method, signature, *body)

    def _get(self, name: str, interface: str = "Accessible") -> object:
        properties = "org.freedesktop.DBus.Properties"
        return self.reader.ask(self.owner, self.path, properties, "Get", "ss", _ATSPI + interface, name)[0][1]

    @property
    def role(self) -> str:
        return self._ask("GetRoleName")[0]

    @property
    def label(self) -> str:
        relations = self._ask("GetRelationSet")[0]
        labels = [target for kind, targets in relations if kind == _LABELLED_BY for target in targets]
        return " ".join(Accessible(self.reader, *one).name for one in labels)

    @property
    def name(self) -> str:
        """Its own name; that of a choice is what is chosen."""
        return str(self._get("Name"))

    @property
    def description(self) -> str:
        return str(self._get("Description"))

    @property
    def text(self) -> str:
        if _ATSPI + "Text" not in self._ask("GetInterfaces")[0]:
            return ""
        return self._ask("GetText", "ii", 0, self._get("CharacterCount", "Text"), interface="Text")[0]

    @property
    def states(self) -> frozenset[str]:
        """Those of ``_STATES`` that it has."""
        bits = self._ask("GetState")[0]
        return frozenset(name for name, bit in _STATES.items() if bits[0] >> bit & 1)

    def spoken(self) -> str:
        states = self.states
        checked = "checked" if "checked" in states else ""
        return " · ".join(filter(None, (self.label, self.name, self.role, checked, self.text, self.description)))

    def children(self) -> list[Accessible]:
        return [Accessible(self.reader, *one) for one in self._ask("GetChildren")[0]]

    def showing(self) -> Iterator[Accessible]:
        """Everything in it that is on the screen, itself first."""
        if "showing" not in self.states:
            return
        yield self
        for child in self.children():
            yield from child.showing()


def _ask(
    bus: DBusConnection, address: DBusAddress, method: str, signature: str | None = None, body: tuple = ()
) -> tuple:
    reply = bus.send_and_get_reply(new_method_call(address, method, signature, body), timeout=PATIENCE_SECONDS)
    if reply.header.message_type is MessageType.error:
        raise Gone(f"{method}: {reply.header.fields.get(HeaderFields.error_name)} {reply.body}")
    return reply.body


@contextmanager
def session_bus(environment: dict[str, str]) -> Iterator[str]:
    """Address of our own message bus, on which accessibility starts on request; skips without the programs."""
    if shutil.which("dbus-daemon") is None or not _SERVICE.exists():
        pytest.skip("needs an accessibility bus (packages dbus and at-spi2-core)")
    command = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address"]
    daemon = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        assert daemon.stdout is not None
        yield daemon.stdout.readline().strip()
    finally:
        daemon.terminate()
        daemon.wait()


@contextmanager
def reading(command: list[str], environment: dict[str, str]) -> Iterator[tuple[ScreenReader, Accessible]]:
    """``command`` running as a window on the display that ``environment`` names, and who reads it."""
    environment = {**os.environ, **environment, "QT_QPA_PLATFORM": "xcb", "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1"}
    with session_bus(environment) as address:
        reader = ScreenReader(address)
        program = subprocess.Popen(command, env={**environment, "DBUS_SESSION_BUS_ADDRESS": address})
        try:
            reader.wait(reader.applications, "no program came to the accessibility bus")
            yield reader, reader.applications()[0]
        finally:
            program.terminate()
            program.wait()
            reader.close()
