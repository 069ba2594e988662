"""A stand-in for the Hugging Face Hub, for the client's own requests: repositories in memory, private ones for one token."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "hf_letmein"
OWNER = "me"


@dataclass
class Repository:
    private: bool
    files: dict[str, bytes] = field(default_factory=lambda: {".gitattributes": b"*.zip filter=lfs\n"})
    messages: list[str] = field(default_factory=list)

    @property
    def sha(self):
        text = "".join(f"{name}{hashlib.sha1(content).hexdigest()}" for name, content in sorted(self.files.items()))
        return hashlib.sha1(text.encode()).hexdigest()


@dataclass
class Hub:
    """The state, the requests that came, and a switch for failures.

    Attributes:
        repositories: By id.
        blobs: Large files that were uploaded, by their SHA-256.
        uploads: SHA-256 of each upload, in order.
        requests: Method and path of each request.
        failing: Paths that match it are answered with code 500.
    """

    url: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    uploads: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    created: list[dict] = field(default_factory=list)
    failing: str = ""

    def add(self, repo_id, files, private=False):
        self.repositories[repo_id] = Repository(private, dict(files))


@contextlib.contextmanager
def serve_hub():
    """Serves a hub in a thread of this process."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def git_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Prints nothing."""

    def _handle(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            self.body = self._chunks()
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {path}")
        if self.hub.failing and re.search(self.hub.failing, path):
            return self._json(500, {"error": "the hub is on fire"})
        for method, pattern, name in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match and self.command in method.split():
                return getattr(self, name)(**match.groupdict())
        return self._json(404, {"error": f"no route for {path}"})

    do_GET = do_POST = do_PUT = do_HEAD = _handle  # noqa: N815 (http.server's own names)

    def _chunks(self):
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    @property
    def _is_owner(self):
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _answer(self, code, content, headers):
        self.send_response(code)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _json(self, code, content, **headers):
        self._answer(code, json.dumps(content).encode(), {"Content-Type": "application/json", **headers})

    def _open(self, repo, write=False):
        """The repository, if it is open to whoever asks; else answers."""
        found = self.hub.repositories.get(repo)
        if found is None or (found.private and not self._is_owner):
            self._json(404 if self._is_owner else 401, {"error": "not found"}, **{"X-Error-Code": "RepoNotFound"})
            return None
        if write and not self._is_owner:
            self._json(403, {"error": "no"})
            return None
        return found

    def whoami(self):
        if not self._is_owner:
            return self._json(401, {"error": "no token"})
        return self._json(200, {"name": OWNER, "type": "user"})

    def create(self):
        asked = json.loads(self.body)
        self.hub.created.append(asked)
        repo_id = f"{asked['organization'] or OWNER}/{asked['name']}"
        if not self._is_owner:
            return self._json(401, {"error": "no token"})
        if repo_id in self.hub.repositories:
            return self._json(409, {"error": "there already", "url": f"{self.hub.url}/{repo_id}"})
        private = asked.get("visibility") == "private" or asked.get("private") is True
        self.hub.repositories[repo_id] = Repository(private)
        return self._json(200, {"url": f"{self.hub.url}/{repo_id}"})

    def info(self, repo, revision=None):
        found = self._open(repo)
        if found is None:
            return None
        if revision not in (None, "main", found.sha):
            return self._json(404, {"error": "revision"}, **{"X-Error-Code": "RevisionNotFound"})
        siblings = [{"rfilename": name} for name in found.files]
        return self._json(200, {"id": repo, "sha": found.sha, "private": found.private, "siblings": siblings})

    def tree(self, repo, revision):
        found = self._open(repo)
        entries = [
            {"type": "file", "path": name, "size": len(content), "oid": git_id(content)}
            for name, content in (found.files if found else {}).items()
        ]
        return found and self._json(200, entries)

    def validate(self):
        return self._json(200, {"errors": [], "warnings": []})

    def preupload(self, repo, revision):
        found = self._open(repo, write=True)
        if found is None:
            return None
        answers = []
        for file in json.loads(self.body)["files"]:
            large = file["path"].endswith((".zip", ".mp4", ".pkl"))
            there = found.files.get(file["path"])
            known = {} if there is None else {"oid": hashlib.sha256(there).hexdigest() if large else git_id(there)}
            mode = "lfs" if large else "regular"
            answers.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, **known})
        return self._json(200, {"files": answers})

    def batch(self, repo):
        if self._open(repo, write=True) is None:
            return None
        objects = []
        for wanted in json.loads(self.body)["objects"]:
            missing = wanted["oid"] not in self.hub.blobs
            actions = {"actions": {"upload": {"href": f"{self.hub.url}/lfs/{wanted['oid']}"}}} if missing else {}
            objects.append({**wanted, **actions})
        return self._json(200, {"objects": objects, "transfer": "basic"})

    def upload(self, oid):
        assert hashlib.sha256(self.body).hexdigest() == oid
        self.hub.blobs[oid] = self.body
        self.hub.uploads.append(oid)
        return self._json(200, {})

    def commit(self, repo, revision):
        found = self._open(repo, write=True)
        if found is None:
            return None
        for line in map(json.loads, self.body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                found.messages.append(value["summary"])
            elif line["key"] == "file":
                found.files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                found.files[value["path"]] = self.hub.blobs[value["oid"]]
            elif line["key"] == "deletedFile":
                del found.files[value["path"]]
        return self._json(200, {"commitUrl": f"{self.hub.url}/{repo}/commit/{found.sha}", "commitOid": found.sha})

    def resolve(self, repo, revision, name):
        found = self._open(repo)
        if found is None:
            return None
        commit = {"X-Repo-Commit": found.sha}
        if name not in found.files:
            return self._json(404, {"error": "entry"}, **{"X-Error-Code": "EntryNotFound", **commit})
        content = found.files[name]
        return self._answer(200, content, {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', **commit})


_REPO = r"(?P<repo>[^/]+/[^/]+?)"
_ROUTES = (
    ("GET", "/api/whoami-v2", "whoami"),
    ("POST", "/api/repos/create", "create"),
    ("POST", "/api/validate-yaml", "validate"),
    ("GET", f"/api/models/{_REPO}", "info"),
    ("GET", f"/api/models/{_REPO}/revision/(?P<revision>[^/]+)", "info"),
    ("GET", f"/api/models/{_REPO}/tree/(?P<revision>[^/]+)", "tree"),
    ("POST", f"/api/models/{_REPO}/preupload/(?P<revision>[^/]+)", "preupload"),
    ("POST", f"/api/models/{_REPO}/commit/(?P<revision>[^/]+)", "commit"),
    ("POST", rf"/{_REPO}\.git/info/lfs/objects/batch", "batch"),
    ("PUT", "/lfs/(?P<oid>[0-9a-f]{64})", "upload"),
    ("GET HEAD", f"/{_REPO}/resolve/(?P<revision>[^/]+)/(?P<name>.+)", "resolve"),
)
