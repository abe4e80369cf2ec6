"""Real little pictures and films that show their prompt, always the same for the same prompt."""

import hashlib
import io
import random
import textwrap
from functools import lru_cache

from PIL import Image, ImageDraw

LONGEST_SIDE = 320
FRAMES = 8
FRAME_MILLISECONDS = 120
FORMATS = {"png": ("PNG", "image/png"), "jpeg": ("JPEG", "image/jpeg"), "gif": ("GIF", "image/gif")}
Colour = tuple[int, int, int]


@lru_cache(maxsize=32)
def draw(prompt: str, index: int, extension: str, width: int, height: int) -> bytes:
    """A film if it is a GIF, else a picture."""
    scale = min(LONGEST_SIDE / max(width, height), 1)
    size = max(int(width * scale), 16), max(int(height * scale), 16)
    name, _ = FORMATS[extension]
    file = io.BytesIO()
    if extension == "gif":
        frames = [_picture(prompt, index, size, step / FRAMES) for step in range(FRAMES)]
        frames[0].save(file, name, save_all=True, append_images=frames[1:], duration=FRAME_MILLISECONDS, loop=0)
    else:
        _picture(prompt, index, size, 0).save(file, name)
    return file.getvalue()


def _picture(prompt: str, index: int, size: tuple[int, int], turn: float) -> Image.Image:
    """Discs over a sky, and the prompt below; `turn` moves the discs from left to right and round again."""
    chance = random.Random(hashlib.sha256(f"{prompt}/{index}".encode()).digest())  # noqa: S311 - guards no secret
    width, height = size
    picture = Image.new("RGB", size, _colour(chance, 20, 110))
    canvas = ImageDraw.Draw(picture)
    for _ in range(7):
        radius = chance.uniform(0.05, 0.22) * min(size)
        x = (chance.uniform(0, width) + turn * width) % width
        y = chance.uniform(0, height)
        canvas.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_colour(chance, 90, 250))
    lines = textwrap.wrap(f"{index + 1}: {prompt}", width=max(width // 7, 8))[:4]
    top = max(height - 12 * len(lines) - 8, 0)
    canvas.rectangle((0, top, width, height), fill=(0, 0, 0))
    for number, line in enumerate(lines):
        canvas.text((6, top + 4 + 12 * number), line, fill=(255, 255, 255))
    return picture


def _colour(chance: random.Random, darkest: int, brightest: int) -> Colour:
    return chance.randint(darkest, brightest), chance.randint(darkest, brightest), chance.randint(darkest, brightest)
