"""Benchmarks: what skep must show, beside the raw server and other queues. See README.md."""
