"""A budget for fits: every fit inside of the block is charged, whoever calls it, and none overspends."""

from __future__ import annotations

import copy
import gc
import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import warnings
from fractions import Fraction
from functools import partial
from unittest.mock import ANY

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import RFE
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from tests.support.bits import Stopped, Stopping
from tests.support.counts import FULL
from tests.support.forks import in_child, outcome

from tacit.errors import ParameterError, Refused
from tacit.learn import (
    PCA,
    AdditiveClassifier,
    GaussianNB,
    KMeans,
    LinearSVC,
    LogisticRegression,
    PrivateSearchCV,
    RepeatedFitWarning,
    Ridge,
    StandardScaler,
    budget,
    fit_account,
    fit_budget,
)
from tacit.privacy.loss import Compose
from tacit.sampling.bits import ReplayBits

RNG = np.random.default_rng(11)
ROWS = RNG.uniform(-1, 1, size=(120, 3))
SIDE = (ROWS[:, 0] > 0).astype(int)
PURE = {"epsilon": 1, "delta": 0, "bounds": (-1, 1), "rows": 120}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Accounts of this test in a folder of its own, for processes that are started too."""
    monkeypatch.setattr(fit_account.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def bayes(**more) -> GaussianNB:
    """A model that is quick to fit, at epsilon 1 with no delta: fits cost whole numbers by basic composition."""
    return GaussianNB(**{**PURE, "classes": [0, 1], **more})


def logistic(**more) -> LogisticRegression:
    settings = {"epsilon": 1, "delta": 1e-7, "bounds": (-1, 1), "rows": 120, "classes": [0, 1], "method": "gradient"}
    return LogisticRegression(**{**settings, **more})


CALLERS = {
    "fit": (1, lambda model: model.fit(ROWS, SIDE)),
    "clone": (1, lambda model: clone(model).fit(ROWS, SIDE)),
    "deepcopy": (1, lambda model: copy.deepcopy(model).fit(ROWS, SIDE)),
    "pipeline": (2, lambda model: make_pipeline(StandardScaler(**PURE), model).fit(ROWS, SIDE)),
    "cross_val_score": (3, lambda model: cross_val_score(model, ROWS, SIDE, cv=3)),
    "cross_val_predict": (4, lambda model: cross_val_predict(model, ROWS, SIDE, cv=4)),
    # two candidates on two folds, and the refit
    "GridSearchCV": (5, lambda model: GridSearchCV(model, {"missing": ["error", 0]}, cv=2).fit(ROWS, SIDE)),
    "BaggingClassifier": (
        3,
        lambda model: BaggingClassifier(model, n_estimators=3, bootstrap=False, max_samples=0.5).fit(ROWS, SIDE),
    ),
    "CalibratedClassifierCV": (2, lambda model: CalibratedClassifierCV(model, cv=2).fit(ROWS, SIDE)),
}


@pytest.mark.slow
@pytest.mark.parametrize("caller", CALLERS)
def test_every_fit_is_charged_whoever_calls_it(caller):
    count, call = CALLERS[caller]
    with budget(epsilon=10) as spending:
        call(bayes())
    assert spending.fits_ == count
    assert spending.spent_.epsilon == count  # at epsilon 1 each
    assert spending.loss_ == Compose((bayes().plan(3).privacy_loss,) * count) or caller == "pipeline"
    assert spending.guarantee_.epsilon == 10


@pytest.mark.slow
def test_threads_of_joblib_are_charged_and_never_overspend():
    with joblib.parallel_config(backend="threading"):
        with budget(epsilon=4) as spending:
            cross_val_score(bayes(), ROWS, SIDE, cv=4, n_jobs=-1)
        assert spending.fits_ == 4
        with budget(epsilon=3) as spending, pytest.warns(FitFailedWarning):
            cross_val_score(bayes(), ROWS, SIDE, cv=8, n_jobs=8)
        assert spending.fits_ == 3


def test_features_that_are_eliminated_cost_a_fit_each():
    # three features, then two, then the one that is left
    with budget(epsilon=3, delta=1e-6) as spending:
        RFE(logistic(), n_features_to_select=1).fit(ROWS, SIDE)
    assert spending.fits_ == 3


@pytest.mark.slow
def test_each_kind_of_estimator_is_charged_once():
    shared = {"epsilon": 1, "delta": 1e-7, "bounds": (-1, 1), "rows": 120}
    search = PrivateSearchCV(LogisticRegression(classes=[0, 1], bounds=(-1, 1), rows=120), {"C": [0.1, 1]}, trials=2)
    models = [
        logistic(),
        LinearSVC(classes=[0, 1], **shared),
        Ridge(target_bounds=(0, 1), **shared),
        AdditiveClassifier(classes=[0, 1], **shared),
        search.set_params(epsilon=1, delta=1e-7),
        bayes(),
        KMeans(n_clusters=2, **shared),
        PCA(**shared),
        StandardScaler(**shared),
    ]
    for model in models:
        with budget(epsilon=1, delta=1e-6) as spending:
            model.fit(ROWS, SIDE)
        assert spending.fits_ == 1 and spending.guarantee_.epsilon == 1
        with budget(epsilon=0.5, delta=1e-6) as spending, pytest.raises(Refused, match="would cost epsilon 1"):
            model.fit(ROWS, SIDE)
        assert spending.fits_ == 0


def test_a_fit_that_would_overspend_is_refused_before_it_uses_the_data():
    model = bayes(bits=Stopping())  # drawing noise would interrupt it
    with budget(epsilon=1.5) as spending:
        bayes().fit(ROWS, SIDE)
        with pytest.raises(Refused, match="with this fit, 2 of this budget would cost epsilon 2 together") as caught:
            model.fit(ROWS, SIDE)
        assert not hasattr(model, "guarantee_")  # nothing was spent by it
        bayes(epsilon=0.5).fit(ROWS, SIDE)  # what is left
    assert caught.value.code == "budget" and caught.value.fix.startswith("tacit.learn.budget(epsilon=2, delta=0)")
    assert spending.spent_.epsilon == Fraction(3, 2)


def test_a_fit_that_is_stopped_has_spent():
    with budget(epsilon=2) as spending, pytest.raises(Stopped):
        bayes(bits=Stopping()).fit(ROWS, SIDE)
    assert spending.fits_ == 1


def test_cross_validation_beyond_the_budget_has_no_scores_for_the_rest():
    with budget(epsilon=3) as spending, pytest.warns(FitFailedWarning, match="would cost epsilon 4 together"):
        scores = cross_val_score(bayes(), ROWS, SIDE, cv=5)
    assert spending.fits_ == 3 and np.isnan(scores).sum() == 2


def test_rows_that_are_drawn_again_are_refused():
    # A bootstrap has some rows twice, and one person would be two rows.
    with budget(epsilon=9) as spending, pytest.raises(ParameterError, match="would multiply") as caught:
        BaggingClassifier(bayes(), n_estimators=2, random_state=0).fit(ROWS, SIDE)
    assert spending.fits_ == 0 and "bootstrap=False" in caught.value.fix


def test_rows_that_are_left_out_are_not_learned_from():
    kept = np.arange(120) % 2
    replayed = bayes(bits=partial(ReplayBits, b"weights"))
    some = clone(replayed).fit(ROWS, SIDE, sample_weight=kept)
    other = clone(replayed).fit(ROWS[kept == 1], SIDE[kept == 1])
    assert np.array_equal(some.theta_, other.theta_)
    with pytest.raises(ParameterError, match="no row is left"):
        bayes().fit(ROWS, SIDE, sample_weight=np.zeros(120))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        bayes().fit(ROWS, SIDE, sample_weight=np.ones(7))


def test_public_rows_are_free():
    with budget(epsilon=1) as spending:
        for _ in range(3):
            bayes().fit(ROWS, SIDE, public=True)
        cross_val_score(bayes(), ROWS, SIDE, cv=2, params={"public": True})
        make_pipeline(StandardScaler(**PURE), bayes()).fit(
            ROWS, SIDE, standardscaler__public=True, gaussiannb__public=True
        )
        assert spending.fits_ == 0
        with pytest.raises(ParameterError, match="must be True or False"):
            bayes().fit(ROWS, SIDE, public="yes")
    assert spending.fits_ == 0


def test_inside_of_two_budgets_a_fit_is_charged_to_both():
    with budget(epsilon=3) as outer:
        bayes().fit(ROWS, SIDE)
        with budget(epsilon=1) as inner:
            bayes().fit(ROWS, SIDE)
            with pytest.raises(Refused, match="and it is 1,"):
                bayes().fit(ROWS, SIDE)
        bayes().fit(ROWS, SIDE)
    assert (outer.fits_, inner.fits_) == (3, 1)


def test_a_budget_is_entered_again_with_what_is_left():
    spending = budget(epsilon=3)
    with spending, spending:
        bayes().fit(ROWS, SIDE)  # inside of itself it is charged once
    assert spending.fits_ == 1 and fit_budget._registry.open == ()
    with spending:
        assert spending.fits_ == 1
        bayes(epsilon=2).fit(ROWS, SIDE)
        with pytest.raises(Refused):
            bayes(epsilon=0.1).fit(ROWS, SIDE)
    assert spending.spent_.epsilon == 3


def read_limits(spending):
    with fit_account._transaction(spending._path) as account:
        return account.limits


def test_the_limits_of_the_first_block_hold_in_the_second():
    # Chosen anew, they could be divided otherwise after results were seen.
    spending = budget(epsilon=3, delta=1e-6)
    with spending:
        bayes().fit(ROWS, SIDE)
    chosen = read_limits(spending)
    with spending:
        bayes(epsilon=0.01).fit(ROWS, SIDE)
    assert chosen is not None and read_limits(spending) == chosen


def test_a_block_that_an_error_leaves_is_closed():
    spending = budget(epsilon=2)
    bad = [(bayes(), ROWS), (bayes(), ROWS * np.nan)]
    with pytest.raises(ValueError, match="NaN"), spending:
        _ = [model.fit(rows, SIDE) for model, rows in bad]
    assert spending.fits_ == 1 and fit_budget._registry.open == ()
    path = spending._path
    assert fit_account.has_ended(path) and fit_account.ACCOUNTS_VARIABLE not in os.environ
    del spending
    gc.collect()
    assert not path.exists()


def run_python(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, with these variables beside the others."""
    return subprocess.run(
        [sys.executable, "-c", FITTING + code], env={**os.environ, **more}, capture_output=True, text=True, check=False
    )


