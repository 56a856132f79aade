"""Language models: the text that they write is the command line's."""

import ctypes

import pytest
import tritgrad
from blobs import blobs
from command_line import run
from tritgrad._interrupt import Interrupt
from tritgrad._text_writer import TextWriter

SENTENCE = "All people are born free and equal. "
MODEL = "llama:1,32:heads=2:ff=64:context=32"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("language") / "text.txt"
    path.write_text(SENTENCE * 200, encoding="utf-8")
    spec = {"data": f"text:{path}", "model": MODEL, "recipe": "latent8-lm", "epochs": 20}
    return tritgrad.train(spec, epoch_tokens=2048)


def test_a_run_says_bits_a_byte(trained):
    assert trained.describe()["task"] == "language"
    assert 0 < trained.result["test_bits_per_byte"] < 8


def test_the_text_is_that_of_the_program(trained, tmp_path):
    trained.save(tmp_path / "lm.safetensors")
    options = ["--length", "40", "--temperature", "0.7", "--top-k", "20", "--seed", "3"]
    printed, _ = run("generate", tmp_path / "lm.safetensors", "--prompt", "All ", "--quiet", *options)
    written = trained.generate("All ", length=40, temperature=0.7, top_k=20, seed=3)
    assert "All " + written + "\n" == printed
    assert trained.generate(b"All ", length=40, temperature=0.7, top_k=20, seed=3) == written


def test_a_reader_is_told_each_piece_and_may_end_it(trained):
    pieces = []
    whole = trained.generate("All ", length=50, temperature=0, on_text=pieces.append)
    assert "".join(pieces) == whole

    def ends(piece):
        pieces.append(piece)
        return len(pieces) == 3

    first = "".join(pieces[:3])
    pieces.clear()
    assert trained.generate("All ", length=50, temperature=0, on_text=ends).startswith(first)
    assert len(pieces) <= 4  # one may be the rest of a character


def test_tokens_within_a_character_are_joined():
    pieces = []
    writer = TextWriter(pieces.append, Interrupt())
    for part in ("é".encode()[:1], "é".encode()[1:], b"a", "é".encode()[:1]):
        assert writer.function(ctypes.create_string_buffer(part, len(part)), len(part), None) == 0
    assert pieces == ["é", "a"]
    assert writer.text() == "éa\ufffd"


def test_an_exception_of_the_reader_comes_out_as_it_is(trained, capsys):
    raised = KeyError("x")

    def fails(piece):
        raise raised

    with pytest.raises(KeyError) as found:
        trained.generate("All ", on_text=fails)
    assert found.value is raised
    assert capsys.readouterr() == ("", "")  # ctypes prints what it swallows


def test_a_model_is_not_closed_by_a_function_that_it_calls(trained):
    with pytest.raises(ValueError, match="it is at work; close it when the call has returned"):
        trained.generate("All ", on_text=lambda piece: trained.close())
    assert trained.generate("All ", length=3)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"prompt": ""}, "the prompt is empty"),
        ({"prompt": "x" * 33}, "at most 32"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "top_p|top-p"),
        ({"length": 0}, "length"),
    ],
)
def test_what_cannot_be_written_is_refused(trained, options, words):
    with pytest.raises(ValueError, match=words):
        trained.generate(**{"prompt": "All ", **options})


def test_another_kind_of_model_writes_no_text():
    with pytest.raises(ValueError, match="give the checkpoint of a language model"):
        tritgrad.train({"epochs": 1, "model": "mlp:4"}, *blobs()).generate("x")
    with pytest.raises(TypeError, match="on_text: int found"):
        tritgrad.Model.generate(None, "x", on_text=3)
    with pytest.raises(TypeError, match="prompt: int found"):
        tritgrad.Model.generate(None, 3)  # bytes(3) would be three NULs
