"""Midjourney through midapi.ai: one address for every order, one record for every job, and no way to take it back."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar

import httpx

from windlass.shared.errors import InvalidInput, NotFound
from windlass.shared.providers.base import CannotTell, Done, Failed, Found, NotThere, Order, Ordered, Pending
from windlass.shared.providers.http.answers import Said, error_of_status, not_understood, placing_an_order, read_words
from windlass.shared.providers.http.exchange import ask
from windlass.shared.providers.midjourney_params import ACTIONS
from windlass.shared.providers.params import Params
from windlass.shared.toml_tables import Endpoint

TASK_TYPES = {"txt2img": "mj_txt2img", "img2img": "mj_img2img", "img2vid": "mj_video"}

GENERATING, SUCCEEDED, FAILED, FAILED_AFTER_ALL = 0, 1, 2, 3


class Adapter:
    """`POST /api/v1/mj/generate` and `GET /api/v1/mj/record-info`. An answer is good when its status is 2xx and the
    code in its body is 200."""

    actions: ClassVar[Mapping[str, type[Params]]] = ACTIONS
    calls_back: ClassVar[bool] = True

    def __init__(self, name: str, endpoint: Endpoint, http: httpx.AsyncClient) -> None:
        self._name = name
        self._endpoint = endpoint
        self._http = http

    async def order(self, order: Order) -> Ordered:
        body = {**order.params, "taskType": TASK_TYPES[order.action], "prompt": order.prompt}
        if order.action != "txt2img":
            if order.source_image is None:
                raise InvalidInput(f"{order.action} begins with a picture, and the order names none")
            body["fileUrls"] = [order.source_image]
        if order.callback_url is not None:
            body["callBackUrl"] = order.callback_url
        with placing_an_order():
            answer = await self._ask("POST", "/api/v1/mj/generate", body=body)
            match answer:
                case {"data": {"taskId": str(job_id)}} if job_id:
                    return Ordered(job_id, answer)
            raise not_understood(self._name, 200, json.dumps(answer))

    async def poll(self, job_id: str) -> Pending | Done | Failed:
        try:
            answer = await self._ask("GET", "/api/v1/mj/record-info", query={"taskId": job_id})
        except (NotFound, InvalidInput) as error:
            # The only thing that it can find wrong with the question is the job that it is about.
            return Failed(NotFound(f"{self._name} knows no job {job_id}: {error.message}", **error.details), None)
        record = answer.get("data")
        if record is None:
            return Failed(NotFound(f"{self._name} knows no job {job_id}"), answer)
        flag = record.get("successFlag") if isinstance(record, dict) else None
        if flag == GENERATING:
            return Pending(_percent(record))
        if flag == SUCCEEDED:
            return self._done(job_id, record, answer)
        if flag in {FAILED, FAILED_AFTER_ALL}:
            return self._failed(record, answer)
        raise not_understood(self._name, 200, json.dumps(answer))

    async def find(self, order: Order, intended_at: datetime) -> Found | NotThere | CannotTell:  # noqa: ARG002
        """It has no list of what was ordered."""
        return CannotTell()

    async def cancel(self, job_id: str) -> bool:  # noqa: ARG002 - it has no call for it
        return False

    def job_of_callback(self, body: Any) -> str | None:
        match body:
            case {"data": {"taskId": str(job_id)}}:
                return job_id
        return None

    def _done(self, job_id: str, record: Mapping[str, Any], answer: Any) -> Done | Failed:
        if urls := tuple(_urls(record.get("resultInfoJson"))):
            return Done(urls, answer)
        return Failed(NotFound(f"{self._name} has completed the job {job_id} and names nothing that it made"), answer)

    def _failed(self, record: Mapping[str, Any], answer: Any) -> Failed:
        code, message = record.get("errorCode"), str(record.get("errorMessage") or "no reason given")
        status = int(str(code)) if str(code).isdecimal() else 500
        return Failed(error_of_status(self._name, status, Said(message), verb="failed to carry out a job,"), answer)

    async def _ask(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        url = self._endpoint.base_url + path
        answer = await ask(self._http, self._name, method, url, key=self._endpoint.api_key, **request)
        if not isinstance(answer, dict) or not isinstance(answer.get("code"), int):
            raise not_understood(self._name, 200, json.dumps(answer))
        if answer["code"] != 200:
            raise error_of_status(self._name, answer["code"], read_words(json.dumps(answer)))
        return answer


def _urls(result: Any) -> Iterator[str]:
    """Objects in a record, plain strings in a callback; and a name, `resultInfoJson`, that speaks of a string."""
    if isinstance(result, str):
        try:
            result = json.loads(result)
        except ValueError:
            return
    listed = result.get("resultUrls") if isinstance(result, dict) else None
    for each in listed if isinstance(listed, list) else ():
        url = each.get("resultUrl") if isinstance(each, dict) else each
        if isinstance(url, str):
            yield url


def _percent(record: Mapping[str, Any]) -> float | None:
    progress = record.get("progress")
    return float(progress) if isinstance(progress, int | float) else None
