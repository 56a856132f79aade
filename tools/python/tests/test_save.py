"""Files are replaced whole or not at all, by the rule of engine/files/atomic_file.h."""

import fcntl
import os

import pytest
import tritgrad
from blobs import blobs
from tritgrad import _atomic_file

SPEC = {"epochs": 1, "model": "mlp:4", "recipe": "latent8"}


@pytest.fixture(scope="module")
def models():
    return [tritgrad.train(SPEC, *blobs(), seed=seed) for seed in (1, 2)]


@pytest.fixture
def path(models, tmp_path):
    models[0].save(tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def test_permissions_and_links_stay(models, path):
    path.chmod(0o640)
    link = path.with_name("link")
    link.symlink_to(path.name)
    models[1].save(link)
    assert path.read_bytes() == models[1].to_bytes() and link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_a_failure_leaves_the_old_file_and_nothing_else(call, models, path, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_atomic_file.os, call, fail)
    with pytest.raises(OSError, match="No space left"):
        models[1].save(path)
    monkeypatch.undo()
    assert path.read_bytes() == models[0].to_bytes()
    assert list(path.parent.iterdir()) == [path]


def test_what_a_killed_writer_left_is_overwritten(models, path):
    left = path.with_name(path.name + ".tritgrad-tmp")
    left.write_bytes(b"x" * 100000)
    models[1].save(path)
    assert path.read_bytes() == models[1].to_bytes() and not left.exists()


def test_another_writer_is_left_alone(models, path):
    with open(path.with_name(path.name + ".tritgrad-tmp"), "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="is writing to this file .it holds .*tritgrad-tmp"):
            models[1].save(path)
        assert os.path.exists(held.name)
    assert path.read_bytes() == models[0].to_bytes()


def test_what_cannot_be_replaced_is_refused(models, tmp_path):
    (tmp_path / "link").symlink_to("nothing")
    with pytest.raises(ValueError, match="a link to a file that does not exist"):
        models[0].save(tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    for wrong in (tmp_path, tmp_path / "pipe", "/dev/null"):
        with pytest.raises(ValueError):
            models[0].save(wrong)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        models[0].save(tmp_path / "none" / "m")


def test_a_file_that_is_no_checkpoint_is_kept(models, path):
    table = path.with_name("my.csv")
    table.write_text("a,b,y\n1,2,p\n")
    sentence = f"'{table}' is there and is no checkpoint, or a damaged one; delete it, or name"
    with pytest.raises(ValueError) as refusal:
        models[0].save(table)
    assert str(refusal.value) == sentence + " another file"
    assert table.read_text() == "a,b,y\n1,2,p\n"
    table.write_text("")  # as mktemp leaves it
    models[0].save(table)
    assert table.read_bytes() == models[0].to_bytes()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_write_protected_file_is_left_alone(models, path):
    path.chmod(0o400)
    with pytest.raises(PermissionError, match="write-protected"):
        models[1].save(path)
