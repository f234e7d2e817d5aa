"""The command line: one module per subcommand, listed in the table in `main`."""
