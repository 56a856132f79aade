"""Data frames: names of columns are kept and compared, words are those that a model knows."""

import pickle
import tempfile
import warnings
from pathlib import Path

import command_line
import numpy as np
import pytest
import tritgrad
from blobs import blobs

pandas = pytest.importorskip("pandas")

SPEC = {"epochs": 2, "model": "mlp:8", "recipe": "latent8"}
LETTERS = list("abcdef")


def frame_of_blobs():
    X, y = blobs()
    return pandas.DataFrame(X, columns=LETTERS), y


def test_train_keeps_the_names_of_columns():
    frame, y = frame_of_blobs()
    model = tritgrad.train(SPEC, frame, y)
    by_array = tritgrad.train(SPEC, frame.to_numpy(), y)
    assert model.result["weights_sha256"] == by_array.result["weights_sha256"]
    assert model.feature_names == LETTERS and by_array.feature_names is None
    for other in (model, pickle.loads(pickle.dumps(model))):
        assert (other.predict(frame) == by_array.predict(frame.to_numpy())).all()
        assert (other.predict(frame.to_numpy()) == by_array.predict(frame)).all()


@pytest.mark.parametrize("change", [
    lambda frame: frame[LETTERS[::-1]],
    lambda frame: frame.rename(columns={"a": "A"}),
    lambda frame: frame.rename(columns=dict(zip(LETTERS, "uvwxyz"))),
    lambda frame: frame.assign(g=1.0),
    lambda frame: frame[["a", "b"]],
])
def test_other_columns_are_refused_in_scikit_learn_s_words(change):
    pytest.importorskip("sklearn")
    frame, y = frame_of_blobs()
    estimator = tritgrad.TernaryClassifier(epochs=1).fit(frame, y)
    with pytest.raises(ValueError) as expected:
        estimator.predict(change(frame))
    for model in (tritgrad.train(SPEC, frame, y), estimator.model_):
        for ask in (model.predict, model.predict_proba, model.values, model.predict_codes):
            with pytest.raises(ValueError) as found:
                ask(change(frame))
            assert str(found.value) == str(expected.value)


# Words, numbers far from zero, codes that are words, truth values; and cells that are missing.
def table(rows=120):
    draw = np.random.default_rng(5)
    kind = draw.integers(0, 3, rows)
    frame = pandas.DataFrame({
        "colour": np.array(["red", "green", "blue"])[(kind + draw.integers(0, 2, rows)) % 3],
        "time": 1.7e9 + 10 * kind + draw.normal(size=rows).round(3),
        "size": (kind + draw.normal(size=rows)).round(3),
        "code": np.array([10, 20, 30])[kind],
        "old": draw.random(rows) < 0.3 + 0.2 * kind,
        "kind": np.array(["x", "y", "z"])[kind],
    })
    holes = frame.astype({"colour": object})
    holes.loc[draw.choice(rows, 12, replace=False), "colour"] = None
    holes.loc[draw.choice(rows, 12, replace=False), "size"] = np.nan
    return frame, holes


def answers_of_eval(path, frame, predicted, folder, *options):
    """Returns the share of rows on which the program and Python agree."""
    frame.assign(kind=predicted).to_csv(folder / "asked.csv", index=False)
    asked = ("eval", path, "--data", folder / "asked.csv", *options)
    return command_line.json_of(*asked)["test_accuracy"]


@pytest.mark.parametrize("missing", ["refuse", "mean", "mode"])
def test_a_model_of_a_table_reads_frames_as_eval_reads_files(missing, tmp_path):
    whole, holes = table()
    frame = whole if missing == "refuse" else holes
    frame.to_csv(tmp_path / "t.csv", index=False)
    path = tmp_path / "m.safetensors"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = tritgrad.train({**SPEC, "epochs": 20}, data=tmp_path / "t.csv", words="code",
                               missing=missing, save=path)
    assert model.feature_names == ["colour", "time", "size", "code", "old"]
    found = model.predict(frame)
    assert 1 < len(set(found))
    assert (found == frame.kind).mean() > 0.5
    assert answers_of_eval(path, frame, found, tmp_path) == 1.0
    turned = frame[frame.columns[::-1]].assign(more="more")
    loaded = tritgrad.load(path)
    for asked in (turned, frame.astype({"colour": "category"}), frame.astype({"size": object}),
                  frame.convert_dtypes(), pandas.read_csv(tmp_path / "t.csv")):
        assert (loaded.values(asked) == model.values(frame)).all()
    others = np.roll(found, 1)
    assert answers_of_eval(path, frame, others, tmp_path) == (others == found).mean()


