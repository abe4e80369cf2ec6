"""The storage that `WINDLASS_MEDIA_STORAGE` names: `file:///path`, `s3://bucket/prefix`, or a directory of ours.

An S3-compatible server is described by the URL's query: `?endpoint=http://minio:9000&region=eu-central-1`, and
`&virtual_hosted=true` where the endpoint has the bucket in its name. Keys never stand in the URL, which people copy and
programs print: the library takes them from where Amazon's own tools do, the variables AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, a web identity, or the role of the container or the machine.
"""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from obstore.store import LocalStore, ObjectStore, S3Store

from windlass.shared.settings import Settings
from windlass.shared.storage.errors import UnusableStorage
from windlass.shared.storage.files import PUT_SECONDS, MediaStorage

if TYPE_CHECKING:
    from obstore.store import S3Config

OPTIONS = {"endpoint", "region", "virtual_hosted"}
RETRIES, RETRY_SECONDS = 3, 10


def open_storage(settings: Settings) -> MediaStorage:
    if settings.media_storage is None:
        return _in_directory(settings.data_dir.absolute() / "media")
    url = urlsplit(settings.media_storage)
    if url.scheme == "file" and url.netloc in {"", "localhost"} and url.path.startswith("/") and not url.query:
        return _in_directory(Path(unquote(url.path)))
    if url.scheme == "s3" and url.netloc and not url.fragment:
        return _in_bucket(url)
    raise UnusableStorage("WINDLASS_MEDIA_STORAGE is neither file:///path nor s3://bucket/prefix")


def _in_directory(directory: Path) -> MediaStorage:
    return MediaStorage(lambda: LocalStore(directory, mkdir=True), directory=directory)


def _in_bucket(url: SplitResult) -> MediaStorage:
    if "@" in url.netloc:
        raise UnusableStorage("WINDLASS_MEDIA_STORAGE holds keys: pass them as AWS_ACCESS_KEY_ID and so on")
    options = dict(parse_qsl(url.query, keep_blank_values=True))
    if unknown := options.keys() - OPTIONS:
        raise UnusableStorage(
            f"WINDLASS_MEDIA_STORAGE: there is no {', '.join(sorted(unknown))}; known: {', '.join(sorted(OPTIONS))}. "
            "Keys are passed as AWS_ACCESS_KEY_ID and so on"
        )

    def connect() -> ObjectStore:
        endpoint = options.get("endpoint")
        config: S3Config = {}
        if endpoint:
            config["endpoint"] = endpoint
        if region := options.get("region"):
            config["region"] = region
        return S3Store(
            url.netloc,
            prefix=unquote(url.path).strip("/") or None,
            config=config,
            virtual_hosted_style_request=options.get("virtual_hosted", "false").lower() == "true",
            client_options={
                "allow_http": bool(endpoint and endpoint.startswith("http://")),
                "timeout": timedelta(seconds=PUT_SECONDS),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
        )

    return MediaStorage(connect)
