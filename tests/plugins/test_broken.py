"""A broken plug-in is named in a sentence that says what to change, and everything else works on."""

import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from paretone.commands import commands
from paretone.commands.technique_args import from_files, typed_technique
from paretone.errors import PlugInError, SettingError
from paretone.export.targets import targets
from paretone.models import load_model
from paretone.models.base import SpeechModel, Synthesis
from paretone.models.catalogue import entry, models, voice
from paretone.models.voices import Voice
from paretone.session.commands import Prepare
from paretone.session.executor import Executor
from paretone.setting.knobs import Choice, Number, Switch, Text, Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.studies.running import FINISHED
from paretone.techniques import conflict, problems, technique, techniques
from paretone.techniques.admission import LONGEST_TEXT, RESERVED, fault
from paretone.techniques.base import Paper, Technique
from paretone.views import views
from paretone_app.features.setup.panel import SetupPanel
from paretone_app.shell.colours import LIGHT
from tests.app.acting import NamedActs
from tests.app.presenters import Presenter
from tests.engine import small_omni_mini, small_speech, speaking
from tests.engine.command_line import Console
from tests.engine.small_language import write_draft, write_model
from tests.engine.small_speech import VOICE
from tests.engine.studies.small import finished, study
from tests.plugins.writing import DECLARED, written

Show = Callable[[Path], None]

KNOB = 'declared(knobs=(Number("share", "Share", "Of all.", {}),))'
DECLARATIONS = {
    "called": ("name='My own'", "is not a Technique with a name"),
    "titled": ("title='Blockwise streaming'", "a technique named 'Blockwise streaming'"),
    "bench": ("benches=(('guidance-free', 'json'),)", "a bench named 'guidance-free', which is there already"),
    "untitled": ("title=''", "title is empty"),
    "families": ("families='flow'", "families is the text 'flow', but must be a tuple: ('flow',)"),
    "family": ("families=('flwo',)", "'flwo', but there are flow, language, masked"),
    "renamed": ("name='misnamed', families=()", "families is empty; name one or more"),
    "slot": ("slot='skiping'", "slot is 'skiping' (did you mean 'skipping'?)"),
    "part": ("slot='grid:'", "slot is 'grid:' (did you mean 'grid'?)"),
    "options": ("options=('stepz',)", "'stepz', which no model has (did you mean 'steps'?)"),
    "choice": (
        "knobs=(Choice('a', 'A', '', 'x', values=('y', 'z')),)",
        "knob 'a': its default is not allowed: A must be one of y, z, not 'x'",
    ),
    "arguments": ("resolve=lambda knobs: knobs", "resolve must take 3 arguments"),
    "describe": ("describe=lambda knobs: knobs['x']", "describe failed (KeyError: 'x', plugin_describe.py line"),
    "lack": ("lacking=lambda family: 3", "lacking gave 3 in place of a text or None"),
    "benched": ("benches=(('a', 'no.such'),)", "no.such cannot be read (ModuleNotFound"),
    "exports": ("exports='no_such'", "exports: no_such cannot be imported (ModuleNot"),
    "viewless": ("views=('json',)", "json must have a VIEW, a View, not None"),
}
"""Arguments of a declaration, and what is said of it."""
LEFT_OUT = {
    # How it is imported.
    "raises": ("raise RuntimeError('no luck')", "cannot be imported (RuntimeError: no luck, plugin_raises.py line 1)"),
    "empty": ("", "it cannot be imported (AttributeError: module 'plugin_empty' has no attribute 'TECHNIQUE'"),
    "needy": ("import no_such_package", "cannot be imported (ModuleNotFoundError: No module named 'no_such_package'"),
    "former": (
        "from engine.techniques.base import Technique",
        ": since Paretone 0.2 the package 'engine' is named 'paretone', plugin_former.py line 1)",
    ),
    # Names that are there.
    "twice": ("from paretone.techniques.steps import TECHNIQUE", "a technique named 'steps', which is there already"),
    "filed": (
        f"{DECLARED}FILE = ArtefactFile('seeds', 'file', 'A file.', 'json:loads', knobs=('seed',))\n"
        f"TECHNIQUE = replace({KNOB.replace('share', 'seed', 1).format('default=1')}, artefact_file=FILE)",
        "artefact_file.knobs has 'seed', which is an option of commands already; rename it",
    ),
    "default": (
        f"{DECLARED}TECHNIQUE = {KNOB.format('default=3, maximum=1')}",
        "knob 'share': its default is not allowed: Share must lie between -inf and 1, not at 3",
    ),
    "declares": (
        f"{DECLARED}NAME_ = NAME\nSUMMARY = ''\nTECHNIQUE = declared(commands=(__name__,))\n"
        "def declare(parser):\n    parser.add_argument('--json')\ndef run(options, session): ...",
        "declare of plugin_declares failed (ArgumentError: argument --json: conflicting option string",
    ),
    "study": (f"{DECLARED}def files(): ...\nTECHNIQUE = declared(study=__name__)", "files must take 1 argument"),
    "profiled": (
        f"{DECLARED}KIND = ArtefactType('setting', dict, lambda *given: {{}}, lambda *given: {{}})\n"
        "TECHNIQUE = declared(artefact=KIND)",
        "artefact.key is 'setting', which is another field of profiles; rename it",
    ),
    **{name: (f"{DECLARED}TECHNIQUE = declared({given})", said) for name, (given, said) in DECLARATIONS.items()},
}
"""Plug-ins that are found to be broken, their sources, and what is said."""

