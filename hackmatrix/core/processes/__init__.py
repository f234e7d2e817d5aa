"""Processes of this package: how one is started, supervised, and how several train as one."""
