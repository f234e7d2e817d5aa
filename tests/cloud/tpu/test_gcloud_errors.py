"""The meaning of errors: texts of gcloud, of Google's services and of ssh."""

import pytest

from hackmatrix.cloud.tpu.gcloud import (
    ErrorType,
    last_words,
    trouble_of,
    trouble_of_ssh,
    what_to_do,
)

ERRORS = (
    ("You do not currently have an active account selected.", ErrorType.AUTH),
    ("Please run: gcloud auth login", ErrorType.AUTH),
    ("There was a problem refreshing your current auth tokens", ErrorType.AUTH),
    ("Reauthentication failed.", ErrorType.AUTH),
    ("invalid_grant: Bad Request", ErrorType.AUTH),
    ("Quota limit 'TPUV4sPod' has been exceeded. Limit: 32 in zone us-central2-b", ErrorType.QUOTA),
    ("Quota limit 'TPUV6E' has been exceeded. Limit: 0 in region us-east5.", ErrorType.NO_QUOTA),
    ("RESOURCE_EXHAUSTED: Resource has been exhausted", ErrorType.QUOTA),
    ("There is no more capacity in the zone; you can try in another", ErrorType.CAPACITY),
    ("ZONE_RESOURCE_POOL_EXHAUSTED", ErrorType.CAPACITY),
    ("Insufficient reserved capacity. Contact customer support", ErrorType.CAPACITY),
    ("PERMISSION_DENIED: Permission 'tpu.nodes.create' denied", ErrorType.PERMISSION),
    ("User does not have permission to submit requests for accelerators", ErrorType.PERMISSION),
    ("Cloud TPU API has not been used in project 1 or is disabled.", ErrorType.PERMISSION),
    ("NOT_FOUND: Resource 'projects/p/locations/z/nodes/n' was not found", ErrorType.NOT_FOUND),
    ("One or more URLs matched no objects.", ErrorType.NOT_FOUND),
    ("gs://nope not found: 404.", ErrorType.NOT_FOUND),
    ("ALREADY_EXISTS: Resource 'n' already exists", ErrorType.EXISTS),
    ("INVALID_ARGUMENT: Cloud TPU received a bad request.", ErrorType.INVALID),
    ("unrecognized arguments: --vm-image=x", ErrorType.INVALID),
    ("Unable to find the server at tpu.googleapis.com", ErrorType.NETWORK),
    ("HTTPSConnectionPool: Max retries exceeded", ErrorType.NETWORK),
    ("UNAVAILABLE: The service is currently unavailable.", ErrorType.NETWORK),
    ("INTERNAL: an internal error has occurred", ErrorType.NETWORK),
    ("something that nobody has seen", ErrorType.UNKNOWN),
)


@pytest.mark.parametrize(
    ("text", "kind"), ERRORS, ids=lambda it: it.name if isinstance(it, ErrorType) else ""
)
def test_kinds(text: str, kind: ErrorType) -> None:
    assert trouble_of(f"ERROR: (gcloud.compute.tpus) {text}\n").error_type is kind


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (255, "ssh: connect to host 1.2.3.4 port 22: Connection timed out", ErrorType.SSH),
        (1, "ERROR: [/usr/bin/ssh] exited with return code [255].", ErrorType.SSH),
        (124, "ERROR: timed out after 180 s", ErrorType.SSH),
        (1, 'This TPU has terminal state "PREEMPTED", so it cannot be used', ErrorType.SSH),
        (1, "SSH Key is not present in the SSH agent. Please run ssh-add", ErrorType.SSH_KEY),
        (1, "run: gcloud auth login", ErrorType.AUTH),
        (128, "fatal: Remote branch nope not found in upstream origin", ErrorType.SETUP),
    ],
)
def test_kinds_of_commands_on_hosts(code: int, text: str, kind: ErrorType) -> None:
    assert trouble_of_ssh(code, text).error_type is kind


def test_last_words_are_one_line() -> None:
    text = "ERROR: (gcloud.x) it   failed\nPlease run:\n\n  $ gcloud auth login\n"
    assert last_words(text) == "ERROR: (gcloud.x) it failed"
    assert last_words("") == ""
    assert len(last_words("x" * 1000)) == 300


@pytest.mark.parametrize(
    "kind", ["NO_GCLOUD", "AUTH", "SSH_KEY", "NO_QUOTA", "PERMISSION", "INVALID"]
)
def test_what_needs_a_person_comes_with_advice(kind: str) -> None:
    assert "`" in what_to_do(ErrorType[kind])
