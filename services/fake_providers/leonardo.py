"""Leonardo: images and videos from prompts, pictures to begin with, one list of all generations, one webhook."""

import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from litestar import Response, delete, get, post

from windlass.services.fake_providers.books import Books
from windlass.services.fake_providers.callbacks import Callback, Teller
from windlass.services.fake_providers.desk import Desk, Incoming, Refusal, read_object
from windlass.services.fake_providers.job import Job
from windlass.services.fake_providers.uploads import Uploads

USER_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, "windlass/fake/leonardo"))
DEFAULT_MODEL = "b24e16ff-06e3-43eb-8d33-4416c2d75876"
STATUS = {"running": "PENDING", "complete": "COMPLETE", "failed": "FAILED"}
BOOLEANS = ("alchemy", "photoReal", "promptMagic", "ultra", "public", "tiling", "transparency", "enhancePrompt")
EXTENSIONS = {"png", "jpg", "jpeg", "webp"}
ERRORS = {
    "no-key": (401, "Authentication hook unauthorized this request", "access-denied"),
    "bad-key": (401, "Invalid response from authorization hook", "unexpected"),
    "no-credit": (402, "You do not have enough API credits for this request", "unexpected"),
    "moderated": (403, "The prompt was refused by content moderation", "content-moderated"),
}


def refuse(_request: Incoming, refusal: Refusal) -> Response[Any]:
    said = refusal.message or f"the request failed with status {refusal.status}"
    status, message, code = ERRORS.get(refusal.reason, (refusal.status, said, "unexpected"))
    return Response({"error": message, "path": "$", "code": code}, status_code=status, headers=refusal.headers)


@post("/generations", status_code=200)
async def order_images(request: Incoming, desk: Desk, uploads: Uploads) -> dict[str, Any]:
    body = await read_object(request)
    behaviour = await desk.admit(request, "order", str(body.get("prompt", "")))
    check(body, uploads)
    job = desk.take(str(uuid.uuid4()), behaviour, kind="image", prompt=body["prompt"], body=body)
    await desk.before_answering(request, behaviour)
    cost = {"amount": "0.0147", "unit": "DOLLARS"}
    return {"sdGenerationJob": {"generationId": job.job_id, "apiCreditCost": None, "cost": cost}}


def check(body: Mapping[str, Any], uploads: Uploads) -> None:
    if not isinstance(body.get("prompt"), str) or not body["prompt"]:
        raise Refusal(400, "invalid", "Expected a string for type String but found null")
    for name in BOOLEANS:
        if isinstance(body.get(name), str):
            raise Refusal(400, "invalid", "Expected a boolean for type Boolean but found a string")
    for name, default in (("width", 1024), ("height", 768)):
        side = body.get(name, default)
        if not isinstance(side, int) or not 32 <= side <= 1536 or side % 8:
            raise Refusal(400, "invalid", f"{name} must be between 32 and 1536 and a multiple of 8")
    most = 4 if max(body.get("width", 1024), body.get("height", 768)) > 768 else 8
    number = body.get("num_images", 4)
    if not isinstance(number, int) or not 1 <= number <= most:
        raise Refusal(400, "invalid", f"num_images must be between 1 and {most}")
    if body.get("init_image_id") is not None and not uploads.has_picture(body["init_image_id"]):
        raise Refusal(400, "invalid", "the init image does not exist")


@post("/generations-image-to-video", status_code=200)
async def order_video_of_image(request: Incoming, desk: Desk, uploads: Uploads) -> dict[str, Any]:
    body = await read_object(request)
    if not body.get("imageId"):
        raise Refusal(400, "invalid", "Expected a string for type String but found null")
    job = await order_video(request, desk, uploads, body, is_upload=body.get("imageType") == "UPLOADED")
    return {"motionVideoGenerationJob": {"generationId": job.job_id, "apiCreditCost": 25}}


@post("/generations-text-to-video", status_code=200)
async def order_video_of_text(request: Incoming, desk: Desk, uploads: Uploads) -> dict[str, Any]:
    job = await order_video(request, desk, uploads, await read_object(request), is_upload=False)
    return {"motionVideoGenerationJob": {"generationId": job.job_id, "apiCreditCost": 25}}


@post("/generations-motion-svd", status_code=200)
async def order_motion(request: Incoming, desk: Desk, uploads: Uploads) -> dict[str, Any]:
    body = await read_object(request)
    job = await order_video(request, desk, uploads, body, is_upload=bool(body.get("isInitImage")))
    return {"motionSvdGenerationJob": {"generationId": job.job_id, "apiCreditCost": 25}}


async def order_video(request: Incoming, desk: Desk, uploads: Uploads, body: dict[str, Any], *, is_upload: bool) -> Job:
    prompt = str(body.get("prompt") or "")
    behaviour = await desk.admit(request, "order", prompt)
    if is_upload and not uploads.has_picture(str(body.get("imageId"))):
        raise Refusal(400, "invalid", "the image does not exist")
    job = desk.take(str(uuid.uuid4()), behaviour, kind="video", prompt=prompt, body=body)
    await desk.before_answering(request, behaviour)
    return job


@get("/generations/{job_id:str}")
async def generation(request: Incoming, desk: Desk, job_id: str) -> dict[str, Any]:
    behaviour = await desk.admit(request, "poll", desk.prompt_of(job_id))
    job = desk.poll(job_id)
    await desk.before_answering(request, behaviour)
    return {"generations_by_pk": None if job is None or job.is_deleted else document(desk, job)}


