"""The one exception that is the user's to mend."""


class UserError(Exception):
    """Wrong input: a flag, a file, a value. One line that names what is wrong and how to mend it.

    The command line prints it without a traceback and exits with 2; before it is raised nothing has
    been changed.
    """
