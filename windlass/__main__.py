"""The `windlass` command, and `python -m windlass`."""

from importlib.util import find_spec


def main() -> int:
    if find_spec("pydantic_settings") is None:
        raise SystemExit(
            "windlass: here is the client alone; the command comes with: pip install '.[server]' in a clone of Windlass"
        )
    from windlass.services.cli.main import main as command  # noqa: PLC0415 - the client alone has not what it needs

    return command()


if __name__ == "__main__":
    raise SystemExit(main())
