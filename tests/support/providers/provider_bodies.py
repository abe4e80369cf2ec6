"""What the providers' documentation shows, word for word as notes/providers.md has it; `…` stands for anything."""

import json
from typing import Any

COMPLETION = json.loads(
    """{"id":"gen-…","model":"…","object":"chat.completion","created":1,"choices":[{"index":0,"message":{"role":
    "assistant","content":"…"},"finish_reason":"stop","native_finish_reason":"…"}],"usage":{"prompt_tokens":12,
    "completion_tokens":8,"total_tokens":20,"cost":0.1}}"""
)
CHUNK = json.loads(
    '{"id":"gen-…","object":"chat.completion.chunk","choices":[{"delta":{"content":"…"},"finish_reason":null}]}'
)
OPENROUTER_ERROR = json.loads('{"error":{"code":401,"message":"…"}}')
OPENROUTER_MODERATION = json.loads('{"error":{"code":403,"message":"…","metadata":{}}}')

LEONARDO_ORDERED = json.loads(
    """{"sdGenerationJob":{"generationId":"…","apiCreditCost":null,"cost":{"amount":"0.0147","unit":"DOLLARS"}}}"""
)
LEONARDO_COMPLETE = json.loads(
    """{"generations_by_pk":{"id":"…","status":"COMPLETE","createdAt":"…","prompt":"…","negativePrompt":null,
    "modelId":"…","imageWidth":1024,"imageHeight":768,"seed":null,"generated_images":[{"id":"…","url":"…","nsfw":false,
    "likeCount":0,"motionMP4URL":null,"generated_image_variation_generics":[]}]}}"""
)
LEONARDO_UNKNOWN = json.loads('{"generations_by_pk": null}')
LEONARDO_DELETED = json.loads('{"delete_generations_by_pk":{"id":"…"}}')
LEONARDO_NO_KEY = json.loads(
    '{"error":"Authentication hook unauthorized this request","path":"$","code":"access-denied"}'
)
LEONARDO_BAD_KEY = json.loads('{"error":"Invalid response from authorization hook","path":"$","code":"unexpected"}')
LEONARDO_ME = json.loads('{"user_details":[{"user":{"id":"…","username":"…"}}]}')
LEONARDO_UPLOAD = json.loads('{"uploadInitImage":{"id":"…","url":"…","fields":"…","key":"…"}}')
LEONARDO_WEBHOOK = json.loads(
    """{"type":"image_generation.complete","object":"generation","timestamp":1699490546932,"api_version":"v1","data":
    {"object":{"id":"…","status":"COMPLETE","images":[{"id":"…","url":"…","generationId":"…","nsfw":false}],
    "prompt":"…","apiKey":{}}}}"""
)

MIDAPI_ORDERED = json.loads('{"code":200,"msg":"success","data":{"taskId":"mj_task_abcdef123456"}}')
MIDAPI_RECORD = json.loads(
    """{"code":200,"msg":"success","data":{"taskId":"…","taskType":"…","paramJson":"…","completeTime":"…",
    "resultInfoJson":{"resultUrls":[{"resultUrl":"https://…jpeg"}]},"successFlag":1,"createTime":"…","errorCode":null,
    "errorMessage":null}}"""
)
MIDAPI_CALLBACK = json.loads(
    """{"code":200,"msg":"success","data":{"taskId":"…","promptJson":"…","resultUrls":["https://…"]}}"""
)


def differences(documented: Any, actual: Any, place: str = "$") -> list[str]:
    """Where a body is not what the documentation shows: another type, or something missing. More is no difference."""
    if isinstance(documented, dict) and isinstance(actual, dict):
        missing = [f"{place}.{name} is missing" for name in documented if name not in actual]
        there = [name for name in documented if name in actual]
        return missing + [
            each for name in there for each in differences(documented[name], actual[name], f"{place}.{name}")
        ]
    if isinstance(documented, list) and isinstance(actual, list):
        if documented and not actual:
            return [f"{place} is empty"]
        return [
            each for item in actual for each in differences(documented[0] if documented else item, item, f"{place}[]")
        ]
    if isinstance(documented, str) and "…" not in documented:
        same = isinstance(actual, str) and (documented == actual or documented.startswith("mj_task_"))
        return [] if same else [f"{place} is {actual!r}, not {documented!r}"]
    if type(documented) is type(actual):
        return []
    return [f"{place} is a {type(actual).__name__}, not a {type(documented).__name__}"]