OURS = [one.name for one in techniques()]


def test_each_is_left_out_with_a_sentence(all_broken: None, console: Console) -> None:
    for name, (_, said) in LEFT_OUT.items():
        (problem,) = (one for one in problems() if one.startswith(f"The plug-in '{name}' of plugin-{name} 2.0 "))
        assert "left out" in problem and said in problem
    assert len(problems()) == len(LEFT_OUT) + 1
    listed = console.data("models", "--techniques", "--json")
    assert [one["name"] for one in listed["techniques"]] == [*OURS, "good"]
    assert listed["left_out"] == list(problems())


def test_an_unknown_technique_names_only_what_may_be_meant(all_broken: None) -> None:
    asked = ("raises", "raisse", "misnamed", "multistp", "godo", "zirconium")
    said = {one: said_by(lambda one=one: typed_technique(one)) for one in asked}
    raises = next(one for one in problems() if one.startswith("The plug-in 'raises'"))
    metadata = next(one for one in problems() if "entry points" in one)
    assert said["raises"] == f"There is no technique named 'raises'. {raises}"
    assert said["raisse"] == f"There is no technique named 'raisse' (did you mean 'raises'?). {raises}"
    # By the technique's own name, where the entry point has another.
    assert "The plug-in 'renamed' of plugin-renamed 2.0 was left out: families is empty" in said["misnamed"]
    assert said["multistp"] == "There is no technique named 'multistp'; did you mean 'multistep'?"
    assert said["godo"] == "There is no technique named 'godo'; did you mean 'good'?"
    assert said["zirconium"].startswith("There is no technique named 'zirconium'; known techniques: ditreducio, ")
    assert [one for one in problems() if one in said["zirconium"]] == [metadata], "which may bring it"


ODD = (None, -1, 1.5, float("nan"), True, "", "x", (), (1,), ("x",), (None,), ["x"], {}, object(), lambda: None, Paper)
"""Values that some field may hold, and others not."""


def test_no_field_breaks_the_check() -> None:
    """Whatever a declaration holds, it is let in or there is a sentence."""
    known = {"name": "odd", "title": "Odd", "summary": "Is odd.", "paper": Paper("None", "none"), "families": ("flow",)}
    known |= {"knobs": (), "resolve": lambda context, knobs, plan: plan}
    let_in, declared = Counter(), Technique(**known)
    for one in fields(Technique):
        for value in ODD:
            let_in[one.name] += not fault(replace(declared, **{one.name: value}), "odd:TECHNIQUE")
    knobs = (Number("a", "A", "", 1), Switch("a", "A", "", True), Choice("a", "A", "", "x", values=("x",)))
    for knob in (*knobs, Text("a", "A", "", "")):
        for one in fields(knob):
            for value in ODD:
                odd = replace(declared, knobs=(replace(knob, **{one.name: value}),))
                let_in[f"{type(knob).__name__}.{one.name}"] += not fault(odd, "odd:TECHNIQUE")
    assert max(let_in.values()) <= 3, let_in.most_common(3)


