"""Writing a study's definition as TOML, as a person would write it, or as JSON. Torch-free.

Source: TOML v1.0.0, https://toml.io/en/v1.0.0: basic strings escape as JSON's do, and so does DEL; keys of letters,
digits, ``-`` and ``_`` are bare; a table's own values come before its tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from paretone.reading import parsed_json, parsed_toml

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_FOLDER = re.compile(r"""^([ \t]*folder[ \t]*=[ \t]*)(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')""", re.MULTILINE)


def written(definition: Mapping[str, object], file: str) -> str:
    """A study's definition as its file has it: JSON where the name ends so, else TOML."""
    if file.endswith(".json"):
        return json.dumps(dict(definition), indent=1, ensure_ascii=False)
    return to_toml(definition)


def with_folder(text: str, file: str, folder: str) -> str:
    """The study's file ``text`` with the model's checkpoint in another ``folder``; comments stay."""
    if file.endswith(".json"):
        return written({**parsed_json(text), "folder": folder}, file)
    wanted = {**parsed_toml(text), "folder": folder}
    changed = _FOLDER.sub(lambda found: f"{found[1]}{_text(folder)}", text, count=1)
    try:
        if parsed_toml(changed) == wanted:
            return changed
    except ValueError:
        pass
    return to_toml(wanted)


def to_toml(definition: Mapping[str, object]) -> str:
    """``definition`` as TOML that reads back equal. Raises :class:`TypeError` for a value that TOML has no form of."""
    return "\n".join(_table(definition, "")) + "\n"


def _table(values: Mapping[str, object], path: str) -> Iterator[str]:
    """Lines of one table: its own values first, tables within after them, each under its heading."""
    headed, listed = {}, {}
    for name, value in values.items():
        if isinstance(value, Mapping) and _has_heading(value, path):
            headed[name] = value
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            listed[name] = value
        else:
            yield from _lines(_key(name), value)
    for name, value in headed.items():
        yield from ("", f"[{path}{_key(name)}]")
        yield from _table(value, f"{path}{_key(name)}.")
    for name, tables in listed.items():
        for one in tables:
            yield from ("", f"[[{path}{_key(name)}]]")
            yield from _table(one, f"{path}{_key(name)}.")


def _has_heading(value: Mapping[str, object], path: str) -> bool:
    """Whether a table gets a heading: at the top, and where it holds tables itself. Others take a line a value."""
    holds_tables = any(isinstance(one, Mapping) and not _is_range(one) for one in value.values())
    return not _is_range(value) and (not path or holds_tables)


def _is_range(value: Mapping[str, object]) -> bool:
    """Whether a table is one value: a range of a search."""
    return bool({"low", "high"} & set(value))


def _lines(key: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and value and not _is_range(value):
        for name, inner in value.items():
            yield from _lines(f"{key}.{_key(name)}", inner)
    else:
        yield f"{key} = {_value(value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case Mapping():
            inner = ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"TOML has no form of {value!r}")


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
