"""A profile as a folder for the official ``omnivoice`` package: its own command with the profile's flags, and a module
that applies everything. Torch-free.

Source: omnivoice 0.2.1, ``OmniVoice.generate``, ``OmniVoiceGenerationConfig`` and ``omnivoice/cli/infer.py``.
"""

from __future__ import annotations

import shlex

from paretone.export.accounts import OPTIONS, PRECISION, SEED, OptionLedger
from paretone.export.delivery import Content
from paretone.export.targets import Order, Target, block, copied, described, json_file
from paretone.models.catalogue import entry
from paretone.setting.knobs import Values
from paretone.setting.profile import Profile

NAME = "omnivoice"
KIND, SCHEMA, FILE = "paretone profile for omnivoice", 1, "omnivoice.json"
"""As in the copied module."""
ARGUMENTS = {
    "steps": "num_step",
    "guidance": "guidance_scale",
    "shift": "t_shift",
    "layer_penalty": "layer_penalty_factor",
    "position_temperature": "position_temperature",
    "class_temperature": "class_temperature",
    "language": "language",
    "instruct": "instruct",
    "speed": "speed",
    "duration": "duration",
    "denoise": "denoise",
    "prepare": "preprocess_prompt",
    "post_process": "postprocess_output",
}
"""Arguments of ``generate``, by our options."""
NO_FLAG = ("preprocess_prompt",)
"""Arguments without a flag in ``omnivoice-infer``."""
NONE = {"language": "", "instruct": "", "duration": 0.0}
"""Our values for "none"."""


def why_not(profile: Profile, guided_weights: bool) -> str:
    """Accept OmniVoice only: the package runs one model."""
    model = entry(profile.setting.model)
    if NAME in model.programs:
        return ""
    return (
        f"The profile is for {model.title}, which is not a model of the omnivoice package; only OmniVoice's can be "
        "exported."
    )


def options(ledger: OptionLedger) -> None:
    for name, argument in ARGUMENTS.items():
        ledger.honour(f"the argument {argument}", name)
    ledger.honour("paretone_omnivoice seeds torch with it; on a processor the codes are those of Paretone", SEED)
    ledger.honour("with ref_audio, or without", "clone")
    chunks = "the package cuts long texts into chunks of 15 seconds"
    ledger.honour_if(not ledger.options["by_sentence"], "as the package does", chunks, "by_sentence")


def arguments(values: Values) -> dict[str, object]:
    return {
        argument: None if values[name] == NONE.get(name, ...) else values[name] for name, argument in ARGUMENTS.items()
    }


def contents(order: Order) -> dict[str, Content]:
    given = arguments(order.account.options)
    description = {
        "kind": KIND,
        "schema": SCHEMA,
        "checkpoint": order.profile.checkpoint,
        "generate": given,
        "seed": order.profile.setting.seed,
        "precision": order.account.given.get("precision"),
    }
    flags = " ".join(
        f"--{name} {shlex.quote(str(value))}"
        for name, value in given.items()
        if value is not None and name not in NO_FLAG
    )
    script = (
        "#!/bin/sh\n# sh speak.sh TEXT OUT.wav [more flags of omnivoice-infer, such as --ref_audio and --ref_text]\n"
        "text=${1:?give a text} out=${2:?give a file to write}\nshift 2\n"
        'exec omnivoice-infer --model "${MODEL:-k2-fsa/OmniVoice}" --text "$text" --output "$out" \\\n'
        f'  {flags} "$@"\n'
    )
    usage = (
        "With `pip install omnivoice==0.2.1`, from the command line (the package's own command; without the seed, and "
        "with the reference prepared as the package does):\n\n"
        + block("sh", 'sh speak.sh "A text." out.wav --ref_audio voice.wav --ref_text "What is said in it."')
        + "\nFrom Python, with everything:\n\n"
        + block(
            "python",
            "from omnivoice import OmniVoice\nimport paretone_omnivoice\n\n"
            'model = OmniVoice.from_pretrained("k2-fsa/OmniVoice", **paretone_omnivoice.loading("this folder"))\n'
            'paretone_omnivoice.apply(model, "this folder")\n'
            'audio = model.generate("A text.", ref_audio="voice.wav", ref_text="What is said in it.")[0]',
        )
    )
    return {
        FILE: json_file(description),
        "paretone_omnivoice.py": copied("paretone_omnivoice"),
        "speak.sh": script.encode(),
        **described("the official omnivoice package", order, [usage]),
    }


TARGET = Target(
    NAME,
    "Official OmniVoice package",
    "the profile, a module that applies it, and the package's command with its flags",
    "the official omnivoice package",
    why_not,
    options,
    contents,
    frozenset({OPTIONS, PRECISION}),
    reads=False,
)