@pytest.fixture
def all_broken(tmp_path: Path, visible: Show) -> None:
    """All of them at once, one whose metadata is damaged, and a good one that talks."""
    for name, (source, _) in LEFT_OUT.items():
        written(tmp_path, name, source)
    written(tmp_path, "metadata", DECLARED)
    (tmp_path / "plugin_metadata-2.0.dist-info" / "entry_points.txt").write_bytes(
        b"[paretone.techniques]\n\xff\xfe = \xff"
    )
    written(tmp_path, "good", f"{DECLARED}print('Hello.')\nTECHNIQUE = declared()")
    visible(tmp_path)


def test_with_all_of_them_the_command_line_works(all_broken: None, tmp_path: Path, console: Console) -> None:
    checks = [one for one in console.data("doctor", "--json")["checks"] if one["name"] == "Plug-in"]
    assert {one["found"] for one in checks if one["state"] == "problem"} == set(problems())
    assert [one["found"] for one in checks if one["state"] == "good"] == ["'good' of plugin-good 2.0: The good"]
    assert "guidance-free" in console.out("bench")
    assert commands() and views() and targets()
    for words in (["--help"], ["export", "--help"], ["view", "--help"], ["train", "--help"]):
        assert console.out(*words)
    out = tmp_path / "out.wav"
    words = ["speak", "--model", "f5-mini", "--steps", "2", "--text", "Rice.", "--out", out, "--technique"]
    assert console.out(*words, "good") and out.stat().st_size > 1000
    said = console.refusal(*words, "families", code=SettingError.exit_code)
    assert "The plug-in 'families' of plugin-families 2.0 was left out: families is" in said


SEVERAL = """
from paretone.commands.command import Command, Result
from paretone.views.view import Findings, View


def saying(word):
    return Command(f"say-{word}", f"Say {word}.", lambda parser: None, lambda options, session: Result({}, word))


YES, NO = saying("yes"), saying("no")
FIRST, SECOND = (View(f"{name}-view", name, "Why?", "None.", ("flow",), Findings) for name in ("first", "second"))
TECHNIQUE = declared(
    commands=(f"{__name__}:YES", f"{__name__}:NO"), views=(f"{__name__}:FIRST", f"{__name__}:SECOND")
)
"""


def test_one_module_brings_several_commands_and_views(tmp_path: Path, visible: Show, console: Console) -> None:
    written(tmp_path, "several", DECLARED + SEVERAL)
    visible(tmp_path)
    assert not problems()
    assert [one.name for one in commands()][-2:] == ["say-yes", "say-no"]
    assert {"first-view", "second-view"} <= {one.name for one in views()}
    assert console.out("say-no").strip() == "no"


def test_reserved_names_are_those_of_commands_that_take_files(console: Console) -> None:
    free = {knob.name for model in models() for knob in model.options}
    free |= {name for _, one in from_files() for name in (one.option, *one.knobs)}
    for name in ("speak", "roofline"):
        known = re.findall(r"^  --([\w-]+)", console.out(name, "--help"), re.MULTILINE)
        missing = {one.replace("-", "_") for one in known} - free - RESERVED
        assert not missing, "a new option of a command: name it in paretone.techniques.admission.RESERVED"


# --- At use -----------------------------------------------------------------------------------------------------------
def resolving(body: str) -> str:
    return f"{DECLARED}def resolve(context, knobs, plan):\n    {body}\nTECHNIQUE = declared(resolve=resolve)\n"


REPLACED = {
    "backwards": ("times=(0.0, 0.5, 0.25, 0.75, 1.0)", "times must increase, but 0.25 comes after 0.5"),
    "short": ("times=(0.0, 0.2, 0.4, 0.6, 0.8)", "times must go from 0 to 1, not from 0 to 0.8"),
    "options": ("options=plan.options.replace(steps=-3)", "cannot run: Steps must lie between 1 and"),
    "function": ("stepper=resolve", "stepper must be a Part or None, not function"),
    "unhashable": ("stepper=Part.of('a:b', c=[1])", "arguments of parts must be hashable"),
    "float8": ("precision='float8'", "precision must be one of float32, bfloat16, float16, int8"),
    "guided": ("guidance=replace(plan.guidance, steps='all')", "must be None or a whole number from 1, not 'all'"),
    "guidance": ("guidance=3", "guidance must be a GuidanceSchedule, not 3"),
    "share": ("evaluated_share=lambda counts: None", "evaluated_share must give a share from 0, not None"),
    "dividing": ("evaluated_share=lambda counts: 1 / 0", "failed when it was resolved (ZeroDivision"),
}
"""What ``resolve`` replaces of the plan, and what is said."""
UNRESOLVED = {
    "raising": ("return plan.options['no such']", "failed when it was resolved (KeyError: 'no such', plugin_raising"),
    "none": ("return None", "makes a plan that cannot run: resolve must return the plan, a FlowPlan, not None"),
    **{name: (f"return replace(plan, {given})", said) for name, (given, said) in REPLACED.items()},
}
"""Bodies of ``resolve``, and what is said."""


