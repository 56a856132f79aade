"""Comparisons are those of the command line."""

import signal

import command_line
import pytest
import tritgrad
from blobs import blobs
from tritgrad import comparison
from tritgrad._library import lib

SPEC = {"model": "mlp:8", "epochs": 2, "recipes": ["master", "latent8"], "seeds": 2}


def test_rows_are_those_of_the_command_line(tmp_path):
    X, y = blobs()
    found = tritgrad.compare(SPEC, X, y)
    by_program = command_line.json_of(
        "compare", "--data", command_line.saved(tmp_path, X, y), "--model", "mlp:8", "--epochs", 2,
        "--recipes", "master,latent8", "--seeds", 2, "--quiet", "--cache", tmp_path / "cache",
    )["comparisons"][0]
    assert [row["recipe"] for row in found] == ["master", "latent8"] and len(found) == 2
    for row, expected in zip(found, by_program["recipes"]):
        for key in ("accuracy_mean", "accuracy_std", "delta_points", "delta_interval", "seeds",
                    "bytes_per_parameter"):
            assert row[key] == expected[key], key
    hashes = [run["weights_sha256"] for run in found.runs]
    assert hashes == [run["weights_sha256"] for run in by_program["runs"]]
    assert found.to_dict()["comparisons"][0]["baseline"] == "master"


def test_pandas_and_notebooks_take_it():
    found = tritgrad.compare({**SPEC, "data": "iris"})
    html = found._repr_html_()
    assert html.count("<tr>") == 3 and "latent8" in html and "latent8" in repr(found)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(found)
    assert frame.shape[0] == 2 and frame.set_index("recipe").accuracy_mean["latent8"] > 0.3


def test_a_callback_and_ctrl_c_end_it():
    def fail(point):
        raise KeyError(point.step)

    with pytest.raises(KeyError):
        tritgrad.compare(SPEC, *blobs(), callback=fail)
    for ends in (lambda point: True, lambda point: signal.raise_signal(signal.SIGINT)):
        with pytest.raises(KeyboardInterrupt):
            tritgrad.compare(SPEC, *blobs(), callback=ends)


def test_ctrl_c_behind_the_last_run_ends_it_too(monkeypatch):
    class Library:
        @staticmethod
        def tg_compare(*arguments):
            found = lib.tg_compare(*arguments)
            signal.raise_signal(signal.SIGINT)
            return found

    monkeypatch.setattr(comparison, "lib", Library)
    with pytest.raises(KeyboardInterrupt):
        tritgrad.compare(SPEC, *blobs())


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="latnt8"):
        tritgrad.compare({**SPEC, "recipes": ["latnt8"]}, *blobs())
    with pytest.raises(ValueError, match="seeds"):
        tritgrad.compare({**SPEC, "seeds": 0}, *blobs())
