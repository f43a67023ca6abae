import http.client
import json
import socket
from contextlib import contextmanager
from threading import Thread

import pytest

from spacy_maverick.display.server import LARGEST_REQUEST, PageServer

JSON = {"Content-Type": "application/json"}


def shout(text, speakers):
    if text == "wrong":
        raise ValueError("This is wrong.")
    return f"<p>{text.upper()} {speakers}</p>"


@contextmanager
def running(process=shout):
    server = PageServer("127.0.0.1", 0, "<p>page</p>", process)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def ask():
    with running() as server:

        def send(method="POST", path="/resolve", body=None, headers=JSON):
            connection = http.client.HTTPConnection(*server.server_address, timeout=5)
            body = json.dumps(body) if isinstance(body, dict) else body
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response, response.read().decode("utf8")

        yield send


def test_it_gives_its_page_and_what_is_made_of_a_text(ask):
    response, page = ask("GET", "/", headers={})
    assert (response.status, page) == (200, "<p>page</p>")
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    response, answer = ask(body={"text": "Ada", "speakers": True})
    assert (response.status, json.loads(answer)) == (200, {"html": "<p>ADA True</p>"})


def test_a_wrong_text_is_told(ask):
    response, answer = ask(body={"text": "wrong"})
    assert (response.status, json.loads(answer)) == (400, {"error": "This is wrong."})
    # Half of a character is not taken for a text.
    response, answer = ask(body='{"text": "\\ud800"}')
    assert (response.status, json.loads(answer)["html"]) == (200, "<p>? False</p>")


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "3", "{}", '{"text": 3}', '{"text": "a", "speakers": 1}']
)
def test_other_requests_are_refused(ask, body):
    assert ask(body=body)[0].status == 400


def test_what_is_too_large_is_not_read(ask):
    response, answer = ask(headers={**JSON, "Content-Length": str(LARGEST_REQUEST + 1)})
    assert response.status == 413
    assert "too long" in json.loads(answer)["error"]
    assert ask(headers={**JSON, "Content-Length": "many"})[0].status == 411


def test_other_places_and_other_pages_are_refused(ask):
    assert ask("GET", "/etc/passwd", headers={})[0].status == 404
    assert ask(path="/", body={"text": "a"})[0].status == 404
    # A form that a page of another site sends, and a name that somebody lets point here.
    assert ask(body="text=a", headers={"Content-Type": "text/plain"})[0].status == 415
    assert ask(body={"text": "a"}, headers={**JSON, "Host": "evil.example"})[0].status == 403
    assert ask("GET", "/", headers={"Host": "evil.example:80"})[0].status == 403
    assert ask("GET", "/", headers={"Host": "localhost:80"})[0].status == 200


def test_a_port_in_use_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ValueError, match=r"in use.*--port"):
            PageServer("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ValueError, match="choose another --host"):
        PageServer("no such host", 0)