def test_a_plan_that_cannot_run_is_refused(tmp_path: Path, visible: Show, qtbot: QtBot) -> None:
    for name, (body, _) in UNRESOLVED.items():
        written(tmp_path, name, resolving(body))
    visible(tmp_path)
    for name, (_, said) in UNRESOLVED.items():
        reason = conflict(Setting("f5-mini", Values(steps=4), (UsedTechnique(name),)))
        assert reason is not None and reason.startswith(f"The {name} ") and said in reason, name
        assert f"mend the plug-in '{name}' of plugin-{name} 2.0." in reason
    presenter = Presenter(tmp_path / "data")
    presenter.state.selection.set_option("steps", 4)
    panel = SetupPanel(presenter.state, LIGHT, NamedActs())
    qtbot.addWidget(panel)
    assert panel.techniques.groups["none"].title()
    presenter.state.selection.switch("ditreducio", False)
    presenter.state.selection.switch("none", True)
    reason = conflict(Setting("f5-mini", Values(steps=4), (UsedTechnique("none"),)))
    assert presenter.state.availability.technique_problem("none") == reason
    assert presenter.state.availability.why_not_accelerate() == reason
    presenter.state.selection.switch("none", False)
    presenter.state.selection.switch("guidance_interval", True)
    assert presenter.state.availability.technique_problem("guidance_interval") == ""


FLOW = {
    "missing": ("stepper", "", "plugin_missing:part could not be imported"),
    "failing": ("stepper", "def part(times, follow):\n    return times['x']", "(IndexError: only integers"),
    "nothing": ("stepper", "def part(times, follow): ...", "gave None, but must give a function (state, velocity"),
    "stepping": (
        "stepper",
        "def part(times, follow):\n    return lambda state, velocity, step: 1 / 0",
        "failed (ZeroDivisionError: division by zero, plugin_stepping.py line",
    ),
    "still": (
        "stepper",
        "def part(times, follow):\n    return lambda state, velocity, step: None",
        "gave None, but must give the next state, a Tensor of shape (1, ",
    ),
    "numberless": (
        "stepper",
        "def part(times, follow):\n    return lambda *given: follow(*given) * float('nan')",
        "values that are not numbers, under a part of the plug-in 'numberless' of plugin-numberless 2.0",
    ),
    "evaluator": ("evaluator", "def part(stage):\n    return 3", "gave 3, but must give a function without arguments"),
    "branch": (
        "evaluator",
        "class Thing:\n    velocities = lambda self, state, evaluation, run: state\n"
        "    operations = lambda *given: 1.0\n\ndef part(*given):\n    return Thing",
        "gave a Tensor of shape (1, ",
    ),
}
LANGUAGE = {
    "sampler": ("sampler", "def part(own):\n    return None", "gave None, but must give a TokenSampler, which has"),
    "cycles": ("decoding", "def part(loop):\n    yield 'a cycle'", "gave 'a cycle', but must give a generator of"),
    "breaking": ("decoding", "def part(loop):\n    yield 1 / 0", "failed (ZeroDivisionError: division by zero, plug"),
    "products": ("products", "def part(tokens):\n    return 'a model'", "gave 'a model', but must give a TokenModel"),
}
MASKED = {
    "runless": ("run", "def part(network, request, guidance): ...", "gave None, but must give a CanvasRun, which has"),
    "scoring": (
        "run",
        "def part(network, request, guidance):\n    run = network.begin(request, guidance)\n"
        "    run.scores = lambda codes, first, last, guide: None\n    return run",
        "gave None, but must give scores of all codes, a Tensor of shape (",
    ),
    "uncounted": ("schedule", "def part(cells, steps):\n    return lambda: 1", "takes 0 positional arguments but 1"),
}
"""Parts: the field that they take, the code, and what is said."""


def broken_part(folder: Path, family: str, name: str, field: str, source: str) -> None:
    declared = f"TECHNIQUE = declared(families=({family!r},), resolve=putting({field!r}))"
    written(folder, name, f"{DECLARED}{source}\n\n{declared}\n")


