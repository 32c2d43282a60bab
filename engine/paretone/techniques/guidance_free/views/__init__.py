"""The figure of the CFG-free paper."""
