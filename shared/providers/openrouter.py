"""OpenRouter: chat completions in OpenAI's shape, with what they cost in dollars."""

from collections.abc import Sequence
from typing import Any

from windlass.shared.providers import openai
from windlass.shared.providers.base import Message


class Adapter(openai.Adapter):
    """It asks for usage in words of its own, and likes to know who asks."""

    def _body(self, messages: Sequence[Message], model: str) -> dict[str, Any]:
        return {"model": model, "messages": list(messages), "stream": True, "usage": {"include": True}}

    def _headers(self) -> dict[str, str]:
        return {**super()._headers(), "X-Title": "Windlass"}
