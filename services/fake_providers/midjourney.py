"""Midjourney as midapi.ai sells it: one order, one record to ask for, and a callback to the address in the order."""

import json
import secrets
import time
from datetime import UTC, datetime
from typing import Any

from litestar import Response, get, post

from windlass.services.fake_providers.callbacks import Callback, Teller
from windlass.services.fake_providers.desk import Desk, Incoming, Refusal, read_object
from windlass.services.fake_providers.job import Job

VIDEO_TYPES = {"mj_video", "mj_video_hd"}
TYPES_WITH_FILES = {"mj_img2img", "mj_style_reference", "mj_omni_reference", *VIDEO_TYPES}
TYPES = {"mj_txt2img", *TYPES_WITH_FILES}
REASONS = {
    "no-key": (401, "You do not have access permissions"),
    "bad-key": (401, "You do not have access permissions"),
    "no-credit": (402, "The current credits are insufficient. Please top up."),
    "moderated": (422, "The prompt was refused by content moderation"),
}
FAILURES = {"fail": (500, "The generation failed"), "fail-moderated": (422, "The images were refused by moderation")}


def refuse(_request: Incoming, refusal: Refusal) -> Response[Any]:
    """What the service itself refuses it refuses with HTTP 200 and a code in the body; other errors have both."""
    if refusal.reason in REASONS:
        code, message = REASONS[refusal.reason]
        return envelope(code, message)
    if refusal.reason == "invalid":
        return envelope(422, refusal.message)
    if refusal.status == 200:
        return envelope(int(refusal.message), "the request failed")
    answer = envelope(refusal.status, f"the request failed with status {refusal.status}")
    answer.status_code = refusal.status
    answer.headers.update(refusal.headers)
    return answer


def envelope(code: int, message: str, data: Any = None) -> Response[Any]:
    return Response({"code": code, "msg": message, "data": data}, status_code=200)


@post("/api/v1/mj/generate", status_code=200)
async def generate(request: Incoming, desk: Desk) -> Response[Any]:
    body = await read_object(request)
    prompt = body.get("prompt")
    behaviour = await desk.admit(request, "order", str(prompt or ""))
    kind = str(body.get("taskType", "mj_txt2img"))
    if kind not in TYPES:
        raise Refusal(422, "invalid", f"taskType {kind} is not supported")
    if not isinstance(prompt, str) or not 0 < len(prompt) <= 2000:
        raise Refusal(422, "invalid", "prompt must have between 1 and 2000 characters")
    if kind in TYPES_WITH_FILES and not (body.get("fileUrls") or body.get("fileUrl")):
        raise Refusal(422, "invalid", f"fileUrls is required for {kind}")
    if not isinstance(body.get("callBackUrl", ""), str):
        raise Refusal(422, "invalid", "callBackUrl must be a string")
    job = desk.take(
        f"mj_task_{secrets.token_hex(6)}",
        behaviour,
        kind="video" if kind in VIDEO_TYPES else "image",
        prompt=prompt,
        body=body,
        callback_url=body.get("callBackUrl"),
    )
    await desk.before_answering(request, behaviour)
    return envelope(200, "success", {"taskId": job.job_id})


@get("/api/v1/mj/record-info")
async def record_info(request: Incoming, desk: Desk) -> Response[Any]:
    task_id = request.query_params.get("taskId", "")
    behaviour = await desk.admit(request, "poll", desk.prompt_of(task_id))
    job = desk.poll(task_id)
    await desk.before_answering(request, behaviour)
    if job is None:
        return envelope(422, "recordInfo is null")
    return envelope(200, "success", record(desk.url, job))


def record(url: str, job: Job) -> dict[str, Any]:
    """Here the results are objects; in a callback they are plain strings."""
    now = time.time()
    state = job.state(now)
    error_code, error_message = failure(job) if state == "failed" else (None, None)
    percent = {"progress": job.percent(now)} if state == "running" and "percent" in job.behaviour else {}
    results = {"resultUrls": [{"resultUrl": each} for each in result_urls(url, job)]}
    return {
        "taskId": job.job_id,
        "taskType": job.request.get("taskType", "mj_txt2img"),
        "paramJson": json.dumps(job.request),
        "completeTime": None if state == "running" or job.ends_at is None else timestamp(job.ends_at),
        "resultInfoJson": results if state == "complete" else None,
        "successFlag": {"running": 0, "complete": 1}.get(state, int(job.behaviour.number("fail", 2))),
        "createTime": timestamp(job.at),
        "errorCode": error_code,
        "errorMessage": error_message,
        **percent,
    }


def failure(job: Job) -> tuple[int, str]:
    return FAILURES["fail-moderated" if "fail-moderated" in job.behaviour else "fail"]


def result_urls(url: str, job: Job) -> list[str]:
    ordered, extension = (int(job.request.get("videoBatchSize", 1)), "gif") if job.kind == "video" else (4, "jpeg")
    return [f"{url}/files/{job.file_name(index, extension)}" for index in range(job.number_of_files(ordered))]


def timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def teller(url: str) -> Teller:
    def tell(job: Job, code: int, message: str, urls: list[str]) -> Callback | None:
        if not job.callback_url:
            return None
        data = {"taskId": job.job_id, "promptJson": json.dumps(job.request), "resultUrls": urls}
        return Callback(job.callback_url, {"code": code, "msg": message, "data": data})

    def end(job: Job) -> Callback | None:
        if job.outcome != "complete":
            return tell(job, 500, failure(job)[1], [])
        return tell(job, 200, "success", result_urls(url, job))

    def forged(job: Job) -> Callback | None:
        return tell(job, 200, "success", [f"{url}/files/forged_0.jpeg"])

    return Teller(end, forged)


HANDLERS = [generate, record_info]
