"""Listening tests as data: trials, statistics, and results by setting. Free of Qt and of torch."""
