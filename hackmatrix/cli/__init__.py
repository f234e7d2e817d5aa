"""The command line: one module per subcommand, found through the table in `main`."""
