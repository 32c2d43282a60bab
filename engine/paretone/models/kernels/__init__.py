"""Faster implementations of networks: fused layers, packed products, CUDA graphs, compiled code."""
