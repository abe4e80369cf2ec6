"""The pictures and films that the fake providers make."""

import io

import pytest
from PIL import Image, ImageFile

from windlass.services.fake_providers.drawing import FORMATS, draw


@pytest.mark.parametrize("extension", FORMATS)
def test_they_are_what_they_say(extension: str) -> None:
    drawn = draw("a cat", 0, extension, 1024, 768)
    with Image.open(io.BytesIO(drawn)) as picture:
        assert isinstance(picture, ImageFile.ImageFile)
        picture.load()
        assert picture.get_format_mimetype() == FORMATS[extension][1]
        assert picture.size == (320, 240)
        assert getattr(picture, "n_frames", 1) == (8 if extension == "gif" else 1)


def test_the_same_prompt_gives_the_same_picture_and_another_one_another() -> None:
    first = draw("a cat", 0, "png", 512, 512)
    draw.cache_clear()
    assert draw("a cat", 0, "png", 512, 512) == first
    assert draw("a cat", 1, "png", 512, 512) != first
    assert draw("a dog", 0, "png", 512, 512) != first


def test_letters_of_any_language_do_not_keep_it_from_drawing() -> None:
    assert draw("猫とロープ — naïve" * 50, 0, "png", 64, 1536)
