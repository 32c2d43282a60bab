"""What can be measured: time, memory, the machine, loudness, fidelity, intelligibility."""
