"""A gcloud without Google: a world in a file, which commands and events change.

Run as a script named `gcloud`. The folder FAKE_GCLOUD holds `world.json`, `flags.json` (the flags
that the real gcloud takes) and `calls.jsonl`, where every call is written.

The world's `events` are changes by the number of a look (a `describe` of the request); its `fail`
holds, by verb, errors that the next calls meet: a text, or [exit code, text].
"""

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any


def main(argv: list[str], folder: Path) -> int:
    world = json.loads((folder / "world.json").read_text())
    with (folder / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps(argv) + "\n")
    own = argv[: argv.index("--")] if "--" in argv else argv
    words = [word for word in own if not word.startswith("-")]
    flags = dict(word.partition("=")[::2] for word in own if word.startswith("-"))
    table = flags_of(folder)
    command, values = known(words, table["commands"])
    if command is None:
        return error(2, f"Invalid choice: '{' '.join(words)}'.")
    takes = {*table["everywhere"], *table["commands"][command]}
    if unknown := sorted(set(flags) - takes):
        return error(2, f"unrecognized arguments: {unknown[0]}")
    code = answer(world, command, flags)
    if code == 0 and command == "storage rsync":
        for name in world.get("bucket", []):
            copy = Path(values[1], name.removeprefix(f"{values[0]}/"))
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.touch()
    (folder / "world.json").write_text(json.dumps(world))
    return code


@functools.cache
def flags_of(folder: Path) -> dict[str, Any]:
    """The flags that the real gcloud takes."""
    return dict(json.loads((folder / "flags.json").read_text()))


def known(words: list[str], commands: dict[str, Any]) -> tuple[str | None, list[str]]:
    """The command among words, and the words after it."""
    for length in range(len(words), 0, -1):
        if (name := " ".join(words[:length])) in commands:
            return name, words[length:]
    return None, []


def answer(world: dict[str, Any], command: str, flags: dict[str, str]) -> int:
    kind, verb = command.split()[-2:]
    name = f"{kind} {verb}"
    if name == "queued-resources describe":
        world["looks"] = world.get("looks", 0) + 1
        world.update(world.get("events", {}).pop(str(world["looks"]), {}))
        if world.get("hosts") == "ended" and not world.get("code") and "gs://" in world["command"]:
            marker = world["command"].split("--marker ")[1].split()[0]
            world["bucket"] = [*world.get("bucket", []), marker]
    failures = world.get("fail", {}).get(name, [])
    if failures:
        failure = failures.pop(0)
        if failure is not None:
            code, text = failure if isinstance(failure, list) else (1, failure)
            return error(code, text)
    work = {
        "queued-resources create": create,
        "queued-resources describe": describe_request,
        "queued-resources delete": delete,
        "tpu-vm create": create_node,
        "tpu-vm describe": describe_node,
        "tpu-vm delete": delete,
        "tpu-vm start": start_node,
        "tpu-vm ssh": ssh,
        "tpu-vm scp": scp,
        "storage ls": list_bucket,
        "projects describe": lambda world, _: say(world.get("project_number", "")),
        "quota list": lambda world, _: say(json.dumps(world.get("quotas", []))),
    }.get(name, nothing)
    return work(world, flags)


def error(code: int, text: str) -> int:
    print(f"ERROR: (gcloud) {text}", file=sys.stderr)
    return code


def say(text: object) -> int:
    print(text)
    return 0


def nothing(__: dict[str, Any], _: dict[str, str]) -> int:
    return 0


def create(world: dict[str, Any], _: dict[str, str]) -> int:
    if world.get("queue"):
        return error(1, "ALREADY_EXISTS: Resource already exists.")
    world["made"] = world.get("made", 0) + 1
    world["queue"], world["waits"] = "WAITING_FOR_RESOURCES", world.get("queue_looks", 1)
    return 0


def create_node(world: dict[str, Any], _: dict[str, str]) -> int:
    world["node"], world["hosts"] = "READY", "bare"
    return 0


def start_node(world: dict[str, Any], _: dict[str, str]) -> int:
    world["node"] = "READY"
    return 0


def describe_request(world: dict[str, Any], _: dict[str, str]) -> int:
    if not world.get("queue"):
        return error(1, "NOT_FOUND: Resource 'projects/p' was not found")
    if world["queue"] == "WAITING_FOR_RESOURCES":
        world["waits"] -= 1
        if world["waits"] < 0:
            # The start-up script may have set the hosts up before anybody looks.
            world.update(queue="ACTIVE", node="READY", hosts=world.get("starts", "bare"))
    told: dict[str, Any] = {"state": world["queue"]}
    if world.get("reason"):
        told["failedData"] = {"error": {"code": 8, "message": world["reason"]}}
    print(json.dumps({"name": "request", "state": told}))
    return 0


def describe_node(world: dict[str, Any], _: dict[str, str]) -> int:
    if not world.get("node"):
        return error(1, "NOT_FOUND: Resource 'projects/p' was not found")
    print(json.dumps({"state": world["node"], "createTime": "2026-11-22T08:00:00.123456789Z"}))
    return 0


def delete(world: dict[str, Any], _: dict[str, str]) -> int:
    if not (world.get("queue") or world.get("node")):
        return error(1, "NOT_FOUND: Resource 'projects/p' was not found")
    if world.get("sticks"):  # Google is deleting it, and does not get on
        world.update(sticks=world["sticks"] - 1, queue="DELETING", node="DELETING")
        return 0
    world.update(queue=None, node=None, hosts="bare", reason=None)
    return 0


def scp(world: dict[str, Any], _: dict[str, str]) -> int:
    if world.get("silent"):
        return error(255, "[/usr/bin/ssh] exited with return code [255].")
    world["copied"] = [*world.get("copied", []), world.get("made", 0)]
    return 0


def ssh(world: dict[str, Any], flags: dict[str, str]) -> int:
    if world.get("silent"):
        return error(255, "[/usr/bin/ssh] exited with return code [255].")
    command = flags.get("--command", "")
    if "setup.sh" in command:
        world["hosts"] = "idle"
    elif "worker start" in command:
        # The secrets of a TPU are copied just before; the set-up is another copy.
        secrets = world.get("copied", []).count(world.get("made", 0))
        world["trainings"] = [*world.get("trainings", []), [world.get("hosts"), secrets]]
        world.update(hosts="training", command=command)
    elif "worker look" in command:
        for host in range(world.get("num_hosts", 1)):
            told = {"host": f"t-w-{host}", "state": world["hosts"], "code": world.get("code", 0)}
            told["words"] = world.get("words", [])
            after = int(command.split("--after ")[1].split(";")[0])
            told |= {"lines": world.get("log", [])[after:], "next": len(world.get("log", []))}
            print("hackmatrix-tpu: " + json.dumps(told))
    return 0


def list_bucket(world: dict[str, Any], _: dict[str, str]) -> int:
    if not world.get("bucket"):
        return error(1, "One or more URLs matched no objects.")
    print("\n".join(world["bucket"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(os.environ["FAKE_GCLOUD"])))
