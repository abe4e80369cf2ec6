"""What a query may say at each path: a parameter with a typing error must not be taken for none."""

import heapq
from collections.abc import Iterator
from typing import Any

from litestar import Litestar, Request
from litestar.routes import HTTPRoute

from windlass.services.api.http.errors import Problem
from windlass.shared.submission.refusal import MOST_REPORTED, escape
from windlass.shared.wording import did_you_mean

Known = tuple[frozenset[str], frozenset[str]]


class QueryParameters:
    """Read once from the handlers, as Litestar understood their signatures."""

    def __init__(self) -> None:
        self._known: dict[int, Known] | None = None

    def of(self, app: Litestar, handler: object) -> Known:
        if self._known is None:
            self._known = dict(_read(app))
        return self._known[id(handler)]

    async def refuse_unknown(self, request: Request[Any, Any, Any]) -> None:
        """Before a handler is called. One that providers call takes whatever they append to its address."""
        handler = request.scope["route_handler"]
        if not request.scope["query_string"] or handler.opt.get("any_query"):
            return
        known, several = self.of(request.app, handler)
        given = request.query_params
        errors = [
            {"pointer": f"/{escape(name)}", "detail": f"no such parameter; {did_you_mean(name, known)}"}
            for name in heapq.nsmallest(MOST_REPORTED, set(given) - known)
        ] or [
            {"pointer": f"/{escape(name)}", "detail": "it is given more than once, and takes one value"}
            for name in sorted(set(given) - several)
            if len(given.getall(name)) > 1
        ]
        if errors:
            code = "unknown-parameter" if set(given) - known else "invalid-request"
            detail = "; ".join(f"{each['pointer'][1:]}: {each['detail']}" for each in errors)
            raise Problem(422, code, detail, errors=errors)


def _read(app: Litestar) -> Iterator[tuple[int, Known]]:
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler, model in route.route_handler_map.values():
                names = frozenset(each.field_alias for each in model.expected_query_params)
                yield id(handler), (names, frozenset(model.sequence_query_parameter_names))