def said_by(speak: Callable[[], object]) -> str:
    with pytest.raises((PlugInError, SettingError)) as caught:
        speak()
    return str(caught.value)


@pytest.mark.parametrize(("family", "parts"), [("flow", FLOW), ("language", LANGUAGE), ("masked", MASKED)])
def test_a_broken_part_is_named(family: str, parts: dict, tmp_path: Path, visible: Show) -> None:
    for name, (field, source, _) in parts.items():
        broken_part(tmp_path, family, name, field, source)
    visible(tmp_path)
    speech, plain, speaker = {"flow": flow, "language": language, "masked": masked}[family](tmp_path / "model")

    def spoken(of: Setting) -> Synthesis:
        return synthesise(speech, "One.", speaker, of)

    for name, (_, _, said) in parts.items():
        found = said_by(lambda name=name: spoken(plain.with_technique(UsedTechnique(name))))
        assert said in found and f"the plug-in '{name}' of plugin-{name} 2.0" in found
    assert len(spoken(plain).samples), "the model goes on"


def flow(folder: Path) -> tuple[SpeechModel, Setting, Voice]:
    return small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None), small_speech.setting(2), VOICE


def language(folder: Path) -> tuple[SpeechModel, Setting, Voice]:
    return speaking.load(write_model(folder)), speaking.setting(), voice("", "lm-mini")


def masked(folder: Path) -> tuple[SpeechModel, Setting, Voice]:
    model = load_model("omni-mini", folder=str(small_omni_mini.write_model(folder)), device="cpu")
    return model, Setting("omni-mini", entry("omni-mini").options_with(steps=4)), voice("", "omni-mini")


def test_a_broken_rule_for_drafts_is_named(tmp_path: Path, visible: Show) -> None:
    source = "def part(codes, rows, device):\n    return lambda drafted, proposals, checks, uniforms: None"
    broken_part(tmp_path, "language", "ruling", "acceptance", source)
    visible(tmp_path)
    write_model(tmp_path / "model")
    write_draft(tmp_path / "model", lambda weight: weight * 1.1)
    speech = speaking.load(tmp_path / "model")
    found = said_by(lambda: speaking.spoken(speech, speaking.setting(speaking.drafted(), UsedTechnique("ruling"))))
    assert "gave None, but must give an paretone.sampling.verification.Verification" in found
    assert "mend the plug-in 'ruling' of plugin-ruling 2.0." in found


def test_a_broken_job_is_named(tmp_path: Path, visible: Show) -> None:
    source = """
@dataclass(frozen=True)
class Request:
    setting: object

def work(task):
    sys.exit("enough")

JOB = Job("find", "Find", f"{__name__}:Request", f"{__name__}:work", on_loaded_model=False)
TECHNIQUE = declared(jobs=(JOB,))
"""
    written(tmp_path, "working", f"import sys\n{DECLARED}{source}")
    visible(tmp_path)
    assert not problems()
    request = import_module("plugin_working").Request(None)
    with pytest.raises(PlugInError, match=r"plugin_working:work failed \(SystemExit: enough, plugin_working.py line"):
        Executor(small_speech.load).carry_out(Prepare(1, "working", request), lambda event: None, threading.Event())


def test_the_command_line_shows_where_a_part_failed(tmp_path: Path, visible: Show, console: Console) -> None:
    broken_part(tmp_path, "flow", "stepping", *FLOW["stepping"][:2])
    visible(tmp_path)
    words = ["speak", "--model", "f5-mini", "--steps", "2", "--technique", "stepping", "--text", "Rice."]
    said = console.refusal(*words, "--out", tmp_path / "out.wav", code=PlugInError.exit_code)
    assert "plugin_stepping.py" in said and "Traceback" in said
    assert said.rstrip().splitlines()[-1].startswith("plugin_stepping:part failed (ZeroDivisionError")