def trained_on(frame, **options):
    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(Path(folder) / "t.csv", index=False)
        return tritgrad.train(SPEC, data=Path(folder) / "t.csv", **options)


def test_question_marks_are_missing_cells():
    _, holes = table()
    asked = holes.fillna({"colour": "?"})
    with pytest.warns(UserWarning):
        model = trained_on(holes, missing="mean")
    assert (model.values(asked) == model.values(holes)).all()


def test_numbers_that_only_later_rows_miss_are_their_means(tmp_path):
    whole, holes = table()
    numbers = ["time", "size", "kind"]
    model = trained_on(whole[numbers], missing="mean", save=tmp_path / "m")
    found = model.predict(holes[numbers])
    assert len(set(found)) > 1
    assert answers_of_eval(tmp_path / "m", holes[numbers], found, tmp_path) == 1.0


def test_words_that_a_model_does_not_know_are_told_and_are_none_of_its_words(tmp_path):
    whole, _ = table()
    model = trained_on(whole, save=tmp_path / "m")
    asked = whole.head(9).copy()
    asked.loc[3, "colour"] = "mauve"
    with pytest.warns(UserWarning, match="1 of 9 cells of column 'colour' holds words that the "
                                         'model does not know, such as "mauve"'):
        found = model.predict(asked)
    assert answers_of_eval(tmp_path / "m", asked, found, tmp_path) == 1.0


@pytest.mark.parametrize("change, sentence", [
    ({"colour": None}, "row 0, column 'colour': the cell is missing, words expected; fill or"),
    ({"size": np.nan}, "row 0, column 'size': the cell is missing, numbers expected; fill or"),
    ({"size": np.inf}, "row 0, column 'size' is inf, a finite fp32 number expected"),
    ({"size": "tall"}, "row 0, column 'size' is 'tall', a number expected"),
    ({"time": pandas.Timestamp(0)}, "column 'time' is of datetime64.ns., numbers expected"),
])
def test_cells_that_cannot_be_read_are_refused(change, sentence):
    whole, _ = table()
    model = trained_on(whole)
    with pytest.raises(ValueError, match=sentence):
        model.predict(whole.assign(**change))


def test_columns_that_are_not_there_are_refused():
    whole, _ = table()
    model = trained_on(whole)
    with pytest.raises(ValueError, match="the model's columns colour, size are not there; add"):
        model.predict(whole.drop(columns=["colour", "size"]))
    with pytest.raises(ValueError, match="2 columns found, but the model has 5, called colour, ti"):
        model.predict(pandas.DataFrame({"p": [1], "q": [2]}))
    twice = pandas.concat([whole, whole[["size"]]], axis=1)
    with pytest.raises(ValueError, match="two columns are called 'size'"):
        model.predict(twice)
    with pytest.raises(ValueError, match="an array of objects found"):
        model.predict(whole.to_numpy())


def test_a_table_without_names_is_read_as_its_columns_stand(tmp_path):
    whole, _ = table()
    whole = whole[["colour", "size", "kind"]]
    whole.to_csv(tmp_path / "t.csv", index=False, header=False)
    model = tritgrad.train(SPEC, data=tmp_path / "t.csv")
    assert model.feature_names is None
    inputs = whole.drop(columns=["kind"])
    found = model.predict(inputs)
    assert len(set(found)) > 1
    inputs.columns = range(2)
    assert (model.predict(inputs) == found).all()
    with pytest.raises(ValueError, match="3 columns found, but the model has 2$"):
        model.predict(whole)


def test_a_built_in_set_has_names_too(root):
    iris = pandas.read_csv(root / "engine/data/iris.csv")
    model = tritgrad.train(SPEC, data="iris")
    X = iris.iloc[:, :4].to_numpy()
    assert (model.predict(iris[iris.columns[::-1]]) == model.predict(X)).all()
    with pytest.warns(UserWarning, match="other names than the model's .* in the order in which"):
        assert (model.predict(pandas.DataFrame(X, columns=LETTERS[:4])) == model.predict(X)).all()
    assert (model.predict(pandas.DataFrame(X)) == model.predict(X)).all()


def test_exports_are_checked_on_frames(tmp_path):
    whole, _ = table()
    assert trained_on(whole).export(tmp_path / "m.h", X=whole)["rows"] == len(whole)