FITTING = """
import numpy as np
from tacit.learn import StandardScaler, budget

def fit():
    StandardScaler(epsilon=1, delta=0, bounds=(0, 1), rows=100).fit(np.full((100, 1), 0.5))

"""


@pytest.mark.slow
def test_a_process_that_ends_leaves_a_note_that_the_next_one_removes(tmp_path):
    done = run_python("again = budget(2)\nwith again:\n    fit()\nwith budget(1):\n    fit()\nwith again:\n    fit()\n")
    assert done.returncode == 0, done.stderr
    folder = fit_account.accounts_folder()
    assert [file.suffix for file in folder.iterdir()] == [".removed"]
    with budget(1) as spending:
        assert list(folder.iterdir()) == [spending._path]


def test_accounts_of_a_process_that_is_ending_have_ended(monkeypatch):
    # what it started may fit on while it runs its last functions: in no budget, and not in one that was lost
    with budget(epsilon=1) as spending:
        pass
    monkeypatch.setattr(fit_budget._registry, "made", {spending._path})
    fit_budget._remove_all()
    assert not spending._path.exists() and fit_account.has_ended(spending._path)


@pytest.mark.slow
def test_a_process_with_another_folder_for_temporary_files_is_charged(tmp_path):
    elsewhere = tmp_path / "other:place"
    elsewhere.mkdir()
    with budget(epsilon=2) as spending:
        # its own budget does not make it forget what it was told of
        done = run_python("with budget(9):\n    fit()\nfit()\nfit()\n", TMPDIR=str(elsewhere))
        assert "with this fit, 3 of this budget would cost epsilon 3 together, and it is 2" in done.stderr
        assert spending.fits_ == 2
    # what is started after a block is in none: the process of the test above, each day
    assert not FULL or run_python("fit()", TMPDIR=str(elsewhere)).returncode == 0


