"""Interface for front ends: messages, the engine thread, and the executor that carries out commands."""