@delete("/generations/{job_id:str}", status_code=200)
async def delete_generation(request: Incoming, desk: Desk, job_id: str) -> dict[str, Any]:
    behaviour = await desk.admit(request, "cancel", desk.prompt_of(job_id))
    job = desk.books.find(desk.provider, job_id)
    is_there = job is not None and not job.is_deleted
    desk.books.delete(desk.provider, job_id)
    await desk.before_answering(request, behaviour)
    return {"delete_generations_by_pk": {"id": job_id} if is_there else None}


@get("/generations/user/{user_id:str}")
async def generations(request: Incoming, desk: Desk, user_id: str, offset: int = 0, limit: int = 10) -> dict[str, Any]:
    behaviour = await desk.admit(request, "list")
    jobs = desk.books.newest(desk.provider, offset, limit) if user_id == USER_ID else []
    await desk.before_answering(request, behaviour)
    return {"generations": [document(desk, job) for job in jobs]}


@get("/me")
async def me(request: Incoming, desk: Desk) -> dict[str, Any]:
    behaviour = await desk.admit(request, "account")
    await desk.before_answering(request, behaviour)
    account = {
        "user": {"id": USER_ID, "username": "windlass"},
        "tokenRenewalDate": None,
        "paidTokens": 0,
        "subscriptionTokens": 8500,
        "apiSubscriptionTokens": 25000,
        "apiPaidTokens": 0,
        "apiConcurrencySlots": 10,
    }
    return {"user_details": [account]}


@post("/init-image", status_code=200)
async def init_image(request: Incoming, desk: Desk, uploads: Uploads) -> dict[str, Any]:
    body = await read_object(request)
    behaviour = await desk.admit(request, "upload")
    if str(body.get("extension")) not in EXTENSIONS:
        raise Refusal(400, "invalid", "invalid file extension")
    upload = uploads.begin(body["extension"])
    await desk.before_answering(request, behaviour)
    place = {"url": f"{desk.url}/uploads/{upload.upload_id}", "fields": upload.fields, "key": upload.key}
    return {"uploadInitImage": {"id": upload.upload_id, **place}}


def document(desk: Desk, job: Job) -> dict[str, Any]:
    now, asked = time.time(), job.request
    state = job.state(now)
    percent = {"progress": job.percent(now)} if state == "running" and "percent" in job.behaviour else {}
    return {
        "id": job.job_id,
        "status": STATUS[state],
        "createdAt": datetime.fromtimestamp(job.at, UTC).replace(tzinfo=None).isoformat(timespec="milliseconds"),
        "prompt": job.prompt,
        "negativePrompt": asked.get("negative_prompt"),
        "modelId": asked.get("modelId", DEFAULT_MODEL),
        "imageWidth": asked.get("width", 1024),
        "imageHeight": asked.get("height", 768),
        "inferenceSteps": asked.get("num_inference_steps"),
        "seed": asked.get("seed"),
        "public": asked.get("public", False),
        "scheduler": asked.get("scheduler", "EULER_DISCRETE"),
        "sdVersion": "SDXL_0_9",
        "presetStyle": asked.get("presetStyle"),
        "initStrength": asked.get("init_strength"),
        "guidanceScale": asked.get("guidance_scale"),
        "photoReal": asked.get("photoReal", False),
        "generated_images": images(desk.url, job) if state == "complete" else [],
        "generation_elements": [],
        **percent,
    }


def images(url: str, job: Job) -> list[dict[str, Any]]:
    number = job.number_of_files(1 if job.kind == "video" else job.request.get("num_images", 4))

    def file(index: int, extension: str) -> str:
        return f"{url}/files/{job.file_name(index, extension)}"

    return [
        {
            "id": job.image_id(index),
            "url": file(index, "png"),
            "nsfw": False,
            "likeCount": 0,
            "motionMP4URL": file(index, "gif") if job.kind == "video" else None,
            "generated_image_variation_generics": [],
        }
        for index in range(number)
    ]


def teller(url: str, books: Books) -> Teller:
    """One address for all jobs of the account, which is told of success alone."""

    def tell(job: Job, pictures: list[dict[str, Any]]) -> Callback | None:
        webhook = books.setting("leonardo_webhook", None)
        if webhook is None:
            return None
        told = {
            "id": job.job_id,
            "status": "COMPLETE",
            "createdAt": datetime.fromtimestamp(job.at, UTC).isoformat(timespec="milliseconds"),
            "prompt": job.prompt,
            "modelId": job.request.get("modelId", DEFAULT_MODEL),
            "userId": USER_ID,
            "images": pictures,
            "apiKey": {"webhookCallbackUrl": webhook["url"], "webhookCallbackApiKey": webhook.get("key")},
        }
        body = {
            "type": "image_generation.complete",
            "object": "generation",
            "timestamp": int(time.time() * 1000),
            "api_version": "v1",
            "data": {"object": told},
        }
        headers = {"authorization": f"Bearer {webhook['key']}"} if webhook.get("key") else {}
        return Callback(webhook["url"], body, headers)

    def end(job: Job) -> Callback | None:
        if job.outcome != "complete":
            return None
        kept = ("id", "url", "nsfw")
        pictures = [{name: image[name] for name in kept} | {"generationId": job.job_id} for image in images(url, job)]
        return tell(job, pictures)

    def forged(job: Job) -> Callback | None:
        picture = {"id": str(uuid.uuid4()), "url": f"{url}/files/forged_0.png", "nsfw": False}
        return tell(job, [picture | {"generationId": job.job_id}])

    return Teller(end, forged)


HANDLERS = [
    order_images,
    order_video_of_image,
    order_video_of_text,
    order_motion,
    generation,
    delete_generation,
    generations,
    me,
    init_image,
]
