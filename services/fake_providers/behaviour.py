"""What can be asked of the fake providers, by words in a prompt or over `/__control/script`.

A word in a prompt or in a chat's messages stands in double brackets, `a cat [[429=5]]`, and is heard whenever that text
comes; `[[429=5 x2]]` is heard the first two times. A script is the same word without brackets, for the next requests of
a provider. `poll:503` is meant for the call before the colon (`order`, which a chat is too, `poll`, `cancel`, `list`,
`account`, `upload` or `file`), a word without a colon for the order.

| word | what happens |
|---|---|
| `NNN`, `NNN=S` | a refusal with that status (400 to 599), with `Retry-After: S` |
| `body-code=NNN` | midapi: HTTP 200 whose body has that code |
| `delay=S` | the answer comes S seconds later; an order is in the books by then |
| `hang`, `hang-after` | no answer at all, before or after the order was taken |
| `drop-before`, `drop-after` | the connection is closed without an answer, before or after the order was taken |
| `garbage` | 200 with a page of HTML instead of JSON; the order was taken |
| `seconds=S`, `ends-at=T` | the job takes S seconds, or ends at that moment, in seconds since 1970 |
| `pending=N` | the job is found pending N times and ended the next time, whatever the clock says |
| `percent` | a pending job says how far it is, in `progress` |
| `fail`, `fail=3` | the job ends as failed (midapi: `successFlag` 2 or the number); a chat ends with an error |
| `fail-moderated` | the job ends as failed because of what it shows |
| `images=N` | so many images, whatever was ordered |
| `no-callback`, `callback-twice`, `callback-late=S` | the job's end is not told, told twice, or told S seconds late |
| `forged-callback` | at once somebody tells an end that is none, with an address that the provider never gave |
| `oversize=B`, `oversize-unsaid=B` | the files are B bytes long; unsaid: without a Content-Length |
| `mislabelled` | the files say that they are what was ordered and are HTML |
| `cut-file` | the connection is lost in the middle of a file |
| `redirect=URL` | the files' addresses redirect there |
| `pace=S` | a chat's stream pauses S seconds between chunks |
| `drop-stream`, `drop-stream=N` | the connection is lost after N chunks (2) |
| `error-in-stream`, `error-in-stream=CODE` | an error (502) inside an answer that began with 200 |
| `no-done` | the stream ends in order, but without usage and `[DONE]` |
| `finish=REASON` | the completion's `finish_reason` |
| `empty` | the completion has no text |

The word `moderated` in a prompt is refused by moderation. The keys `bad-key` and `no-credit` get 401 and 402.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

CALLS: Final = ("order", "poll", "cancel", "list", "account", "upload", "file")
PLAIN: Final = ""
NUMBER: Final = r"\d+(\.\d+)?"
PERHAPS_NUMBER: Final = rf"({NUMBER})?"
TEXT: Final = ".+"
VALUES: Final = {
    "delay": NUMBER,
    "hang": PLAIN,
    "hang-after": PLAIN,
    "drop-before": PLAIN,
    "drop-after": PLAIN,
    "garbage": PLAIN,
    "body-code": NUMBER,
    "seconds": NUMBER,
    "ends-at": NUMBER,
    "pending": NUMBER,
    "percent": PLAIN,
    "fail": PERHAPS_NUMBER,
    "fail-moderated": PLAIN,
    "images": NUMBER,
    "no-callback": PLAIN,
    "callback-twice": PLAIN,
    "callback-late": NUMBER,
    "forged-callback": PLAIN,
    "oversize": NUMBER,
    "oversize-unsaid": NUMBER,
    "mislabelled": PLAIN,
    "cut-file": PLAIN,
    "redirect": TEXT,
    "pace": NUMBER,
    "drop-stream": PERHAPS_NUMBER,
    "error-in-stream": PERHAPS_NUMBER,
    "no-done": PLAIN,
    "finish": TEXT,
    "empty": PLAIN,
}
"""What each word's value looks like; a status has a number or none."""

WORD = re.compile(r"(?:([a-z]+):)?([a-z]+(?:-[a-z]+)*|[45]\d\d)(?:=([^\]\s]+))?(?:\s+x(\d+))?")
IN_BRACKETS = re.compile(r"\s*\[\[([^\]]+)\]\]")


class NotAWord(ValueError):
    """Nothing is known by that name, or its value is not of its kind."""


@dataclass(frozen=True)
class Word:
    """One thing to do, at which call, and how often; no number is always."""

    call: str
    name: str
    value: str
    times: int | None

    @classmethod
    def parse(cls, text: str) -> Self:
        match = WORD.fullmatch(text.strip())
        if match is None:
            raise NotAWord(text)
        call, name, value, times = match.groups()
        if (call or "order") not in CALLS or not _is_known(name, value):
            raise NotAWord(text)
        return cls(call or "order", name, value or "", int(times) if times else None)

    def __str__(self) -> str:
        return f"{self.call}:{self.name}" + (f"={self.value}" if self.value else "")


def _is_known(name: str, value: str | None) -> bool:
    expected = PERHAPS_NUMBER if name.isdigit() else VALUES.get(name)
    return expected is not None and re.fullmatch(expected, value or "") is not None


def words_in(text: str) -> Iterator[Word]:
    """What is in double brackets and no word of ours is somebody's text."""
    for match in IN_BRACKETS.finditer(text):
        try:
            yield Word.parse(match[1])
        except NotAWord:
            continue


def without_words(text: str) -> str:
    return IN_BRACKETS.sub("", text)


@dataclass(frozen=True)
class Behaviour:
    """The words that hold for one request, or for one job."""

    words: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return name in self.words

    def number(self, name: str, default: float) -> float:
        return float(self.words.get(name) or default)

    def text(self, name: str) -> str | None:
        return self.words.get(name)

    @property
    def status(self) -> int | None:
        return next((int(name) for name in self.words if name.isdigit()), None)

    @property
    def retry_after(self) -> str | None:
        return self.words.get(str(self.status)) or None
