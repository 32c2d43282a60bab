"""A profile as a script for CrispASR, which runs F5-TTS and OmniVoice in C++. Torch-free.

Sources (CrispStrobe/CrispASR, August 2026): ``examples/cli/cli.cpp`` and ``crispasr_backend_f5_tts.cpp`` for the flags,
``src/f5_tts.cpp`` for its grid (EPSS where there is a table, sway -1, Euler), ``src/omnivoice.cpp`` and
``docs/environment-variables.md`` for OmniVoice's variables.
"""

from __future__ import annotations

import shlex

from paretone.export.accounts import GUIDANCE_EVERY, OPTIONS, SEED, Account, OptionLedger
from paretone.export.delivery import Content
from paretone.export.f5_models import own_grid
from paretone.export.targets import Order, Target, block, described
from paretone.models.catalogue import entry, models
from paretone.models.omnivoice.config import LAYOUT
from paretone.setting.profile import Profile
from paretone.wording import listed

NAME = "crispasr"
MOST_STEPS, FASTEST, LARGEST_SEED = 100, 4.0, 2**31 - 1
"""Greater values are clipped by CrispASR."""
DEFAULTS = {"shift": 0.1, "layer_penalty": 5.0}
"""OmniVoice's settings that CrispASR fixes."""
VARIABLES = {
    "guidance": "CRISPASR_OMNIVOICE_GUIDANCE",
    "position_temperature": "CRISPASR_OMNIVOICE_POS_TEMP",
    "class_temperature": "CRISPASR_OMNIVOICE_CLASS_TEMP",
}
EVERY = "CRISPASR_OMNIVOICE_CFG_INTERVAL"
NOT_RUN = (
    "The flags and variables were read in CrispASR's code; CrispASR itself was not run, and its numbers were not "
    "compared with Paretone's. Its weights are in half precision, and it draws other noise from the same seed."
)


def why_not(profile: Profile, guided_weights: bool) -> str:
    model = entry(profile.setting.model)
    if NAME not in model.programs:
        known = listed(one.title for one in models() if NAME in one.programs)
        return f"The profile is for {model.title}; of Paretone's models, CrispASR has {known}."
    if guided_weights:
        return "The profile's checkpoint has its guidance in its weights; CrispASR downloads the released weights."
    return ""


def options(ledger: OptionLedger) -> None:
    values = ledger.options
    ledger.honour_if(values["steps"] <= MOST_STEPS, "--tts-steps", f"it takes {MOST_STEPS} at most", "steps")
    if values["speed"] <= FASTEST:
        ledger.honour("--tts-speed", "speed")
    seeds = f"it takes seeds from 1 to {LARGEST_SEED}; 0 is a new one every time"
    ledger.honour_if(0 < ledger.seed <= LARGEST_SEED, "--seed (it draws other noise from it)", seeds, SEED)
    if ledger.model.layout != LAYOUT:
        ledger.honour("--tts-cfg-scale", "guidance")
        own_grid(ledger)
        return
    for name, variable in VARIABLES.items():
        ledger.honour(f"the variable {variable}", name)
    for name, usual in DEFAULTS.items():
        ledger.honour_if(values[name] == usual, "it has no other", f"it always takes {usual:g}", name)
    ledger.honour("--language", "language")
    ledger.honour("--instruct", "instruct")
    ledger.honour("--voice and --ref-text, or none", "clone")
    ledger.drop("it has no such flag", "duration", "denoise", "prepare", "post_process", "by_sentence")


def contents(order: Order) -> dict[str, Content]:
    model = entry(order.profile.setting.model)
    omnivoice = model.layout == LAYOUT
    script = _script(order.account, model.programs[NAME], order.profile.setting.seed, omnivoice)
    usage = (
        "With `crispasr` on the path (https://github.com/CrispStrobe/CrispASR); it downloads its own weights of "
        "the model unless `MODEL` names a file:\n\n"
        + block("sh", 'sh speak.sh "A text." out.wav reference.wav "What is said in the recording."')
        + "\nWhat follows is passed on to crispasr. To speak in the voice of a recording, it asks for "
        "`--i-have-rights`, by which you say that you may; the script does not say it for you.\n"
    )
    return {"speak.sh": script, **described("CrispASR", order, [usage], NOT_RUN)}


def _script(account: Account, backend: str, seed: int, omnivoice: bool) -> bytes:
    values = account.options
    flags = []
    if values["steps"] <= MOST_STEPS:
        flags.append(f"--tts-steps {values['steps']}")
    if values["speed"] != 1:
        flags.append(f"--tts-speed {values['speed']:g}")
    if 0 < seed <= LARGEST_SEED:
        flags.append(f"--seed {seed}")
    variables = {}
    if omnivoice:
        variables = {variable: f"{values[name]:g}" for name, variable in VARIABLES.items()}
        if "guidance_every" in account.given:
            variables[EVERY] = str(account.given["guidance_every"])
        flags += [
            f"{flag} {shlex.quote(values[name])}"
            for name, flag in (("language", "--language"), ("instruct", "--instruct"))
            if values[name]
        ]
    else:
        flags.append(f"--tts-cfg-scale {values['guidance']:g}")
    lines = [
        "#!/bin/sh",
        "# sh speak.sh TEXT OUT.wav [REFERENCE.wav TRANSCRIPT [more flags of crispasr]]",
        "text=${1:?give a text} out=${2:?give a file to write}",
        "shift 2",
        'if [ $# -ge 2 ]; then voice=$1 said=$2; shift 2; set -- --voice "$voice" --ref-text "$said" "$@"; fi',
        *(f"export {name}={value}" for name, value in variables.items()),
        f'exec crispasr --backend {backend} -m "${{MODEL:-auto}}" --tts "$text" --tts-output "$out" \\',
        f'  {" ".join(flags)} "$@"',
    ]
    return ("\n".join(lines) + "\n").encode()


TARGET = Target(
    NAME,
    "CrispASR",
    "a script with its flags and variables",
    "CrispASR",
    why_not,
    options,
    contents,
    frozenset({OPTIONS, GUIDANCE_EVERY}),
    reads=False,
)
