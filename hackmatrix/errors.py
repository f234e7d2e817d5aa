"""The exception for errors that the user can fix."""


class UserError(ValueError):
    """Wrong input: a flag, a file, a value. One line that says what is wrong and how to fix it.

    The command line prints it without a traceback and exits with 2. It is raised before anything
    has been changed.
    """
