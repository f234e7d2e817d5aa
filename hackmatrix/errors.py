"""The one exception that the user can mend."""


class UserError(ValueError):
    """Wrong input: a flag, a file, a value. One line that says what is wrong and how to mend it.

    The command line prints it without a traceback and exits with 2. Nothing has been changed before
    it is raised.
    """
