"""The meaning of errors: texts of gcloud, of Google's services and of ssh."""

import pytest

from hackmatrix.cloud.tpu.gcloud_errors import (
    Kind,
    last_words,
    trouble_of,
    trouble_of_ssh,
    what_to_do,
)

ERRORS = (
    (
        "You do not currently have an active account selected.\nPlease run: gcloud auth login",
        Kind.AUTH,
    ),
    (
        "There was a problem refreshing your current auth tokens: Reauthentication failed.",
        Kind.AUTH,
    ),
    ("invalid_grant: Bad Request", Kind.AUTH),
    (
        "Quota limit 'TPUV4sPreemptiblePod' has been exceeded. Limit: 32 in zone us-central2-b.",
        Kind.QUOTA,
    ),
    (
        "Quota limit 'TPUV6EPreemptible' has been exceeded. Limit: 0 in region us-east5.",
        Kind.NO_QUOTA,
    ),
    ("RESOURCE_EXHAUSTED: Resource has been exhausted", Kind.QUOTA),
    (
        'There is no more capacity in the zone "us-central2-b"; you can try in another zone',
        Kind.CAPACITY,
    ),
    ("ZONE_RESOURCE_POOL_EXHAUSTED", Kind.CAPACITY),
    ("Insufficient reserved capacity. Contact customer support", Kind.CAPACITY),
    ("PERMISSION_DENIED: Permission 'tpu.nodes.create' denied", Kind.PERMISSION),
    ("User does not have permission to submit requests for accelerator type v4-8", Kind.PERMISSION),
    ("Cloud TPU API has not been used in project 1 before or it is disabled.", Kind.PERMISSION),
    ("NOT_FOUND: Resource 'projects/p/locations/z/nodes/n' was not found", Kind.NOT_FOUND),
    ("One or more URLs matched no objects.", Kind.NOT_FOUND),
    ("gs://nope not found: 404.", Kind.NOT_FOUND),
    ("ALREADY_EXISTS: Resource 'n' already exists", Kind.EXISTS),
    ("INVALID_ARGUMENT: Cloud TPU received a bad request.", Kind.INVALID),
    ("unrecognized arguments: --vm-image=x", Kind.INVALID),
    ("Unable to find the server at tpu.googleapis.com", Kind.NETWORK),
    ("HTTPSConnectionPool: Max retries exceeded", Kind.NETWORK),
    ("UNAVAILABLE: The service is currently unavailable.", Kind.NETWORK),
    ("INTERNAL: an internal error has occurred", Kind.NETWORK),
    ("something that nobody has seen", Kind.UNKNOWN),
)


@pytest.mark.parametrize(
    ("text", "kind"), ERRORS, ids=lambda it: it.name if isinstance(it, Kind) else ""
)
def test_kinds(text: str, kind: Kind) -> None:
    assert trouble_of(f"ERROR: (gcloud.compute.tpus) {text}\n").kind is kind


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (255, "ssh: connect to host 1.2.3.4 port 22: Connection timed out", Kind.SSH),
        (1, "ERROR: [/usr/bin/ssh] exited with return code [255].", Kind.SSH),
        (124, "ERROR: timed out after 180 s", Kind.SSH),
        (1, 'This TPU has terminal state "PREEMPTED", so it cannot be used anymore.', Kind.SSH),
        (1, "SSH Key is not present in the SSH agent. Please run ssh-add", Kind.SSH_KEY),
        (1, "run: gcloud auth login", Kind.AUTH),
        (128, "fatal: Remote branch nope not found in upstream origin", Kind.SETUP),
    ],
)
def test_kinds_of_commands_on_hosts(code: int, text: str, kind: Kind) -> None:
    assert trouble_of_ssh(code, text).kind is kind


def test_last_words_are_one_line() -> None:
    text = "ERROR: (gcloud.x) it   failed\nPlease run:\n\n  $ gcloud auth login\n"
    assert last_words(text) == "ERROR: (gcloud.x) it failed"
    assert last_words("") == ""
    assert len(last_words("x" * 1000)) == 300


def test_what_needs_a_person_comes_with_advice() -> None:
    for kind in (
        Kind.NO_GCLOUD,
        Kind.AUTH,
        Kind.SSH_KEY,
        Kind.NO_QUOTA,
        Kind.PERMISSION,
        Kind.INVALID,
    ):
        assert "`" in what_to_do(kind)
