"""Contents of exported files: READMEs, JSON, prompts as ids, and the modules copied into exports. Torch-free."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paretone.export.accounts import Account
from paretone.export.targets import Order
from paretone.models.base import OfficialIds, OfficialPrompt
from paretone.models.catalogue import entry
from paretone.setting.knobs import Values


def readme(title: str, order: Order, parts: Sequence[str], not_run: str = "") -> bytes:
    """README: purpose of the folder, ``parts`` in Markdown, the account. ``not_run`` names the parts never run against
    the real program."""
    profile = order.profile
    heading = (
        f"# A Paretone profile for {title}\n\n"
        f"Model: {entry(profile.setting.model).title} ({profile.variant}). The profile was made on the checkpoint "
        f"with SHA-256\n`{profile.checkpoint}`;\nwith other weights it may sound worse.\n"
    )
    untried = [f"## Not tried\n\n{not_run}\n"] if not_run else []
    ending = (
        '`profile.json` is the profile itself: `paretone speak --profile profile.json --text "…" --out out.wav` speaks '
        "with\nall of it.\n"
    )
    return "\n".join([heading, *parts, lists(order.account), *untried, ending]).encode()


def lists(account: Account) -> str:
    found = []
    for title, lines in (("Honoured of the profile", account.honours), ("Dropped", account.drops)):
        items = "".join(f"* {line.subject}: {line.how}\n" for line in lines)
        found.append(f"## {title}\n\n" + (items or "Nothing.\n"))
    return "\n".join(found)


def block(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```\n"


def json_file(data: Mapping[str, object]) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


_FOLDER = Path(__file__).parent / "copied"


def copied(name: str) -> bytes:
    return (_FOLDER / f"{name}.py").read_bytes()


# --- Prompts ----------------------------------------------------------------------------------------------------------
PROMPTS = "prompts.json"
KIND, SCHEMA = "paretone prompts", 1
SAMPLING = ("temperature", "top_k", "top_p", "repetition_penalty", "repeats")
"""Options of token sampling."""


def sampling_of(options: Values) -> dict[str, Any]:
    return {name: options[name] for name in SAMPLING if name in options}


def prompts_file(ids: OfficialIds, prompts: Sequence[OfficialPrompt], voice: str, options: Values) -> bytes:
    """File of ``prompts`` in the voice named ``voice``, under ``options``."""
    vocabulary = {"size": ids.size, "first_code": ids.first_code, "codes": ids.codes, "stops": list(ids.stops)}
    listed = [
        {
            "text": one.text,
            "voice": voice,
            "ids": list(one.ids),
            "positions": None if one.positions is None else list(one.positions),
            "minimum": one.minimum,
            "maximum": one.maximum,
        }
        for one in prompts
    ]
    content = {
        "kind": KIND,
        "schema": SCHEMA,
        "vocabulary": vocabulary,
        "sampling": sampling_of(options),
        "prompts": listed,
    }
    return (json.dumps(content) + "\n").encode()
