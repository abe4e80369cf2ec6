"""The demo agent: counts and thinks aloud about its prompt, line by line, and ends with a JSON object.

It shows what Windlass expects of an agent: one JSON object on stdin, words on stdout and on stderr, lines of progress,
the result as the last JSON object, and an end soon after SIGTERM. Its `params`: `seconds` and `steps` (how long it
thinks, and in how many lines), `fail` (`exit`: exit code 1, `permanent`: an error that trying again cannot mend).
Standard library only.
"""

import json
import signal
import sys
import time
from typing import Any, NoReturn


def main() -> None:
    signal.signal(signal.SIGTERM, _leave)
    order: dict[str, Any] = json.load(sys.stdin)
    params = order["params"]
    seconds, steps = float(params.get("seconds", 2)), max(1, int(params.get("steps", 4)))
    prompt = str(order["prompt"])
    say(f"I am attempt {order['attempt']} at: {shortened(prompt)}")
    if order.get("previous_output"):
        say(f"An earlier attempt has left {len(order['previous_output'].splitlines())} lines behind.")
    for step in range(1, steps + 1):
        time.sleep(seconds / steps)
        say(f"Step {step} of {steps}: {thought(prompt, step)}")
        say(json.dumps({"progress": {"percent": 100 * step / steps, "message": f"Counted to {step} of {steps}"}}))
    if params.get("fail") == "permanent":
        say(json.dumps({"error": {"kind": "permanent", "message": "the demo agent was told to give up"}}))
        return
    if params.get("fail"):
        sys.exit("the demo agent was told to fail")
    say(json.dumps({"answer": f"I have thought about it {steps} times.", "words": len(prompt.split()), "steps": steps}))


def thought(prompt: str, step: int) -> str:
    words = prompt.split() or ["nothing"]
    return f"what matters here is “{words[(step - 1) % len(words)][:60]}”."


def shortened(prompt: str) -> str:
    return prompt if len(prompt) <= 60 else f"{prompt[:59]}…"


def say(line: str) -> None:
    print(line, flush=True)


def _leave(_number: int, _frame: object) -> NoReturn:
    print("I was told to stop, so I stop here.", file=sys.stderr, flush=True)
    sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    main()
