"""Uploaded media: the owner of each handle, and the bytes of the latest files for the page to show."""

from collections import OrderedDict
from dataclasses import dataclass

MAX_UPLOAD_BYTES = 100 * 2**20
MAX_HANDLES = 100_000
MAX_KEPT_BYTES = 64 * 2**20  # of all content together
MAX_SHOWN_BYTES = 16 * 2**20  # larger files are known by name and size only


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    handle: str
    account: str
    filename: str
    content_type: str
    size: int


class Uploads:
    """The uploads. A handle works only for the account that uploaded it."""

    def __init__(self) -> None:
        self._uploads: OrderedDict[str, Upload] = OrderedDict()
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._kept = 0

    def put(self, upload: Upload, content: bytes | None = None) -> None:
        self._uploads[upload.handle] = upload
        if len(self._uploads) > MAX_HANDLES:
            handle, _ = self._uploads.popitem(last=False)
            self._kept -= len(self._contents.pop(handle, b""))
        if content is not None:
            self._keep(upload.handle, content)

    def knows(self, handle: str, account: str) -> bool:
        upload = self._uploads.get(handle)
        return upload is not None and upload.account == account

    def get(self, handle: str) -> Upload | None:
        return self._uploads.get(handle)

    def content(self, handle: str) -> bytes | None:
        return self._contents.get(handle)

    def forget(self, account: str) -> None:
        for handle in [handle for handle, upload in self._uploads.items() if upload.account == account]:
            del self._uploads[handle]
            self._kept -= len(self._contents.pop(handle, b""))

    def _keep(self, handle: str, content: bytes) -> None:
        self._contents[handle] = content
        self._kept += len(content)
        while self._kept > MAX_KEPT_BYTES:
            _, oldest = self._contents.popitem(last=False)
            self._kept -= len(oldest)
