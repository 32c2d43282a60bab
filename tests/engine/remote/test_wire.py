"""Messages: whatever is declared travels unchanged, and nothing else is ever made of what arrives."""

import dataclasses
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, Protocol, get_args, get_origin

import numpy as np
import pytest

from paretone.fields import has_names_of
from paretone.models.base import Voice
from paretone.models.catalogue import entry
from paretone.sampling.actions import SkipAction
from paretone.session import commands, events
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.ditreducio.table import StrategyTable
from paretone.techniques.resolving import known
from paretone.techniques.searched_grid import PlacedGrid
from paretone.techniques.spade import Distillation, StudentRequest
from paretone.techniques.token_groups.groups import Groups
from paretone.techniques.weight_only import Record
from paretone.views.figure import Axis, Bars, BarSeries, Curve, HeatMap

msgspec = pytest.importorskip("msgspec", reason="msgspec comes with the extra serve")
wire = pytest.importorskip("paretone.remote.wire")

SPEAK = commands.Synthesise(
    3, "Good morning.", Voice("anna", "Anna", "anna.wav", "Hello."), Setting("f5-mini", Values(steps=4))
)

TABLE = StrategyTable.computing(
    Compatibility("f5-mini", "a" * 64, "f5-mini", Values(solver="euler", steps=4, spacing="epss", sway=-1.0)), 3
).changed(1, 2, SkipAction.BS)
X, Y = Axis("Layer"), Axis("Time", "s")
CHECKED = {
    StrategyTable: TABLE,
    PlacedGrid: PlacedGrid(TABLE.compatibility, (0.0, 0.2, 0.5, 0.7, 1.0)),
    Groups: Groups("lm-mini", "b" * 64, 9, "scores", 0.5, 2, 3, ((1, 4), (2, 3, 8))),
    Profile: Profile.of(
        Setting("f5-mini", entry("f5-mini").options_with(), (UsedTechnique("steps", Values(steps=4, spacing="epss")),)),
        replace(known("f5-mini"), fingerprint="a" * 64),
    ),
    Distillation: Distillation(alpha=0.5),
    StudentRequest: StudentRequest(model="lm-mini", work="w", depth=4),
    HeatMap: HeatMap.by_layer("Errors", "Error", [[1, 2], [3, float("inf")]]),
    Curve: Curve("Speed", (1.0, 2.0), (3.0, 4.0)),
    Bars: Bars("Time", X, Y, ("Text",), (BarSeries("CPU", (1.0,)),)),
}
"""An object of each type that checks its own parts, which random content fails."""


