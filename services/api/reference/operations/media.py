"""What the operations on media take and answer, and those that providers call."""

from pydantic import BaseModel, ConfigDict

from windlass.services.api.reference.documents.media import GenerationPage, HeardDocument, UploadDocument
from windlass.services.api.reference.operation import Answer, Operation

FILE_HEADERS = {
    "ETag": "The file's SHA-256; `If-None-Match` and `If-Range` take it.",
    "Accept-Ranges": "`bytes`.",
}
HEARD = {200: Answer("It was about a job of ours, and its attempt has been woken.", (HeardDocument,))}


class CallbackBody(BaseModel):
    """Whatever the provider says; only the job that it names is used."""

    model_config = ConfigDict(extra="allow")


MEDIA_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/api/v1/media/{content_id}"): Operation(
        "Media",
        "Show a file",
        {
            200: Answer("The file; `HEAD` answers the same without it.", media_type="*/*", headers=FILE_HEADERS),
            206: Answer(
                "The part that `Range` asked for.",
                media_type="*/*",
                headers={**FILE_HEADERS, "Content-Range": "Which bytes, and of how many."},
            ),
            304: Answer("The client has it already."),
        },
        problems=(403, 404, 416, 500),
    ),
    ("GET", "/api/v1/media"): Operation("Media", "List media", {200: Answer("A page.", (GenerationPage,))}),
    ("POST", "/api/v1/media"): Operation(
        "Media",
        "Bring a picture",
        {201: Answer("It is kept.", (UploadDocument,), headers={"Location": "Where it can be seen."})},
        problems=(403, 408, 413, 415, 422),
        raw_body="image/*",
    ),
    ("GET", "/api/v1/workflow-runs/{workflow_run_id}/media"): Operation(
        "Media", "List a workflow run's media", {200: Answer("A page.", (GenerationPage,))}
    ),
    ("POST", "/api/v1/callbacks/{token}"): Operation(
        "Callbacks",
        "Call back about one job",
        HEARD,
        problems=(404, 429, 503),
        body=CallbackBody,
        example={"code": 200, "msg": "success", "data": {"taskId": "mj_task_abcdef123456"}},
        needs_a_key=False,
    ),
    ("POST", "/api/v1/callbacks/provider/{name}"): Operation(
        "Callbacks",
        "Call back about any job of a provider",
        HEARD,
        problems=(404, 429, 503),
        body=CallbackBody,
        example={"type": "image_generation.complete", "data": {"object": {"id": "b8ef6c5e-…"}}},
        needs_a_key=False,
    ),
}
