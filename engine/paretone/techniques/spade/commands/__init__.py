"""SPADE on the command line: measuring layers, training students."""
