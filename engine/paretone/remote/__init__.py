"""An engine elsewhere: typed messages, the server on the host, its client, and OpenSSH as the line between them."""

START = "paretone serve"
"""Starts an engine on a host."""
ENGINE = "paretone-engine"
"""Begins the line with port and token that it prints."""
