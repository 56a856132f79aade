"""Callbacks, Ctrl-C and progress."""

import signal
import threading
import warnings

import pytest
import tritgrad
from blobs import blobs
from tritgrad import training

SPEC = {"epochs": 4, "model": "mlp:8", "batch": 16}


class Stop(BaseException):
    pass


def test_a_callback_is_told_each_step():
    points = []
    model = tritgrad.train(SPEC, *blobs(), callback=points.append)
    assert [point.step for point in points] == list(range(1, points[0].total_steps + 1))
    assert [points[0].epoch, points[-1].epoch] == [1, 4]
    assert model.result["steps"] == len(points)
    assert points[-1].loss == model.result["train_loss"]


@pytest.mark.parametrize("raised", [KeyError("x"), Stop(), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_comes_out_as_it_is(raised, capsys):
    def callback(point):
        if point.step == 3:
            raise raised
        assert point.step < 3

    with pytest.raises(type(raised)) as found:
        tritgrad.train(SPEC, *blobs(), callback=callback)
    assert found.value is raised
    assert capsys.readouterr() == ("", "")  # ctypes prints what it swallows


def test_a_true_value_ends_the_run_and_keeps_the_model():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = tritgrad.train(SPEC, *blobs(), callback=lambda point: point.step == 5)
    assert model.result["steps"] == model.describe()["steps"] == 5
    assert len(model.predict(blobs()[0])) == 200


def test_what_cannot_be_called_or_judged_is_refused():
    with pytest.raises(TypeError, match="callback: int found"):
        tritgrad.train(SPEC, *blobs(), callback=3)
    with pytest.raises(ValueError, match="truth value"):
        tritgrad.train(SPEC, *blobs(), callback=lambda point: blobs()[0])


def interrupt_at(step):
    return lambda point: signal.raise_signal(signal.SIGINT) if point.step == step else None


def test_ctrl_c_ends_the_run_after_its_step_and_keeps_the_model():
    before = signal.getsignal(signal.SIGINT)
    with pytest.warns(UserWarning, match="interrupted after 3 steps"):
        model = tritgrad.train(SPEC, *blobs(), callback=interrupt_at(3))
    assert model.describe()["steps"] == 3
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # means what it meant before


def test_ctrl_c_during_the_last_step_is_told():
    last = {**SPEC, "epochs": 1, "all_rows": True}  # 200 rows by 16: 13 steps
    with pytest.warns(UserWarning, match="interrupted after 13 steps"):
        model = tritgrad.train(last, *blobs(), callback=interrupt_at(13))
    assert model.result["steps"] == 13
    assert model.to_bytes() == tritgrad.train(last, *blobs()).to_bytes()


def test_ctrl_c_while_the_model_is_scored_keeps_it(monkeypatch):
    finish = training._Run.finish

    def interrupted_finish(run):
        signal.raise_signal(signal.SIGINT)
        return finish(run)

    monkeypatch.setattr(training._Run, "finish", interrupted_finish)
    with pytest.warns(UserWarning, match="interrupted after"):
        assert len(tritgrad.train(SPEC, *blobs()).predict(blobs()[0])) == 200


def test_ctrl_c_leaves_an_estimator_fitted(monkeypatch):
    from tritgrad import estimators

    monkeypatch.setattr(estimators, "watchers_of", lambda *_: [interrupt_at(2)])
    with pytest.warns(UserWarning, match="interrupted after 2 steps"):
        estimator = tritgrad.TernaryClassifier(epochs=3).fit(*blobs())
    assert len(estimator.predict(blobs()[0])) == 200


def test_another_handler_of_ctrl_c_stays():
    asked = []
    before = signal.signal(signal.SIGINT, lambda *_: asked.append(1))
    try:
        tritgrad.train(SPEC, *blobs(), callback=interrupt_at(3))
    finally:
        signal.signal(signal.SIGINT, before)
    assert asked == [1]


def test_nothing_is_shown_unless_it_is_asked_for(capfd):
    tritgrad.train(SPEC, *blobs())
    tritgrad.TernaryClassifier(epochs=1).fit(*blobs()).predict(blobs()[0])
    assert capfd.readouterr() == ("", "")
    tritgrad.train(SPEC, *blobs(), verbose=1)
    output, shown = capfd.readouterr()
    assert output == "" and "step" in shown and shown.endswith("\n")


def test_a_bar_of_tqdm_is_used_where_it_is_installed(monkeypatch):
    made = []

    class Bar:
        def __init__(self, total, unit):
            self.total, self.n = total, 0
            made.append(self)

        def update(self, steps):
            self.n += steps

        def set_postfix(self, **numbers):
            self.loss = numbers["loss"]

        def close(self):
            self.closed = True

    class Module:
        tqdm = Bar

    monkeypatch.setitem(__import__("sys").modules, "tqdm", Module)
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", Module)
    tritgrad.train(SPEC, *blobs(), verbose=1)
    (bar,) = made
    assert bar.n == bar.total > 0 and bar.closed


def test_two_threads_train_what_one_does():
    specs = [{**SPEC, "seed": 1, "recipe": "latent8"}, {**SPEC, "seed": 2, "recipe": "votes"}]
    specs = [{**spec, "epochs": 20} for spec in specs]
    alone = [tritgrad.train(spec, *blobs()).result["weights_sha256"] for spec in specs]
    at_once = {}
    both = threading.Barrier(2)

    def work(place):
        both.wait()
        at_once[place] = tritgrad.train(specs[place], *blobs()).result["weights_sha256"]

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [at_once[0], at_once[1]] == alone


def test_threads_share_a_model():
    X, y = blobs()
    model = tritgrad.train(SPEC, X, y)
    alone, wrong = model.values(X), []

    def work():
        for _ in range(50):
            if not (model.values(X) == alone).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
