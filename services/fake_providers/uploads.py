"""Pictures to begin with: Leonardo names a place, the picture is posted there as a form, and then it has an id."""

import json
import sqlite3
import uuid
from dataclasses import dataclass
from typing import Any

from litestar import Response, post
from litestar.datastructures import UploadFile
from litestar.status_codes import HTTP_204_NO_CONTENT, HTTP_403_FORBIDDEN

from windlass.services.fake_providers.desk import Incoming

DENIED = "<Error><Code>AccessDenied</Code><Message>Invalid according to Policy</Message></Error>"


@dataclass(frozen=True)
class Upload:
    """`fields` is what the form has to say, as JSON in a string."""

    upload_id: str
    fields: str

    @property
    def key(self) -> str:
        return str(json.loads(self.fields)["key"])


class Uploads:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def begin(self, extension: str) -> Upload:
        upload_id = str(uuid.uuid4())
        fields = {
            "Content-Type": f"image/{extension.replace('jpg', 'jpeg')}",
            "bucket": "image-uploads.fake",
            "key": f"uploads/{upload_id}.{extension}",
            "Policy": uuid.uuid4().hex,
            "X-Amz-Signature": uuid.uuid4().hex,
        }
        upload = Upload(upload_id, json.dumps(fields))
        self._database.execute("INSERT INTO uploads (upload_id, fields) VALUES (?, ?)", (upload_id, upload.fields))
        return upload

    def find(self, upload_id: str) -> Upload | None:
        row = self._database.execute("SELECT * FROM uploads WHERE upload_id = ?", (upload_id,)).fetchone()
        return Upload(row["upload_id"], row["fields"]) if row else None

    def keep(self, upload: Upload, picture: bytes) -> None:
        self._database.execute("UPDATE uploads SET picture = ? WHERE upload_id = ?", (picture, upload.upload_id))

    def has_picture(self, upload_id: object) -> bool:
        statement = "SELECT 1 FROM uploads WHERE upload_id = ? AND picture IS NOT NULL"
        return self._database.execute(statement, (str(upload_id),)).fetchone() is not None


@post("/uploads/{upload_id:str}")
async def receive_upload(request: Incoming, uploads: Uploads, upload_id: str) -> Response[Any]:
    """Takes the picture only with the fields that came with the place; no key is asked for."""
    upload = uploads.find(upload_id)
    form = await request.form()
    picture = form.get("file")
    if upload is None or not isinstance(picture, UploadFile):
        return Response(DENIED, status_code=HTTP_403_FORBIDDEN, media_type="application/xml")
    if any(form.get(name) != value for name, value in json.loads(upload.fields).items()):
        return Response(DENIED, status_code=HTTP_403_FORBIDDEN, media_type="application/xml")
    uploads.keep(upload, await picture.read())
    return Response(None, status_code=HTTP_204_NO_CONTENT)
