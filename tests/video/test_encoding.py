"""Video files: what goes in comes out, whole or not at all, and nothing else in the folder is touched."""

import subprocess
import sys

import numpy as np
import pytest
from videos import names, read_gif, read_video

from lit_sb3_ray.errors import ConfigError
from lit_sb3_ray.video.encoding import VideoFile


def pictures(number, height=32, width=48):
    """Plain ones, the brighter the later."""
    return [np.full((height, width, 3), (20 + 10 * index) % 256, np.uint8) for index in range(number)]


def write(folder, content, name="film", rate=20, gif=False):
    with VideoFile(folder, rate) as video:
        for each in content:
            video.add(each)
        return video.save(name, gif)


@pytest.mark.parametrize("rate", [20, 12.5, 60])
def test_pictures_come_out_as_they_went_in(tmp_path, rate):
    assert write(tmp_path, pictures(12), rate=rate) == [tmp_path / "film.mp4"]
    read, told = read_video(tmp_path / "film.mp4")
    assert read.shape == (12, 32, 48, 3)
    assert told == rate
    assert np.abs(read.mean(axis=(1, 2, 3)) - np.arange(20, 140, 10)).max() < 4
    assert names(tmp_path) == ["film.mp4"]


@pytest.mark.parametrize(("height", "width"), [(33, 47), (4, 4), (1, 1)])
def test_any_size_will_do(tmp_path, height, width):
    write(tmp_path, pictures(3, height, width))
    read, _ = read_video(tmp_path / "film.mp4")
    assert read.shape == (3, height + height % 2, width + width % 2, 3)
    assert abs(read[2, 0, 0].mean() - 40) < 6


def test_a_picture_of_another_size_is_fitted_into_the_first(tmp_path):
    wide = np.full((16, 96, 3), 200, np.uint8)
    write(tmp_path, [*pictures(1), wide])
    read, _ = read_video(tmp_path / "film.mp4")
    assert read.shape == (2, 32, 48, 3)
    assert read[1, 16].mean() > 190
    assert read[1, 0].mean() < 20


def test_views_are_written_as_they_look(tmp_path):
    left_half_white = np.zeros((32, 48, 3), np.uint8)
    left_half_white[:, 24:] = 255
    write(tmp_path, [left_half_white[:, ::-1]])
    read, _ = read_video(tmp_path / "film.mp4")
    assert read[0, :, :20].mean() > 245
    assert read[0, :, 28:].mean() < 10


def test_a_gif_shows_the_same_at_ten_pictures_a_second(tmp_path):
    assert write(tmp_path, pictures(20), gif=True) == [tmp_path / "film.mp4", tmp_path / "film.gif"]
    read, told = read_gif(tmp_path / "film.gif")
    assert told == 10
    assert read.shape == (10, 32, 48, 3)
    assert abs(read[0].mean() - 20) < 15
    assert abs(read[-1].mean() - 205) < 15
    assert names(tmp_path) == ["film.gif", "film.mp4"]


def test_a_slow_gif_keeps_its_rate(tmp_path):
    write(tmp_path, pictures(6), rate=5, gif=True)
    read, told = read_gif(tmp_path / "film.gif")
    assert told == 5
    assert len(read) == 6


def test_the_folder_is_made_and_all_else_in_it_stays(tmp_path):
    folder = tmp_path / "a %03d" / "b: 'c'"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    (folder / "film.mp4").write_text("older")
    write(folder, pictures(2), gif=True)
    assert names(folder) == ["film.gif", "film.mp4", "notes.txt"]
    assert (folder / "notes.txt").read_text() == "mine"
    assert len(read_video(folder / "film.mp4")[0]) == 2


def test_what_is_not_saved_leaves_nothing(tmp_path):
    (tmp_path / "film.mp4").write_text("older")
    with pytest.raises(ValueError, match="on the way"), VideoFile(tmp_path, 20) as video:
        video.add(pictures(1)[0])
        raise ValueError("on the way")
    assert names(tmp_path) == ["film.mp4"]
    assert (tmp_path / "film.mp4").read_text() == "older"


def test_without_a_picture_there_is_no_file(tmp_path):
    assert write(tmp_path / "new", []) == []
    assert names(tmp_path) == []


def test_an_encoder_that_fails_is_told_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", sys.executable)
    with pytest.raises(ConfigError, match=r"the video cannot be encoded: ffmpeg says .*python -h"):
        write(tmp_path, pictures(400, 64, 64))
    assert names(tmp_path) == []


def test_an_encoder_that_is_killed_is_told_in_one_line(tmp_path):
    with pytest.raises(ConfigError, match="the video cannot be encoded: ffmpeg was ended"), VideoFile(tmp_path, 20) as video:
        video.add(pictures(1)[0])
        video._encoder._process.kill()
        video._encoder._process.wait()
        for each in pictures(20):
            video.add(each)
        video.save("film")
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"videos cannot be written to '.*/file/videos'"):
        write(tmp_path / "file" / "videos", pictures(1))


def test_a_folder_that_came_into_the_place_of_the_video_is_told(tmp_path):
    (tmp_path / "film.mp4").mkdir()
    with pytest.raises(ConfigError, match=r"videos cannot be written to .*: Is a directory"):
        write(tmp_path, pictures(2))
    assert names(tmp_path) == ["film.mp4"]


@pytest.mark.parametrize("package", ["imageio_ffmpeg", "PIL"])
def test_a_missing_package_is_told_with_its_extra(package):
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from lit_sb3_ray.cli.main import main\n"
        "sys.exit(main(['record-video']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"lit-sb3-ray: error: recording a video needs the package {package!r}, which is not installed: "
        "pip install 'lit-sb3-ray[video]'"
    ]
