"""The exception for errors that the user can fix, and errors of the file system in words."""


class UserError(ValueError):
    """Wrong input: a flag, a file, a value. One line that says what is wrong and how to fix it.

    The command line prints it without a traceback and exits with 2. It is raised before anything
    has been changed.
    """


def in_words(error: OSError) -> str:
    """An error of the file system on one line: the file and the reason, as far as known."""
    reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
    return reason if error.filename is None else f"{error.filename}: {reason}"
