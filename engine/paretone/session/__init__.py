"""Interface for front ends: messages, the engine thread, and the executor of commands."""