def made(hint: Any, draw: random.Random, depth: int = 0) -> Any:
    """A random value of the type ``hint``."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return made(draw.choice([int, str, float, np.ndarray, UsedTechnique, tuple[Voice, ...]]), draw, depth + 1)
    if hint in (None, type(None)):
        return None
    if hint is bool:
        return draw.random() < 0.5
    if hint is int:
        return draw.randrange(-(2**40), 2**40)
    if hint is float:
        return draw.uniform(-1e6, 1e6)
    if hint is str:
        return draw.choice(["", "speech", "größer – 語 \0"])
    if hint is np.ndarray:
        shape = draw.choice([(0,), (7,), (2, 3), ()])
        return np.array(draw.choices(range(100), k=int(np.prod(shape))), draw.choice("fdhB")).reshape(shape)
    if hint is Values:
        return Values.complete({"steps": draw.randrange(9), "on": True}, {"speed": 1.0})
    if origin is tuple:
        if arguments[1:] == (...,):
            return tuple(made(arguments[0], draw, depth + 1) for _ in range(draw.randrange(3 if depth < 6 else 1)))
        return tuple(made(one, draw, depth + 1) for one in arguments)
    if origin in (dict, Mapping) or "Mapping" in str(origin):
        return {made(arguments[0], draw, depth): made(arguments[1], draw, depth) for _ in range(2)}
    if arguments:
        return made(draw.choice(arguments), draw, depth)
    fits = has_names_of if Protocol in hint.__bases__ else lambda hint, kind: issubclass(kind, hint)
    fitting = [one for one in wire.declared().values() if fits(hint, one)]
    kind = draw.choice(sorted(fitting, key=lambda one: one.__qualname__))
    if kind in CHECKED:
        return CHECKED[kind]
    if issubclass(kind, Enum):
        return draw.choice(list(kind))
    return kind(**{name: made(one, draw, depth + 1) for name, one in wire.field_types(kind).items()})


def alike(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    if dataclasses.is_dataclass(left):
        return all(alike(getattr(left, one.name), getattr(right, one.name)) for one in dataclasses.fields(left))
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(alike(one, right[name]) for name, one in left.items())
    if isinstance(left, Values):
        return left.__reduce__()[1] == right.__reduce__()[1]
    return left == right


def travelled(sent: Any) -> Any:
    content = wire.message("any", wire.packed(sent), 7)
    data = wire.plain(wire.envelope(content, len(content)).payload)
    return wire.of(data, commands.Command) if isinstance(sent, commands.Command) else wire.of(data, events.Event)


def test_every_declared_command_and_event_travels_unchanged():
    """With random content in every field, of each of the types that it may have."""
    draw, roots = random.Random(1), (commands.Command, events.Event)
    kinds = [one for one in wire.declared().values() if issubclass(one, roots)]
    of_session = [*vars(commands).values(), *vars(events).values()]
    assert {*kinds, *roots} == {one for one in of_session if isinstance(one, type) and issubclass(one, roots)}
    for kind in kinds:
        for _ in range(10):
            sent = made(kind, draw)
            assert alike(travelled(sent), sent), sent


def test_every_type_of_the_techniques_travels():
    """Requests, reports, results and artefacts, within the events that carry them."""
    draw, carried = random.Random(2), set()
    for kind in wire.declared().values():
        if kind.__module__.startswith(("paretone.techniques", "paretone.training")) and kind is not Record:
            sent = events.Prepared(1, "any", made(kind, draw))
            assert alike(travelled(sent), sent)
            carried.add(kind.__name__)
    assert {"CalibrationRequest", "Calibrated", "Trial", "Trained", "TrainingProgress", "GroupsFound"} <= carried


def test_nothing_else_travels():
    class Mine:
        pass

    for odd in (Mine(), open, np.array([object()]), 1j, wire.Hello("", "", ""), {1, 2}, 2**80):
        with pytest.raises(wire.WireError):
            wire.message("command", wire.packed(odd))


def test_a_field_of_a_newer_version_is_no_obstacle_unless_it_is_used():
    tree = wire.packed(SPEAK)
    assert "label" not in tree
    tree["loudness"] = 3
    with pytest.raises(wire.WireError, match="has no field 'loudness'"):
        wire.of(tree, commands.Command)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"$": "builtins:eval", "text": "1"}, "which nothing here declares"),
        ({"$": "paretone.remote.wire:Hello"}, "which nothing here declares"),
        ({"$": "paretone.session.events:JobFinished", "job": 1}, "must be of type Command"),
        ({"$": "paretone.session.commands:Cancel", "job": 1}, "is no Cancel"),
        ({"$": "paretone.session.commands:Cancel", "job": 1, "target": "1"}, "Cancel.target must be a whole number"),
        ({"$": "paretone.session.commands:Cancel", "job": True, "target": 1}, "Cancel.job must be a whole number"),
        ([1, 2], "must be of type Command"),
        (msgspec.msgpack.Ext(1, b""), "damaged array"),
        (msgspec.msgpack.Ext(1, b"\x07\x92\xa3<f4\x91\x04abc"), "too few or too many bytes"),
        (msgspec.msgpack.Ext(1, b"\x06\x92\xa3|O8\x90" + bytes(8)), "unknown type or shape"),
        (msgspec.msgpack.Ext(9, b"abc"), "damaged array"),
    ],
)
def test_what_is_refused_is_said(payload, words):
    with pytest.raises(wire.WireError, match=words):
        wire.of(wire.plain(msgspec.Raw(msgspec.msgpack.encode(payload))), commands.Command)


def mutated(content: bytes, draw: random.Random) -> bytes:
    """``content`` with some bytes changed, left out, repeated or put in."""
    changed = bytearray(content)
    for _ in range(draw.randrange(1, 6)):
        at = draw.randrange(len(changed) or 1)
        match draw.randrange(5):
            case 0:
                changed[at : at + 1] = draw.randbytes(1)
            case 1:
                del changed[at : at + draw.randrange(1, 20)]
            case 2:
                changed[at:at] = draw.randbytes(draw.randrange(1, 9))
            case 3:
                del changed[at:]
            case 4:
                changed[at:at] = bytes([draw.choice([0x91, 0x81, 0xDD, 0xDF, 0xC6, 0xC9])]) * draw.randrange(1, 400)
    return bytes(changed)


def test_of_ten_thousand_damaged_messages_each_is_refused_or_a_command_of_the_same_form():
    """No error but :class:`WireError`, and what still reads has only values of its declared types."""
    draw, refused = random.Random(44), 0
    sentences: set[str] = set()
    judged = commands.JudgeTake(2, "t", np.zeros(40, np.float32), 24000)
    sent = SPEAK, commands.Cancel(1, 4), judged, made(commands.ExportProfile, random.Random(3))
    whole = [wire.message("command", wire.packed(one), 5) for one in sent]
    for _ in range(10_000):
        content = mutated(draw.choice(whole), draw) if draw.random() < 0.9 else draw.randbytes(draw.randrange(200))
        try:
            found = wire.of(wire.plain(wire.envelope(content, 4096).payload), commands.Command)
        except wire.WireError as error:
            sentences.add(str(error))
            refused += 1
        else:
            assert alike(travelled(found), found)
    assert refused > 8_000
    assert all(one.endswith((".", "?")) and len(one) < 700 for one in sentences)


def test_oversized_deep_and_foreign_messages_are_refused():
    with pytest.raises(wire.WireError, match="5,000 bytes, but 4,096 at most"):
        wire.envelope(bytes(5_000), 4_096)
    with pytest.raises(wire.WireError, match="binary"):
        wire.envelope("text", 4_096)
    with pytest.raises(wire.WireError):
        wire.envelope(b"\x94\xa1x\x92\x01\x00\x00" + b"\x91" * 100_000 + b"\xc0", 1 << 20)
    with pytest.raises(wire.WireError, match=r"version 2\.0; this program reads 1\.x"):
        wire.envelope(msgspec.msgpack.encode(["command", (2, 0), 1, None]), 4_096)
    newer = wire.envelope(msgspec.msgpack.encode(["command", (1, 9), 1, wire.packed(SPEAK)]), 4_096)
    assert wire.of(wire.plain(newer.payload), commands.Command) == SPEAK


def test_the_messages_need_no_torch():
    code = "import paretone.remote.wire as w, sys; w.declared(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
