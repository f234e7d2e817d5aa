"""The rules of HackMatrix, twice.

In plain Python and in JAX; and what is drawn, foreseen and checked of them.
"""
