"""`/problems/<code>`: a page for whoever follows the `type` of an error document, without a key."""

from html import escape

from litestar import Response, get
from litestar.params import FromPath

from windlass.services.api.http.errors import Problem
from windlass.services.api.reference.page import framed, inline
from windlass.services.api.reference.problems import PROBLEMS, Meaning, title_of
from windlass.services.api.reference.serving import page_headers
from windlass.shared.suggestions import did_you_mean

WHOLE_LIST = "<p><a href='/problems'>All problems</a> · <a href='/schema'>The API</a></p>"


@get("/problems", public=True, include_in_schema=False)
async def list_problems() -> Response[str]:
    """Every code that an error document can have."""
    return page("Problems", "".join(row(code, meaning) for code, meaning in sorted(PROBLEMS.items())))


@get("/problems/{code:str}", public=True, include_in_schema=False)
async def show_problem(code: FromPath[str]) -> Response[str]:
    """What one of them means, and what helps."""
    if code not in PROBLEMS:
        raise Problem(404, "not-found", f"no problem has the code {code[:60]}; {did_you_mean(code, PROBLEMS)}")
    return page(title_of(code), row(code, PROBLEMS[code]) + WHOLE_LIST)


def row(code: str, meaning: Meaning) -> str:
    statuses = ", ".join(map(str, meaning.statuses))
    return (
        f"<article id='{code}'><h3><a href='/problems/{code}'>{escape(title_of(code))}</a></h3>"
        f"<p class=call><code>{code}</code> · {statuses}</p>"
        f"<p>{inline(meaning.means)}</p><p><b>What helps:</b> {inline(meaning.remedy)}</p></article>"
    )


def page(title: str, content: str) -> Response[str]:
    return Response(
        framed(title, f"<main><h1>{escape(title)}</h1>{content}</main>"), media_type="text/html", headers=page_headers()
    )


HANDLERS = [list_problems, show_problem]
