"""Leonardo: images and videos that are ordered, asked for until they are there, and found again by their prompt."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

import httpx

from windlass.shared.errors import ContentRejected, InvalidInput, NotFound, ServiceUnavailable, TaskError, Unauthorized
from windlass.shared.providers.base import CannotTell, Done, Failed, Found, NotThere, Order, Ordered, Pending
from windlass.shared.providers.finding import Listed, look_until_settled
from windlass.shared.providers.http.answers import not_understood, placing_an_order
from windlass.shared.providers.http.exchange import ask, send
from windlass.shared.providers.leonardo_params import ACTIONS
from windlass.shared.providers.params import Params
from windlass.shared.providers.source import Source, fetch_source
from windlass.shared.toml_tables import Endpoint

PAGE = 50
SETTLED_SECONDS = 60.0
"""An order that is not in its list this long after the intent is not on its way any more."""

_BAD_KEY = re.compile(r"(?:authorization|authentication) hook", re.IGNORECASE)


class Adapter:
    """`POST /generations` and its likes, `GET` and `DELETE /generations/{id}`, `GET /generations/user/{id}`."""

    actions: ClassVar[Mapping[str, type[Params]]] = ACTIONS

    def __init__(self, name: str, endpoint: Endpoint, http: httpx.AsyncClient) -> None:
        self._name = name
        self._endpoint = endpoint
        self._http = http
        # The bundled server notes an order down before it lets go of it, so nobody need wait for it to turn up.
        self._settled_seconds = 0.3 if endpoint.is_fake else SETTLED_SECONDS

    async def prepare(self, order: Order) -> Order:
        if order.action == "txt2img":
            return order
        if order.source_image is None:
            raise InvalidInput(f"{order.action} begins with a picture, and the order names none")
        return replace(order, picture=await self._upload(await fetch_source(self._http, order.source_image)))

    async def order(self, order: Order) -> Ordered:
        path, body = "/generations", {**order.params, "prompt": order.prompt}
        if order.action == "img2img":
            body["init_image_id"] = order.picture
        elif order.action == "img2vid":
            # The older `/generations-motion-svd` takes no prompt.
            path = "/generations-image-to-video"
            body |= {"imageId": order.picture, "imageType": "UPLOADED"}
        with placing_an_order():
            answer = await self._ask("POST", path, body=body)
            return Ordered(self._job_in(answer), answer)

    async def poll(self, job_id: str) -> Pending | Done | Failed:
        try:
            answer = await self._ask("GET", f"/generations/{job_id}")
        except NotFound as error:
            return Failed(error, None)
        job = self._field(answer, "generations_by_pk")
        if job is None:
            return Failed(NotFound(f"{self._name} knows no job {job_id}"), answer)
        match job.get("status") if isinstance(job, dict) else None:
            case "PENDING":
                return Pending(_percent(job))
            case "COMPLETE":
                return self._done(job_id, job, answer)
            case "FAILED":
                return Failed(ServiceUnavailable(f"{self._name} failed to carry out the job {job_id}"), answer)
        raise self._not_understood(answer)

    async def find(self, order: Order, intended_at: datetime) -> Found | NotThere | CannotTell:
        """By prompt and time, in the account's list."""
        user_id = await self._user_id()
        found = await look_until_settled(
            lambda page: self._list(user_id, page),
            prompt=order.prompt,
            intended_at=intended_at,
            settled_seconds=self._settled_seconds,
        )
        # A prompt that it was asked to improve may not be in its list as we know it.
        was_reworded = any(order.params.get(name) for name in ("enhancePrompt", "promptEnhance"))
        return CannotTell() if was_reworded and isinstance(found, NotThere) else found

    async def cancel(self, job_id: str) -> bool:
        answer = await self._ask("DELETE", f"/generations/{job_id}")
        return self._field(answer, "delete_generations_by_pk") is not None

    def job_of_callback(self, body: Any) -> str | None:
        match body:
            case {"data": {"object": {"id": str(job_id)}}}:
                return job_id
        return None

    def _done(self, job_id: str, job: Mapping[str, Any], answer: Any) -> Done | Failed:
        images = [image for image in job.get("generated_images") or [] if isinstance(image, dict)]
        if images and all(image.get("nsfw") for image in images):
            return Failed(ContentRejected(f"{self._name} marked everything that the job {job_id} made as nsfw"), answer)
        # A video has the URL of its first frame as well.
        made = [image.get("motionMP4URL") or image.get("url") for image in images if not image.get("nsfw")]
        if urls := tuple(url for url in made if isinstance(url, str)):
            return Done(urls, answer)
        return Failed(NotFound(f"{self._name} has completed the job {job_id} and names nothing that it made"), answer)

    async def _list(self, user_id: str, page: int) -> list[Listed]:
        query = {"offset": page * PAGE, "limit": PAGE}
        answer = await self._ask("GET", f"/generations/user/{user_id}", query=query)
        try:
            return [Listed.of(job["id"], job.get("prompt"), job["createdAt"]) for job in answer["generations"]]
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise self._not_understood(answer) from error

    async def _user_id(self) -> str:
        answer = await self._ask("GET", "/me")
        match answer:
            case {"user_details": [{"user": {"id": str(user_id)}}, *_]}:
                return user_id
        raise self._not_understood(answer)

    async def _upload(self, source: Source) -> str:
        """It takes pictures in two steps: a place is asked for, and the picture is sent there as a form."""
        answer = await self._ask("POST", "/init-image", body={"extension": source.extension})
        try:
            place = answer["uploadInitImage"]
            image_id, url, fields = str(place["id"]), str(place["url"]), json.loads(place["fields"])
        except (TypeError, KeyError, ValueError) as error:
            raise self._not_understood(answer) from error
        picture = (f"source.{source.extension}", source.content, source.media_type)
        await send(self._http, self._name, "POST", url, data=fields, files={"file": picture})
        return image_id

    async def _ask(self, method: str, path: str, **request: Any) -> Any:
        url = self._endpoint.base_url + path
        try:
            return await ask(self._http, self._name, method, url, key=self._endpoint.api_key, **request)
        except TaskError as error:
            # It says so with more than one status, and before it looks at anything else.
            if error.details.get("status", 0) >= 400 and _BAD_KEY.search(error.message):
                raise Unauthorized(error.message, **{**error.details, "status": 401}) from error
            raise

    def _field(self, answer: Any, name: str) -> Any:
        if not isinstance(answer, dict) or name not in answer:
            raise self._not_understood(answer)
        return answer[name]

    def _job_in(self, answer: Any) -> str:
        """Each kind of order answers under a name of its own."""
        for part in answer.values() if isinstance(answer, dict) else ():
            if isinstance(part, dict) and isinstance(part.get("generationId"), str):
                return str(part["generationId"])
        raise self._not_understood(answer)

    def _not_understood(self, answer: Any) -> TaskError:
        return not_understood(self._name, 200, json.dumps(answer))


def _percent(job: Mapping[str, Any]) -> float | None:
    progress = job.get("progress")
    return float(progress) if isinstance(progress, int | float) else None
