"""The bundled models that have no official class."""