def test_an_interrupt_at_the_end_of_a_block_loses_no_charge(monkeypatch):
    spending = budget(epsilon=2)

    def interrupt(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fit_budget, "close_account", interrupt)
        with pytest.raises(KeyboardInterrupt), spending:
            bayes().fit(ROWS, SIDE)
    assert fit_budget._registry.open == () and (spending.fits_, spending.spent_.epsilon) == (1, 1)
    with spending:
        assert spending.fits_ == 1
        bayes().fit(ROWS, SIDE)
        with pytest.raises(Refused, match="3 of this budget would cost epsilon 3"):
            bayes().fit(ROWS, SIDE)
    assert spending.fits_ == 2


def test_an_account_that_is_lost_counts_as_spent():
    spending = budget(epsilon=5).__enter__()
    bayes().fit(ROWS, SIDE)
    spending._path.unlink()
    with pytest.raises(Refused, match="cannot be reached"):
        bayes().fit(ROWS, SIDE)
    with pytest.raises(Refused, match="was lost, so all of the budget counts as spent"):
        spending.__exit__(None, None, None)
    assert spending.spent_ == spending.guarantee_ and fit_budget._registry.open == ()
    for read in (lambda: spending.fits_, lambda: spending.loss_, spending.__enter__):
        with pytest.raises(Refused, match="was lost") as caught:
            read()
    assert caught.value.fix.startswith("tacit.learn.budget(epsilon=5, delta=0)")
    bayes().fit(ROWS, SIDE)  # in no block