def test_a_plug_in_that_closes_or_replaces_its_streams_works_and_prints_on_standard_error(
    tmp_path: Path, visible: Show, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, line in {
        "closing": "sys.stdout.close(); sys.stderr.close()",
        "replacing": "sys.stdout = io.TextIOWrapper(sys.stdout.buffer); sys.stderr = open(os.devnull, 'w')",
    }.items():
        written(
            tmp_path, name, f"import io, os, sys\nprint('Hello, {name}.')\n{line}\n{DECLARED}TECHNIQUE = declared()"
        )
    visible(tmp_path)
    code = "import sys; from paretone.cli import main; sys.exit(main(['models', '--techniques', '--json']))"
    path = os.pathsep.join((str(tmp_path), *sys.path))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"closing", "replacing"} <= {one["name"] for one in found["techniques"]} and not found["left_out"]
    assert "Hello, closing." in done.stderr and "Hello, replacing." in done.stderr


def test_a_long_text_is_clipped_and_the_limit_is_said(tmp_path: Path, visible: Show, console: Console) -> None:
    knob = "knobs=(Number('share', 'Share', 'm' * 10 ** 6, 1.0),)"
    source = f"{DECLARED}TECHNIQUE = declared(summary='s' * 10 ** 6, describe=lambda given: 'd' * 10 ** 6, {knob})"
    written(tmp_path, "wordy", source)
    visible(tmp_path)
    summary, meaning = problems()
    of = "1,000,000 characters, of which 2,000 are shown; shorten it in the plug-in 'wordy' of plugin-wordy 2.0."
    assert summary == f"The wordy: summary has {of}"
    assert meaning == f"The wordy: meaning of the knob 'share' has {of}"
    found = technique("wordy")
    texts = found.summary, found.knobs[0].meaning, found.describe(Values(share=1.0))
    assert all(len(one) == LONGEST_TEXT for one in texts)
    said = console.out("models")
    assert max(map(len, said.splitlines())) < 2 * LONGEST_TEXT + 200 and summary in said


def test_a_plug_in_may_have_its_own_kind_of_knob(tmp_path: Path, visible: Show) -> None:
    own = "class Share(Number):\n    def __init__(self):\n        super().__init__('share', 'Share', 'Of all.', 1.0)\n"
    written(tmp_path, "own", f"{DECLARED}{own}TECHNIQUE = declared(knobs=(Share(),))")
    visible(tmp_path)
    assert not problems() and type(technique("own").knobs[0]).__name__ == "Share"


def test_what_fails_elsewhere_is_said_to_be_the_plug_ins(tmp_path: Path, visible: Show, console: Console) -> None:
    """Wherever its code runs: here, in a bench, whose errors nobody expects."""
    source = f"""{DECLARED}
TECHNIQUE = declared(benches=(("slow", __name__),))

def run(arguments):
    raise LookupError("no rows")
"""
    written(tmp_path, "benching", source)
    visible(tmp_path)
    last = console.refusal("bench", "slow").rstrip().splitlines()[-1]
    assert "LookupError: no rows" in last
    assert "That is in the plug-in 'benching' of plugin-benching 2.0; mend it" in last


FAILING_LATER = f"""{DECLARED}
def little(info):
    raise LookupError("no such device")

def describe(knobs):
    return None if knobs["share"] > 1 else "a share"

def settings(fields, model, options):
    raise LookupError("no such field")

def files(store):
    return {{1: 2}}

def finished(study, store):
    return "all is well"

TARGETS = "all"
TECHNIQUE = replace({KNOB.format("default=1.0")}, little=little, describe=describe, study=__name__, exports=__name__)
"""


def test_what_fails_at_use_says_so_in_its_place(tmp_path: Path, visible: Show, qtbot: QtBot, console: Console) -> None:
    written(tmp_path, "later", FAILING_LATER)
    visible(tmp_path)
    assert not problems()
    presenter = Presenter(tmp_path / "data")
    panel = SetupPanel(presenter.state, LIGHT, NamedActs())
    qtbot.addWidget(panel)
    panel.techniques.show_techniques()
    said = "The later: little failed (LookupError: no such device, plugin_later.py line"
    assert technique("later").little(presenter.state.selection.info).startswith(said)
    presenter.state.selection.switch("later", True)
    presenter.state.selection.set_knob("later", "share", 2.0)
    panel.techniques.show_selection()
    assert panel.techniques.groups["later"].meaning.text().startswith("The later: describe failed (it gave None in")
    assert finished(tmp_path / "s", study(sentences=["One sentence."])) == FINISHED
    assert len(targets()) > 3
    found = " ".join(problems())
    assert "TARGETS of plugin_later must be a tuple of Target" in found
    assert "settings of its studies failed (LookupError: no such field" in found
    assert "little failed" in console.out("doctor", "--json")
