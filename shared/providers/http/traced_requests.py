"""A request that goes on with the trace of the attempt that makes it, from its sending to the end of its answer."""

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx

from windlass.shared import tracing

Send = Callable[[httpx.Request], Awaitable[httpx.Response]]


class TracedAnswer(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, span: tracing.Span) -> None:
        self._inner = inner
        self._span = span

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._inner:
                yield part
        except Exception as error:
            self._span.fail(type(error).__name__)
            raise

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            self._span.end()


async def send_traced(send: Send, request: httpx.Request) -> httpx.Response:
    url = request.url
    span = tracing.calling(request.method, url.scheme, url.host, url.port)
    if (traceparent := span.traceparent()) is not None:
        request.headers["traceparent"] = traceparent
    try:
        response = await send(request)
    except BaseException as error:
        span.fail(type(error).__name__)
        span.end()
        raise
    span.note(http__response__status_code=response.status_code)
    if response.is_error:
        span.fail(str(response.status_code))
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = TracedAnswer(response.stream, span)
    return response