def test_an_account_that_is_lost_between_blocks_is_not_opened_again():
    spending = budget(epsilon=5)
    with spending:
        bayes().fit(ROWS, SIDE)
    spending._path.unlink()
    with pytest.raises(Refused, match="was lost"):
        spending.__enter__()
    assert spending.spent_ == spending.guarantee_


def test_the_error_of_a_block_is_kept_where_its_account_is_lost():
    spending = budget(epsilon=5)
    with pytest.raises(FileNotFoundError), spending:
        _ = [spending._path.unlink() for _ in range(2)]
    assert spending.spent_ == spending.guarantee_


def test_an_account_of_another_process_with_the_same_number_is_charged(monkeypatch):
    # Processes of two containers may have the same number.
    with budget(epsilon=2) as spending:
        sent = pickle.dumps(bayes())
        with monkeypatch.context() as other:
            forget_budgets(other)
            received = pickle.loads(sent)
            received.fit(ROWS, SIDE)
            clone(received).fit(ROWS, SIDE)
            with pytest.raises(Refused, match="would cost epsilon 3"):
                received.fit(ROWS, SIDE)
        assert spending.fits_ == 2


def report_fit(_: int) -> str:
    """What becomes of a fit in this process."""
    try:
        bayes().fit(ROWS, SIDE)
    except Refused as error:
        return error.what
    return "fitted"


@pytest.mark.slow
def test_a_pool_of_forks_that_was_made_in_one_block_fits_in_the_next():
    with budget(epsilon=1) as first:
        pool = multiprocessing.get_context("fork").Pool(1)
        assert pool.map(report_fit, range(2)) == ["fitted", ANY]
    kept = first.fits_
    for keep in (True, False):
        if not keep:  # the first block's file is removed with it
            del first
            gc.collect()
        assert "has ended" in pool.map(report_fit, [0])[0]
        with budget(epsilon=1) as second:
            done = pool.map(report_fit, range(2))
            assert done[0] == "fitted" and "2 of this budget would cost epsilon 2" in done[1]
        assert (kept, second.fits_) == (1, 1)
    pool.terminate()
    pool.join()


def test_fits_of_all_threads_are_charged_and_those_after_the_block_are_not():
    ended = threading.Event()
    with budget(epsilon=5) as spending:
        inside = threading.Thread(target=lambda: bayes().fit(ROWS, SIDE))
        inside.start()
        inside.join()
        late = threading.Thread(target=lambda: (ended.wait(), bayes().fit(ROWS, SIDE)))
        late.start()
    ended.set()
    late.join()
    assert spending.fits_ == 1


def test_a_fork_charges_its_parent_and_does_not_end_the_block():
    with budget(epsilon=3) as spending:

        def work() -> int:
            bayes().fit(ROWS, SIDE)
            spending.__exit__(None, None, None)  # as a fork that returns from the block does
            bayes().fit(ROWS, SIDE)
            try:
                budget(epsilon=1).__enter__()
                spending.__enter__()
            except Refused:
                return 7
            return 8

        assert outcome(in_child(work)) == 7
        bayes().fit(ROWS, SIDE)
    assert spending.fits_ == 3


def test_a_fork_that_outlives_the_block_is_refused():
    reading, writing = os.pipe()
    with budget(epsilon=3) as spending:

        def work() -> int:
            os.read(reading, 1)
            try:
                bayes().fit(ROWS, SIDE)
            except Refused as error:
                return 7 if "has ended" in error.what else 8
            return 9

        child = in_child(work)
    os.write(writing, b"x")
    assert outcome(child) == 7
    assert spending.fits_ == 0


def forget_budgets(patch):
    """As in a process that the block's did not start."""
    patch.setattr(fit_budget._registry, "open", ())
    patch.setattr(fit_budget._registry, "made", set())
    patch.delenv(fit_account.ACCOUNTS_VARIABLE, raising=False)


