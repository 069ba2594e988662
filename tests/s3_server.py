"""As much of S3 as Arrow's file system asks for, in memory: one bucket that is there, any signature is taken."""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self._get(body=False)

    def do_GET(self):
        if "list-type" in self._query():
            self._list()
        else:
            self._get(body=True)

    def do_PUT(self):
        content = self._content()
        query, kept = self._query(), self.server.objects
        if "uploadId" in query:
            self.server.parts.setdefault(query["uploadId"][0], {})[int(query["partNumber"][0])] = content
        elif "x-amz-copy-source" in self.headers:
            content = kept[unquote(self.headers["x-amz-copy-source"]).lstrip("/")]
            kept[self._key()] = content
            self._answer(200, f"<CopyObjectResult><ETag>{_tag(content)}</ETag></CopyObjectResult>".encode())
            return
        else:
            kept[self._key()] = content
        self._answer(200, headers={"ETag": _tag(content)})

    def do_POST(self):
        content, query, key = self._content(), self._query(), self._key()
        bucket, _, name = key.partition("/")
        if "uploads" in query:
            upload = secrets.token_hex(8)
            self.server.parts[upload] = {}
            told = f"<Bucket>{bucket}</Bucket><Key>{escape(name)}</Key><UploadId>{upload}</UploadId>"
            self._answer(200, f"<InitiateMultipartUploadResult>{told}</InitiateMultipartUploadResult>".encode())
        elif "uploadId" in query:
            parts = self.server.parts[query["uploadId"][0]]
            self.server.objects[key] = b"".join(parts[number] for number in sorted(parts))
            told = f"<Bucket>{bucket}</Bucket><Key>{escape(name)}</Key><ETag>x</ETag>"
            self._answer(200, f"<CompleteMultipartUploadResult>{told}</CompleteMultipartUploadResult>".encode())
        else:
            for gone in re.findall(r"<Key>(.*?)</Key>", content.decode()):
                self.server.objects.pop(f"{bucket}/{gone}", None)
            self._answer(200, b"<DeleteResult></DeleteResult>")

    def do_DELETE(self):
        self.server.objects.pop(self._key(), None)
        self._answer(204)

    def log_message(self, *arguments):
        pass

    def _list(self):
        query, bucket = self._query(), self._key().strip("/")
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        names = sorted(key.partition("/")[2] for key in self.server.objects if key.startswith(f"{bucket}/{prefix}"))
        folders, files = {}, []
        for name in names:
            rest = name.removeprefix(prefix)
            if delimiter and delimiter in rest:
                folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
            else:
                files.append(name)
        written = quote if "encoding-type" in query else escape
        told = "".join(
            f"<Contents><Key>{written(name)}</Key><Size>{len(self.server.objects[f'{bucket}/{name}'])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for name in files
        )
        told += "".join(f"<CommonPrefixes><Prefix>{written(name)}</Prefix></CommonPrefixes>" for name in folders)
        count = len(files) + len(folders)
        about = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{count}</KeyCount>"
        about += "<IsTruncated>false</IsTruncated>" + ("<EncodingType>url</EncodingType>" if written is quote else "")
        self._answer(200, f"<ListBucketResult>{about}{told}</ListBucketResult>".encode())

    def _get(self, *, body):
        key = self._key()
        content = b"" if "/" not in key.rstrip("/") else self.server.objects.get(key)
        if content is None:
            told = b"" if not body else b"<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>"
            self._answer(404, told)
            return
        kind = {"Content-Type": "application/x-directory" if key.endswith("/") else "application/octet-stream"}
        about = {"ETag": _tag(content), "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", **kind}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is not None and body:
            first, last = int(asked[1]), int(asked[2] or len(content) - 1)
            about["Content-Range"] = f"bytes {first}-{min(last, len(content) - 1)}/{len(content)}"
            self._answer(206, content[first : last + 1], about)
        else:
            self._answer(200, content, about, body=body)

    def _answer(self, code, content=b"", headers=None, *, body=True):
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body and self.command != "HEAD":
            self.wfile.write(content)

    def _content(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            content = self._chunks()
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return _joined(content) if "aws-chunked" in self.headers.get("Content-Encoding", "") else content

    def _chunks(self):
        """Reads a body whose length is told piece by piece."""
        whole = b""
        while length := int(self.rfile.readline().partition(b";")[0], 16):
            whole += self.rfile.read(length)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return whole

    def _key(self):
        return unquote(urlsplit(self.path).path).lstrip("/")

    def _query(self):
        return parse_qs(urlsplit(self.path).query, keep_blank_values=True)


def _joined(content):
    """Takes a body in chunks apart, each after a line with its length."""
    whole = b""
    while content:
        line, _, content = content.partition(b"\r\n")
        length = int(line.partition(b";")[0], 16)
        if length == 0:
            break
        whole, content = whole + content[:length], content[length + 2 :]
    return whole


def _tag(content):
    return f'"{hashlib.md5(content).hexdigest()}"'


@contextlib.contextmanager
def s3_server():
    """Serves a bucket; gives the server, whose `objects` are its content, and the URL options that lead there."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.objects, server.parts = {}, {}
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server, f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=here"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
