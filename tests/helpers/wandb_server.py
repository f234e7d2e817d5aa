"""A stand-in for W&B's server, as far as a run talks to it: it can't show what the real one does.

It answers wandb's own client, so that what is tested is what that client sends.
"""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class WandbServer:
    """Keeps runs with their history; a context manager."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.alerts: list[tuple[str, str]] = []
        self.artifacts: list[dict[str, Any]] = []
        self.refused: set[str] = set()  # operations that fail
        self.silent = False  # takes connections and never answers
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer({})

            def do_PUT(self) -> None:
                self._body()
                self._answer({})

            def do_POST(self) -> None:
                body = self._body()
                while server.silent:
                    time.sleep(0.05)
                if self.path.endswith("/graphql"):
                    self._answer(server.query(json.loads(body)))
                elif self.path.endswith("/file_stream"):
                    server.stream(self.path.split("/")[-2], json.loads(body))
                    self._answer({})
                else:
                    self._answer({})

            def _body(self) -> bytes:
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def _answer(self, answer: object) -> None:
                content = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.silent = False
        self._http.shutdown()
        self._http.server_close()

    def query(self, request: dict[str, Any]) -> dict[str, Any]:
        operation = request["query"].replace("(", " ").split()[1]
        if operation in self.refused:
            return {"data": None, "errors": [{"message": f"{operation} is not for you"}]}
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
        answer = getattr(self, f"on_{name}", None)
        return {"data": answer(request.get("variables") or {}) if answer else {}}

    def stream(self, run: str, request: dict[str, Any]) -> None:
        sent = request.get("files", {}).get("wandb-history.jsonl")
        if sent:
            rows = self.runs[run]["rows"]
            rows[sent["offset"] :] = [json.loads(line) for line in sent["content"]]
        if "exitcode" in request:
            self.runs[run]["exitcode"] = request["exitcode"]

    def on_viewer(self, _: dict[str, Any]) -> dict[str, Any]:
        me = {"id": "u", "entity": "me", "username": "me", "flags": "{}", "teams": {"edges": []}}
        return {"viewer": me}

    def on_run_resume_status(self, asked: dict[str, Any]) -> dict[str, Any]:
        run = self.runs.get(asked["name"])
        if run is None:
            return {"model": {"bucket": None}}
        tail = [json.dumps(run["rows"][-1])] if run["rows"] else []
        bucket = self._bucket(asked["name"]) | {
            "summaryMetrics": "{}",
            "logLineCount": 0,
            "eventsLineCount": 0,
            "historyTail": json.dumps(tail),
            "eventsTail": "[]",
            "tags": [],
            "notes": None,
            "wandbConfig": '{"t": {}}',
        }
        entity = {"id": "e", "name": "me"}
        return {"model": {"id": "p", "name": "p", "entity": entity, "bucket": bucket}}

    def on_upsert_bucket(self, asked: dict[str, Any]) -> dict[str, Any]:
        new = asked["name"] not in self.runs
        run = self.runs.setdefault(asked["name"], {"rows": [], "project": asked["project"]})
        for field in ("displayName", "config", "commit", "summaryMetrics"):
            run[field] = asked[field] or run.get(field)
        return {"upsertBucket": {"bucket": self._bucket(asked["name"]), "inserted": new}}

    def on_rewind_run(self, asked: dict[str, Any]) -> dict[str, Any]:
        rows = self.runs[asked["runName"]]["rows"]
        rows[:] = [row for row in rows if row["_step"] <= asked["metricValue"]]
        return {"rewindRun": {"rewoundRun": self._bucket(asked["runName"])}}

    def on_create_run_files(self, asked: dict[str, Any]) -> dict[str, Any]:
        files = [{"name": name, "uploadUrl": f"{self.url}/{name}"} for name in asked["files"]]
        return {"createRunFiles": {"runID": "r", "uploadHeaders": [], "files": files}}

    def on_notify_scriptable_run_alert(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.alerts.append((asked["title"], asked["text"]))
        return {"notifyScriptableRunAlert": {"success": True}}

    def on_artifact_type(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"project": {"artifact": None}}

    def on_create_artifact(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.artifacts.append(asked["input"])
        newest = {"latestArtifact": {"id": "a"}}  # as if the same files were here before
        artifact = {"id": "a", "state": "COMMITTED", "artifactSequence": newest}
        return {"createArtifact": {"artifact": artifact}}

    def _bucket(self, name: str) -> dict[str, Any]:
        run = self.runs[name]
        return {
            "id": name,
            "name": name,
            "displayName": run["displayName"],
            "description": None,
            "config": "{}",
            "sweepName": None,
            "historyLineCount": len(run["rows"]),
            "project": {"id": "p", "name": run["project"], "entity": {"id": "e", "name": "me"}},
        }
