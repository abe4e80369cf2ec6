"""How the fake providers are told what to do next, and asked what they have seen."""

from typing import Any

from litestar import Response, Router, delete, get, post, put

from windlass.services.fake_providers.behaviour import NotAWord
from windlass.services.fake_providers.books import PROVIDERS, Books
from windlass.services.fake_providers.scripts import Scripts

SETTINGS = ("job_seconds", "leonardo_webhook")


@get("/alive")
async def alive() -> dict[str, str]:
    return {"status": "alive"}


@get("/books")
async def read_books(books: Books) -> dict[str, Any]:
    return {provider: books.tell(provider) for provider in PROVIDERS}


@post("/reset", status_code=204)
async def reset(books: Books) -> None:
    """As if nothing had ever been ordered, scripted or set."""
    books.forget_everything()


@post("/script", status_code=200)
async def add_script(data: dict[str, Any], scripts: Scripts) -> Response[Any]:
    """`{provider, behaviour: "429=5" or several words, match?: substring of the prompt, times?: 1, null for ever}`."""
    words = data.get("behaviour", [])
    words = [words] if isinstance(words, str) else words
    if data.get("provider") not in PROVIDERS or not words:
        return Response({"error": f"provider is one of {', '.join(PROVIDERS)}, behaviour a word"}, status_code=400)
    try:
        for word in words:
            scripts.add(data["provider"], data.get("match", ""), word, data.get("times", 1))
    except NotAWord as error:
        return Response({"error": f"{error} is no word that is known here"}, status_code=400)
    return Response({"scripts": scripts.tell()})


@delete("/script")
async def clear_scripts(scripts: Scripts) -> None:
    scripts.clear()


@put("/settings", status_code=200)
async def change_settings(data: dict[str, Any], books: Books) -> Response[Any]:
    """`{job_seconds?, leonardo_webhook?: {url, key?} or null}`."""
    if unknown := set(data) - set(SETTINGS):
        return Response({"error": f"there is no setting {', '.join(sorted(unknown))}"}, status_code=400)
    for name, value in data.items():
        books.set(name, value)
    return Response({name: books.setting(name, None) for name in SETTINGS})


def router() -> Router:
    handlers = [alive, read_books, reset, add_script, clear_scripts, change_settings]
    return Router("/__control", route_handlers=handlers)
