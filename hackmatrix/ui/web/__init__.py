"""Shared by the servers of the page and of the monitor: who may talk to them."""
