"""Machines of a cloud that train."""
