"""Faster ways to compute what a network computes: fused layers, packed products, CUDA graphs, compiled code."""
