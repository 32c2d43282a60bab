"""The bundled masked-diffusion model: OmniVoice's architecture, small, over the codes of a small residual codec."""
