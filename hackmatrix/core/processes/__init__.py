"""Processes of this package: how one is started and supervised, how several train as one."""
