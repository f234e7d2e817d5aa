"""The benchmarks behind the figures in the documents; they are not part of the package.

Each module is a command to run in the repository's root: `python -m benchmarks.peers --help`.
"""
