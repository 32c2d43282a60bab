"""An engine elsewhere: typed messages, the server on the host, its client, and OpenSSH as the line between them."""
