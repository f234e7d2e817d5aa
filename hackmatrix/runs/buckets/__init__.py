"""Runs in buckets: mirrored while they train, leased to one trainer, fetched by readers."""
