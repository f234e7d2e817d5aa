"""The game in a browser: its server, its files, the page as a static site (`docs/page.md`)."""
