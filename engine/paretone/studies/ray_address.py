"""Whether a Ray cluster can be at an address, known in seconds: Ray itself tries for five minutes. Torch-free."""

from __future__ import annotations

import os
import socket
import threading

from paretone.errors import StudyError

_CONNECT_SECONDS, _ANSWER_SECONDS, _LOOKUP_SECONDS = 3.0, 1.0, 4.5
"""Patience for a connection, for the answer to a greeting, and for all together, the look-up of the name included."""
_SCHEME = "ray://"
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""How a client of HTTP/2 begins, which Ray speaks: the preface and empty settings (RFC 9113, sections 3.4 and 6.5)."""
_SETTINGS = 4
"""Type of the frame that a server answers with first."""


def require_cluster(address: str) -> None:
    """Raise :class:`StudyError` if ``address``, ``HOST:PORT``, is none or nothing that can be Ray listens there.

    A listener that is silent may be a busy cluster, and passes.
    """
    host, _, port = address.removeprefix(_SCHEME).rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise StudyError(f"{address!r} is no address of a Ray cluster; give HOST:PORT, 'auto' or 'local'.")
    found: list[str] = []
    # A thread, because looking up a name has no time limit: after ours, it is left to end by itself.
    asking = threading.Thread(target=lambda: found.append(_why_not(host.strip("[]"), int(port))), daemon=True)
    asking.start()
    asking.join(_LOOKUP_SECONDS)
    why = found[0] if found else f"no answer within {_LOOKUP_SECONDS:g} seconds"
    if why:
        raise StudyError(
            f"There is no Ray cluster at {address!r} ({why}); start one with 'ray start --head', or give the address "
            "'local' for one of this machine alone."
        )


def _why_not(host: str, port: int) -> str:
    try:
        with socket.create_connection((host, port), _CONNECT_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") == "1":
                return ""
            connection.settimeout(_ANSWER_SECONDS)
            connection.sendall(_GREETING)
            try:
                answer = connection.recv(9)
            except TimeoutError:
                return ""
            return "" if len(answer) > 3 and answer[3] == _SETTINGS else "another program listens there"
    except TimeoutError:
        return "no answer"
    except (OSError, UnicodeError) as error:
        return (isinstance(error, OSError) and error.strerror) or str(error)
