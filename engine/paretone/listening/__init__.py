"""Listening tests as data: trials, their statistics, and what they say of settings. Free of Qt and of torch."""
