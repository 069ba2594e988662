"""Captions: the text is there, whole, in the middle, and covers nothing of the picture."""

import numpy as np
import pytest

from lit_sb3_ray.video.labels import BACKGROUND, MIN_WIDTH, caption, captioned, enlarged


@pytest.mark.parametrize("width", [MIN_WIDTH, 480, 600, 1920])
def test_the_text_fits_and_stands_in_the_middle(width):
    strip = caption("checkpoint, 100,000,000 steps", width)
    assert strip.shape[1:] == (width, 3)
    rows, columns = np.nonzero((strip != BACKGROUND).any(axis=2))
    assert columns.min() >= 4
    assert columns.max() < width - 4
    assert abs(columns.min() - (width - 1 - columns.max())) <= 4
    assert 0 < rows.min() < rows.max() < len(strip) - 1
    assert (strip == 255).all(axis=2).any()


def test_the_letters_grow_with_the_picture():
    assert len(caption("best model", 300)) < len(caption("best model", 600)) < len(caption("best model", 1500))


def test_other_texts_look_otherwise():
    assert (caption("final model, 10 steps", 300) != caption("final model, 20 steps", 300)).any()


@pytest.mark.parametrize(("width", "factor"), [(1, MIN_WIDTH), (64, 4), (160, 2), (MIN_WIDTH, 1), (600, 1)])
def test_small_pictures_are_enlarged_by_a_whole_factor(width, factor):
    picture = np.random.default_rng(0).integers(0, 256, (3, width, 3), dtype=np.uint8)
    large = enlarged(picture)
    assert large.shape == (3 * factor, width * factor, 3)
    assert (large[::factor, ::factor] == picture).all()
    assert (large[factor - 1 :: factor, factor - 1 :: factor] == picture).all()


def test_the_picture_is_whole_below_the_strip():
    picture = np.random.default_rng(0).integers(0, 256, (20, 300, 3), dtype=np.uint8)
    strip = caption("final model", 300)
    both = captioned(picture, strip)
    assert (both[: len(strip)] == strip).all()
    assert (both[len(strip) :] == picture).all()
