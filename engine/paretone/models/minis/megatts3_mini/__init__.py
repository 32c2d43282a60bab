"""The bundled MegaTTS 3: the official transformer over latents of our own mel codec."""
