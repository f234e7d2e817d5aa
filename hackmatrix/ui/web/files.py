"""Files of the package that pages are made of."""

from importlib import resources


def files_in(room: str, folder: str = "static") -> dict[str, bytes]:
    """The files in a folder of a room of `ui`, by name."""
    files = (resources.files("hackmatrix.ui") / room / folder).iterdir()
    return {file.name: file.read_bytes() for file in files if file.is_file()}
