"""An engine elsewhere: typed messages, the server on the host, its client, and OpenSSH as the line between them."""

from paretone.errors import PlainError

START = "paretone serve"
"""Starts an engine on a host."""
ENGINE = "paretone-engine"
"""Begins the line with port and token that it prints."""
TAKE_OVER, INSTALL = "Take over", "Install there"


class LinkError(PlainError):
    """The way to a host that cannot be opened. ``lasting``: trying again is of no use; ``remedy``: what would help, of
    :data:`TAKE_OVER` and :data:`INSTALL`."""

    def __init__(self, sentence: str, lasting: bool = True, remedy: str = "") -> None:
        super().__init__(sentence)
        self.lasting, self.remedy = lasting, remedy
