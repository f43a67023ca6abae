"""A page on this machine in which a person types and sees clusters at once."""

import errno
import ipaddress
import json
import socket
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from .page import POLICY

#: The largest request that is read, in bytes: some 300,000 words.
LARGEST_REQUEST = 2_000_000
#: Seconds after which a connection that sends nothing is closed.
TIMEOUT = 30

#: Makes HTML of a text; the second value says whether its lines are of the form "Name: text". A
#: `ValueError` is told to the person who typed.
Process = Callable[[str, bool], str]

IN_USE = (
    "Port {port} is in use by another program: choose another one with --port, or let one be "
    "chosen with --port 0."
)
NOT_ALLOWED = "Cannot listen at {host}:{port} ({reason}): choose another --host or --port."


class PageServer(ThreadingHTTPServer):
    """Serves one page, and what is made of texts that it sends.

    page (str): The page.
    process (Callable[[str, bool], str]): Makes HTML of a text. It is called by one thread at a
        time.
    """

    daemon_threads = True

    def __init__(self, host: str, port: int, page: str = "", process: Process | None = None):
        self.page = page
        self.process = process
        self.lock = Lock()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as error:
            if getattr(error, "errno", None) == errno.EADDRINUSE:
                raise ValueError(IN_USE.format(port=port)) from error
            reason = getattr(error, "strerror", None) or str(error)
            raise ValueError(NOT_ALLOWED.format(host=host, port=port, reason=reason)) from error

    @property
    def url(self) -> str:
        """RETURNS (str): Where the page is."""
        host, port = self.server_address[:2]
        name = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{name}:{port}/"

    @property
    def is_local(self) -> bool:
        """RETURNS (bool): Whether only programs on this machine can reach it."""
        return ipaddress.ip_address(str(self.server_address[0])).is_loopback

    def server_bind(self) -> None:
        """Bind without looking up the name of the host, which may ask the network."""
        socket.socket.bind(self.socket, self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]


class Handler(BaseHTTPRequestHandler):
    """Answers a request."""

    server: PageServer
    server_version = "spacy-maverick"
    sys_version = ""
    timeout = TIMEOUT

    def do_GET(self) -> None:
        """Give the page."""
        if not self._is_addressed():
            return
        if self.path.split("?")[0] != "/":
            self._refuse(HTTPStatus.NOT_FOUND, "There is only one page here: /")
            return
        self._answer(HTTPStatus.OK, self.server.page, "text/html")

    def do_POST(self) -> None:
        """Resolve a text."""
        if not self._is_addressed():
            return
        if self.path != "/resolve":
            self._refuse(HTTPStatus.NOT_FOUND, "Texts are sent to /resolve.")
            return
        # Pages of other sites may send forms here, but not this type.
        if self.headers.get_content_type() != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Expected JSON.")
            return
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "Expected the length of the request.")
            return
        if int(length) > LARGEST_REQUEST:
            message = f"The text is too long: at most {LARGEST_REQUEST:,} bytes are read."
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
            return
        try:
            asked = json.loads(self.rfile.read(int(length)))
            text, speakers = asked["text"], asked.get("speakers", False)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            text = speakers = None
        if not isinstance(text, str) or not isinstance(speakers, bool):
            message = 'Expected {"text": "…", "speakers": false}.'
            self._refuse(HTTPStatus.BAD_REQUEST, message)
            return
        self._process(text, speakers)

    def _process(self, text: str, speakers: bool) -> None:
        # JSON may hold halves of characters, which no encoder takes.
        text = text.encode("utf8", "replace").decode("utf8")
        try:
            with self.server.lock:
                html = self.server.process(text, speakers) if self.server.process else ""
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        except Exception:
            message = "Something went wrong; the terminal of the server says what."
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, message)
            raise
        self._answer(HTTPStatus.OK, json.dumps({"html": html}), "application/json")

    def _is_addressed(self) -> bool:
        """Whether the request names this machine. One that came here by another name was sent by a
        page of somebody who let that name point here."""
        if not self.server.is_local:
            return True
        host = self.headers.get("Host", "").rsplit(":", 1)[0]
        if host in ("localhost", "127.0.0.1", "[::1]", self.url_host):
            return True
        self._refuse(HTTPStatus.FORBIDDEN, f"Open {self.server.url} instead.")
        return False

    @property
    def url_host(self) -> str:
        """RETURNS (str): The host of the page's address."""
        return self.server.url.removeprefix("http://").rsplit(":", 1)[0]

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        # What the client still sends is not read, so the connection cannot be used again.
        self.close_connection = True
        self._answer(status, json.dumps({"error": message}), "application/json")

    def _answer(self, status: HTTPStatus, content: str, kind: str) -> None:
        body = content.encode("utf8")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY.format(connect="'self'"))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of every request."""
