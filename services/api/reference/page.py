"""The OpenAPI document as one plain page: no scripts, nothing from elsewhere."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from typing import Any

from windlass.services.api.reference.examples import curl_line, example_of
from windlass.services.api.reference.problems import PROBLEMS
from windlass.services.api.reference.stream_events import ABOUT as ABOUT_STREAMS
from windlass.services.api.reference.stream_events import STREAM_EVENTS

STYLE = files(__package__).joinpath("page.css").read_text()


def style_hash() -> str:
    """As a browser is told of it, that it may apply this one and no other."""
    return b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


def render(document: Mapping[str, Any]) -> str:
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if "tags" in operation
    ]
    title = escape(document["info"]["title"])
    shapes = document["components"]["schemas"]
    tags = [tag["name"] for tag in document["tags"]]
    shown = "".join(
        [
            *contents(tags, operations, shapes),
            f"<main><h1>{title} API</h1>{prose(document['info']['description'])}",
            "<p>For machines: <a href='/schema/openapi.json'>openapi.json</a>.</p>",
            *(section(tag, operations, shapes) for tag in tags),
            stream_events(),
            problem_codes(),
            "<section id=shapes><h2>Shapes</h2>",
            *(shape(name, schema) for name, schema in sorted(shapes.items())),
            "</section></main>",
        ]
    )
    return framed(f"{document['info']['title']} API", shown)


def framed(title: str, content: str) -> str:
    """A page with our style and nothing else to load."""
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(title)}</title>"
        f"<meta name=viewport content='width=device-width, initial-scale=1'><style>{STYLE}</style></head>"
        f"<body>{content}</body></html>"
    )


def contents(tags: list[str], operations: list[tuple[str, str, Any]], shapes: Mapping[str, Any]) -> Iterator[str]:
    yield "<nav>"
    for tag in tags:
        yield f"<h3>{escape(tag)}</h3><ul>"
        for path, method, operation in operations:
            if operation["tags"] == [tag]:
                yield f"<li><a href='#{anchor(method, path)}'>{escape(operation['summary'])}</a></li>"
        yield "</ul>"
    yield "<h3><a href='#events'>Events of a stream</a></h3><h3><a href='#problems'>Problem codes</a></h3>"
    yield f"<h3><a href='#shapes'>Shapes</a></h3><ul><li>{len(shapes)} of them</li></ul></nav>"


def section(tag: str, operations: list[tuple[str, str, Any]], shapes: Mapping[str, Any]) -> str:
    own = [
        show(path, method, operation, shapes) for path, method, operation in operations if operation["tags"] == [tag]
    ]
    return f"<section><h2>{escape(tag)}</h2>{''.join(own)}</section>"


def show(path: str, method: str, operation: Mapping[str, Any], shapes: Mapping[str, Any]) -> str:
    return "".join(
        [
            f"<article id='{anchor(method, path)}'><h3>{escape(operation['summary'])}</h3>",
            f"<p class=call><b class={method}>{method.upper()}</b> <code>{escape(path)}</code></p>",
            prose(operation.get("description", "")),
            f"<pre class=curl>{escape(curl_line(method, path, operation))}</pre>",
            parameters(operation.get("parameters", [])),
            body(operation.get("requestBody")),
            answers(operation["responses"]),
            answer_example(operation["responses"], shapes),
            "</article>",
        ]
    )


def parameters(given: list[Mapping[str, Any]]) -> str:
    rows = [
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td>"
        f"<td>{kind(each.get('schema', {}))}</td><td>{inline(each.get('description', ''))}</td></tr>"
        for each in given
    ]
    return f"<table><tr><th>parameter<th>in<th>kind<th></tr>{''.join(rows)}</table>" if rows else ""


def body(given: Mapping[str, Any] | None) -> str:
    if given is None:
        return ""
    (content,) = given["content"].values()
    example = f"<pre>{escape(json.dumps(content['example'], indent=2))}</pre>" if "example" in content else ""
    return f"<p>Body: {kind(content['schema'])}</p>{example}"


def answers(given: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        f"<tr><td><code>{status}</code></td><td>{inline(answer['description'])}</td>"
        f"<td>{' '.join(kind(content['schema']) for content in answer.get('content', {}).values())}</td></tr>"
        for status, answer in given.items()
    ]
    return f"<table><tr><th>answer<th><th></tr>{''.join(rows)}</table>"


def answer_example(given: Mapping[str, Mapping[str, Any]], shapes: Mapping[str, Any]) -> str:
    """What the first good answer may look like."""
    for status, answer in given.items():
        content = answer.get("content", {}).get("application/json")
        if status.startswith("2") and content:
            example = json.dumps(example_of(content["schema"], shapes), indent=2, ensure_ascii=False)
            return f"<details><summary>An answer, {status}</summary><pre>{escape(example)}</pre></details>"
    return ""


def stream_events() -> str:
    rows = [
        f"<article><h3><code>{name}</code></h3><p>{inline(said)}</p>"
        f"<pre>event: {name}\ndata: {escape(json.dumps(data, ensure_ascii=False))}</pre></article>"
        for name, (said, data) in STREAM_EVENTS.items()
    ]
    return f"<section id=events><h2>Events of a stream</h2>{prose(ABOUT_STREAMS)}{''.join(rows)}</section>"


def problem_codes() -> str:
    rows = [
        f"<tr><td><a href='/problems/{code}'><code>{code}</code></a></td><td>{', '.join(map(str, each.statuses))}</td>"
        f"<td>{inline(each.means)}</td></tr>"
        for code, each in sorted(PROBLEMS.items())
    ]
    table = f"<table><tr><th>code<th>status<th></tr>{''.join(rows)}</table>"
    return f"<section id=problems><h2>Problem codes</h2>{table}</section>"


def shape(name: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", [])
    rows = [
        f"<tr><td><code>{escape(field)}</code>{'' if field in required else ' <i>optional</i>'}</td>"
        f"<td>{kind(about)}</td><td>{inline(about.get('description', '') if isinstance(about, dict) else '')}</td></tr>"
        for field, about in schema.get("properties", {}).items()
    ]
    table = f"<table><tr><th>field<th>kind<th></tr>{''.join(rows)}</table>" if rows else f"<p>{kind(schema)}</p>"
    return (
        f"<article id='{escape(name)}'><h3>{escape(name)}</h3>{prose(schema.get('description', ''))}{table}</article>"
    )


def kind(schema: Any) -> str:
    """What a value is, in a few words, with links to named shapes."""
    match schema:
        case {"$ref": reference}:
            name = escape(reference.rpartition("/")[2])
            words = f"<a href='#{name}'>{name}</a>"
        case {"const": value}:
            words = f"<code>{escape(json.dumps(value))}</code>"
        case {"enum": values}:
            words = ", ".join(f"<code>{escape(str(word))}</code>" for word in values)
        case {"anyOf": choices} | {"oneOf": choices} | {"allOf": choices}:
            words = " or ".join(dict.fromkeys(kind(each) for each in choices))
        case {"type": "array"}:
            words = f"list of {kind(schema.get('items'))}"
        case {"type": name}:
            words = escape(f"{' or '.join(name) if isinstance(name, list) else name}{limits(schema)}")
        case _:
            words = "anything"
    return words


def limits(schema: Mapping[str, Any]) -> str:
    words = [str(schema["format"])] if "format" in schema else []
    for key, word in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤")):
        if key in schema:
            words.append(f"{word} {schema[key]:g}")
    for key, word in (("minLength", "at least"), ("maxLength", "at most")):
        if key in schema:
            words.append(f"{word} {schema[key]} characters")
    return f" ({', '.join(words)})" if words else ""


def prose(text: str) -> str:
    return "".join(f"<p>{inline(paragraph)}</p>" for paragraph in text.split("\n\n") if paragraph.strip())


def inline(text: str) -> str:
    """`code` in backticks, everything else as it is."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))


def anchor(method: str, path: str) -> str:
    return escape(f"{method}{path}".replace("/", "-").replace("{", "").replace("}", ""))
