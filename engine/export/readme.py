"""What the written READMEs have in common. Torch-free."""

from __future__ import annotations

from engine.export.accounts import Account, Line


def lists(account: Account) -> str:
    """What is honoured and what is dropped, as two lists in Markdown."""
    return "\n".join(
        f"## {title}\n\n{_items(lines)}"
        for title, lines in (("Honoured of the profile", account.honours), ("Dropped", account.drops))
    )


def _items(lines: tuple[Line, ...]) -> str:
    return "".join(f"* {line.subject}: {line.how}\n" for line in lines) or "Nothing.\n"