def test_an_estimator_that_was_sent_elsewhere_is_charged_or_refused(monkeypatch):
    with budget(epsilon=3) as spending:
        sent = pickle.dumps(bayes())
        within = pickle.loads(sent)
        with monkeypatch.context() as other:  # as in a process that the block's did not start
            forget_budgets(other)
            other.setattr(os, "getpid", lambda: -1)
            clone(within).fit(ROWS, SIDE)  # what it was cloned from came with the account
            assert pickle.loads(pickle.dumps(within)).fit(ROWS, SIDE).guarantee_.epsilon == 1
        assert spending.fits_ == 2
    with monkeypatch.context() as other:
        forget_budgets(other)
        other.setattr(os, "getpid", lambda: -1)
        with pytest.raises(Refused, match="has ended, or cannot be reached"):
            clone(within).fit(ROWS, SIDE)
        type(within)(**within.get_params()).fit(ROWS, SIDE)  # the fix
    within.fit(ROWS, SIDE)  # in its own process it is known that the block has ended
    assert not hasattr(pickle.loads(pickle.dumps(within)), "_carried_accounts")


def test_replacing_and_adding_rows_are_budgets_of_their_own():
    with budget(epsilon=2), pytest.raises(Refused, match="under replace"):
        bayes(neighbors="replace", rows=None).fit(ROWS, SIDE)
    with budget(epsilon=3, neighbors="replace") as spending:
        bayes(neighbors="replace", rows=None).fit(ROWS, SIDE)
        bayes().fit(ROWS, SIDE)  # costs two
    assert spending.spent_.epsilon == 3


@pytest.mark.slow
def test_many_fits_cost_less_than_their_sum():
    # Twenty fits at epsilon 0.1 are 2 by basic composition. Noise of gradients has a rho of about
    # (0.1)^2/(4 ln(1/delta)) each, so that they grow with the root of their number.
    with budget(epsilon=1, delta=1e-6) as spending:
        for _ in range(20):
            logistic(epsilon=0.1, delta=1e-8).fit(ROWS, SIDE)
    assert spending.fits_ == 20 and 0.1 * np.sqrt(20) * 0.5 < spending.spent_.epsilon < 1


def test_the_second_fit_outside_of_a_budget_warns_once_of_the_sum(monkeypatch):
    monkeypatch.setattr(fit_budget._registry, "outside", [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bayes().fit(ROWS, SIDE)
        with budget(epsilon=1):
            bayes().fit(ROWS, SIDE)
        bayes().fit(ROWS, SIDE, public=True)
        with pytest.raises(RepeatedFitWarning, match="cost epsilon 3, delta 0 if they learned from the same") as caught:
            bayes(epsilon=2).fit(ROWS, SIDE)
        bayes().fit(ROWS, SIDE)
    assert "warning [repeated-fits]" in str(caught.value)
    assert caught.value.fix == "with tacit.learn.budget(epsilon=3, delta=0): ..."
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"epsilon": 0}, "epsilon: must be between"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": 1, "delta": 1}, "delta: must be in"),
        ({"epsilon": 1, "neighbors": "both"}, "neighbors: is not a neighbor relation"),
    ],
)
def test_what_is_wrong_with_a_budget_is_said(wrong, says):
    with pytest.raises(ParameterError, match=says) as caught:
        budget(**wrong)
    assert caught.value.fix


def fit_in_worker(_: int) -> int:
    """A fit of an estimator that the worker makes itself; the process it ran in."""
    bayes().fit(ROWS, SIDE)
    return os.getpid()


@pytest.mark.slow
def test_processes_of_joblib_are_charged_and_never_overspend(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")  # what n_jobs=-1 means
    with joblib.parallel_config(backend="loky"):
        # workers that are there before the block, and outlive it
        others = set(joblib.Parallel(n_jobs=-1)(joblib.delayed(os.getpid)() for _ in range(4)))
        assert os.getpid() not in others
        with budget(epsilon=4) as spending:
            assert np.isfinite(cross_val_score(bayes(), ROWS, SIDE, cv=3, n_jobs=-1)).all()
            assert spending.fits_ == 3
            with pytest.raises(Refused, match="would cost epsilon 5 together"):
                joblib.Parallel(n_jobs=-1)(joblib.delayed(fit_in_worker)(number) for number in range(6))
        assert spending.fits_ == 4
        with budget(epsilon=3) as spending, pytest.warns(FitFailedWarning):
            cross_val_score(bayes(), ROWS, SIDE, cv=6, n_jobs=-1)
        assert spending.fits_ == 3
        joblib.Parallel(n_jobs=-1)(joblib.delayed(fit_in_worker)(number) for number in range(2))  # in no budget
        # an ensemble clones its models in the worker
        with budget(epsilon=4) as spending:
            BaggingClassifier(bayes(), n_estimators=4, bootstrap=False, max_samples=0.5, n_jobs=-1).fit(ROWS, SIDE)
        assert spending.fits_ == 4
    assert io.BytesIO(pickle.dumps(bayes())).getvalue().find(b".account") == -1
