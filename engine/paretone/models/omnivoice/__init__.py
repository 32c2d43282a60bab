"""OmniVoice, the masked-diffusion model of k2-fsa, from its official release."""
