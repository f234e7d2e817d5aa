"""Views for people: the page, the terminal, films of games, and the monitor of runs."""
