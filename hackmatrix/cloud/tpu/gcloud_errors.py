"""The meaning of gcloud's errors, and their remedies."""

import re
from enum import Enum
from typing import NamedTuple


class ErrorType(Enum):
    """A kind of error."""

    NO_GCLOUD = "gcloud is not installed"
    AUTH = "your login has expired"
    SSH_KEY = "your ssh key is not in the ssh agent"
    SSH = "ssh does not reach the TPU"
    EXISTS = "it is there already"
    NOT_FOUND = "it is not there"
    NO_BUCKET = "there is no such bucket"
    NO_QUOTA = "the project has no quota for this type in this zone"
    QUOTA = "the quota is used up"
    CAPACITY = "the zone has no free TPU of this type"
    PERMISSION = "you may not do this"
    INVALID = "gcloud does not accept this"
    NETWORK = "the network or Google's service did not answer"
    SETUP = "a host can't be set up"
    UNKNOWN = "gcloud failed"


class Trouble(NamedTuple):
    """An error: its kind, and gcloud's own last words."""

    error_type: ErrorType
    message: str

    def __str__(self) -> str:
        return (
            f"{self.error_type.value} ({self.message})" if self.message else self.error_type.value
        )


# The first that matches counts: what is special stands before what is general.
_SIGNS = (
    (ErrorType.SSH_KEY, r"not present in the SSH agent"),
    (
        ErrorType.AUTH,
        r"gcloud auth (application-default )?login|auth tokens|invalid_grant|[Rr]eauthenticat"
        r"|active account selected|UNAUTHENTICATED",
    ),
    (ErrorType.NO_QUOTA, r"Limit: 0(\.0)?\b"),
    (
        ErrorType.CAPACITY,
        r"no more capacity|RESOURCE_POOL_EXHAUSTED|enough resources"
        r"|[Ii]nsufficient (reserved )?capacity",
    ),
    (ErrorType.QUOTA, r"[Qq]uota.*exceeded|QUOTA_EXCEEDED|RESOURCE_EXHAUSTED"),
    (ErrorType.EXISTS, r"ALREADY_EXISTS|already exists|already own it"),
    (
        ErrorType.PERMISSION,
        r"PERMISSION_DENIED|not have permission|SERVICE_DISABLED|has not been used in project"
        r"|\b403\b|AccessDenied",
    ),
    (ErrorType.NOT_FOUND, r"NOT_FOUND|matched no objects|not found|\b404\b"),
    (
        ErrorType.INVALID,
        r"INVALID_ARGUMENT|FAILED_PRECONDITION|unrecognized arguments|Invalid value"
        r"|Invalid choice|must be specified|\b400\b",
    ),
    (
        ErrorType.NETWORK,
        r"[Tt]imed? ?out|[Cc]onnection|[Uu]nable to find the server|unreachable|TransportError"
        r"|Max retries|name resolution|UNAVAILABLE|INTERNAL|DEADLINE_EXCEEDED|ABORTED|\b50[0234]\b",
    ),
)
_WHAT_TO_DO = {
    ErrorType.NO_GCLOUD: "install the Google Cloud CLI "
    "(https://cloud.google.com/sdk/docs/install), then run `gcloud init`",
    ErrorType.AUTH: "run `gcloud auth login`",
    ErrorType.SSH_KEY: "several hosts need it there: `eval $(ssh-agent)`, then "
    "`ssh-add ~/.ssh/google_compute_engine`",
    ErrorType.SSH: "look with `hackmatrix tpu ssh FILE`; a firewall may lack a rule for port 22: "
    "`gcloud compute firewall-rules list`",
    ErrorType.NO_BUCKET: "`hackmatrix tpu init FILE` makes it",
    ErrorType.NO_QUOTA: "see `hackmatrix tpu quota FILE`; a grant of TPU Research Cloud holds for "
    "the zones and types in its letter alone, spot and on-demand apart",
    ErrorType.QUOTA: "what was preempted, suspended or failed counts until it is deleted: "
    "`hackmatrix tpu list FILE`",
    ErrorType.CAPACITY: "others have them; another zone or a smaller type may be free",
    ErrorType.PERMISSION: "check project, zone and type, then that its services are on "
    "(`hackmatrix tpu init FILE`) and its quota (`hackmatrix tpu quota FILE`)",
    ErrorType.INVALID: "see `hackmatrix tpu images FILE` for the types and runtimes of the zone",
}


def what_to_do(error_type: ErrorType) -> str:
    """A piece of advice, or nothing."""
    return _WHAT_TO_DO.get(error_type, "")


def trouble_of(text: str) -> Trouble:
    """Reads what gcloud wrote to stderr."""
    kind = next((kind for kind, sign in _SIGNS if re.search(sign, text)), ErrorType.UNKNOWN)
    return Trouble(kind, last_words(text))


def trouble_of_ssh(code: int, text: str) -> Trouble:
    """Reads what gcloud wrote when a command on the hosts failed.

    The exit code 255 is ssh's own; another one is that of the command.
    """
    trouble = trouble_of(text)
    if trouble.error_type in (ErrorType.AUTH, ErrorType.SSH_KEY, ErrorType.NO_GCLOUD):
        return trouble
    connection = re.search(r"code \[255\]|Permission denied \(publickey|port 22\b", text)
    if code in (255, TIMED_OUT) or connection or ("cannot be" in text and "TPU has" in text):
        return Trouble(ErrorType.SSH, trouble.message)
    return Trouble(ErrorType.SETUP, trouble.message)


TIMED_OUT = 124  # exit code of a command that was ended here, as of timeout(1)


def last_words(text: str) -> str:
    """The last line that says something, at most 300 characters."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    errors = [line for line in lines if re.match(r"(ERROR|fatal|error)\b", line)]
    said = errors[-1:] or [line for line in lines if line][-1:]
    return said[0][:300] if said else ""
