"""Equal safetensors files for equal content. Torch-free."""

from __future__ import annotations

import json


def with_sorted_metadata(content: bytes) -> bytes:
    """The safetensors file ``content`` with its metadata sorted. The library writes them in another order every time,
    and a second file of the same weights has to be the same to the byte, or it would not be known for the same."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    if "__metadata__" not in header:
        return content
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text = text.ljust(-(-len(text) // 8) * 8)  # As the format wants it, so that the tensors are aligned.
    return len(text).to_bytes(8, "little") + text + content[start:]
