"""The page as it is served: which paths are its own, what browsers may keep and run, and what there is without one."""

import asyncio
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from windlass.services.api.http.page import Page, serving_page
from windlass.services.api.http.security_headers import cautious

HTML = {"Accept": "text/html,application/xhtml+xml;q=0.9"}
Get = Callable[..., httpx.Response]


async def api(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b"the api"})


def asking(directory: Path) -> Get:
    page = Page(directory)
    transport = httpx.ASGITransport(cautious(serving_page(api, page), build=page.build))  # type: ignore[arg-type]

    def ask(path: str, method: str = "GET", **headers: str) -> httpx.Response:
        async def request() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
                return await client.request(method, path, headers={"Accept": "*/*", **headers})

        return asyncio.run(request())

    return ask


@pytest.fixture
def get(tmp_path: Path) -> Get:
    (tmp_path / "index.html").write_text("<!doctype html>the page")
    (tmp_path / "app.js").write_text("run()\n" * 500)
    (tmp_path / "icon.png").write_bytes(b"png")
    (tmp_path / "BUILT_FROM").write_text("0123456789abcdef" * 4 + "\n")
    return asking(tmp_path)


@pytest.mark.parametrize(
    "path", ["/", "/tasks/01890000-0000-7000-8000-000000000000", "/providers?paused=1", "/sign-in"]
)
def test_every_view_is_the_page(get: Get, path: str) -> None:
    shown = get(path, **HTML)
    assert (shown.status_code, shown.text) == (200, "<!doctype html>the page")
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(each.strip().split(" ", 1) for each in shown.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'self'",
        "img-src": "'self' blob: data:",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
    }
    assert shown.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/api/v1/tasks", "/schema", "/problems/not-found", "/health", "/metrics", "/api/v1/no"]
)
def test_the_api_keeps_its_paths(get: Get, path: str) -> None:
    assert get(path, **HTML).status_code == 418


def test_what_is_no_view_is_the_api_s_to_refuse(get: Get) -> None:
    assert get("/tasks/1").status_code == 418, "a program asks for no page"
    assert get("/missing.js").status_code == 418
    assert get("/BUILT_FROM").status_code == 418
    assert get("/../../main.py").status_code == 418
    assert get("/", "POST", **HTML).status_code == 418
    assert get("/").status_code == 200


def test_files_are_asked_for_each_time_and_sent_once(get: Get) -> None:
    for path in ("/app.js", "/page/app.js"):
        sent = get(path, **{"Accept-Encoding": "identity"})
        assert (sent.text, sent.headers["content-type"]) == ("run()\n" * 500, "text/javascript; charset=utf-8")
        assert sent.headers["cache-control"] == "no-cache"
        again = get(path, **{"Accept-Encoding": "identity", "If-None-Match": sent.headers["etag"]})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", sent.headers["etag"])
        head = get(path, "HEAD", **{"Accept-Encoding": "identity"})
        assert (head.content, head.headers["content-length"]) == (b"", "3000")


def test_text_is_sent_small_to_who_takes_it(get: Get) -> None:
    small = get("/app.js", **{"Accept-Encoding": "gzip, br"})
    assert (small.headers["content-encoding"], small.text) == ("gzip", "run()\n" * 500)
    assert int(small.headers["content-length"]) == len(gzip.compress(b"run()\n" * 500, mtime=0)) < 300
    assert small.headers["etag"] != get("/app.js", **{"Accept-Encoding": "identity"}).headers["etag"]
    assert "content-encoding" not in get("/icon.png", **{"Accept-Encoding": "gzip"}).headers


def test_every_answer_names_the_build(get: Get, tmp_path: Path) -> None:
    named = {get(path, **HTML).headers["windlass-build"] for path in ("/", "/app.js", "/api/v1/tasks")}
    (name,) = named
    assert name.partition("+")[2] == "0123456789ab"


def test_without_a_build_it_says_how_to_make_one(tmp_path: Path) -> None:
    ask = asking(tmp_path / "nothing")
    for path in ("/", "/tasks/1"):
        told = ask(path, **HTML)
        assert (told.status_code, told.headers["content-type"]) == (404, "text/plain; charset=utf-8")
        assert "`make web`" in told.text
    assert "+" not in ask("/").headers["windlass-build"]
