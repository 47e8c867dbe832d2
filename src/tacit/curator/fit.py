"""The story of a fit: a model learned from one row of each unit, charged like a question.

**Theorem.** The model that `fit` returns is (epsilon, delta)-DP for the policy's unit under add-remove, and is charged
so on the ledger before data is touched; with the answers to all questions it stays within the policy's budget. Proof.
The rows of a unit are a function of its own rows (`plan/scope.py`), and one of them is kept by a rule that looks at
them alone (`engines/unit_rows.py`); a row without a target of the declared kind is left out before. So a unit that is
added or removed adds or removes one row at most. How a row is read is a function of that row and of public facts:
bounds and keys from the policy, all else from the estimator's parameters. The weights are released by a method whose
privacy loss is known from public facts (`learn/`); what is returned is computed from the weights and these facts. An
error after the charge is always the same one. The proofs of "output" and "objective" are for at most
`minimize.most_rows` of the rows that the estimator declares, at least 2^20 (2^26 with extended precision): a server
refuses to declare fewer than are enough for the rows that its owner makes it for (`fit_limits`); in the owner's own
process it is for the owner to see to that.

Under "replace" a unit's row may go without another coming in its place, so the number of rows is no public fact of the
rows that a question leaves: such a policy is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tacit.accounting.filters import is_whole, whole
from tacit.aggregates.registry import read_question
from tacit.arithmetic import Number, to_rational, to_rational_between
from tacit.canonical import canonical_text
from tacit.curator.admission import find_paid_answer
from tacit.curator.ask import settle
from tacit.curator.features import bind_feature
from tacit.curator.fit_charge import calibrate_to_charge
from tacit.curator.fit_limits import UNLIMITED, FitLimits
from tacit.engines.unit_rows import OneRowPerUnit
from tacit.errors import ErrorCode, ParameterError, Refused, TacitError
from tacit.learn.feature_encoding import FeatureEncoding
from tacit.learn.released_weights import encode_weights, restore_model
from tacit.plan.check_arithmetic import ArithmeticCheck
from tacit.plan.plan import MAX_EPSILON, MIN_EPSILON
from tacit.plan.question import Question
from tacit.plan.relation import Field, Relation
from tacit.plan.scope import Scope
from tacit.policy.model import Policy
from tacit.privacy.loss import Loss
from tacit.privacy.unit import Neighbors
from tacit.query.functions import Function
from tacit.query.nodes import Call, Literal, Query, Scalar, scanned_tables
from tacit.query.types import NUMERIC_TYPES, Type
from tacit.sampling.bits import refresh_bits

if TYPE_CHECKING:
    from tacit.curator.protocols import OpenCurator
    from tacit.learn.base import FitPlan, PrivateLinearModel
    from tacit.ledger.entries import Reservation

Model = TypeVar("Model", bound="PrivateLinearModel")
Hold = Callable[[Callable[[], bytes]], bytes]  # calls what reads data, and decides when its outcome comes
_KINDS = {Type.INT: int, Type.TEXT: str, Type.BOOL: bool}


def fit(
    estimator: Model,
    text: str,
    target: str,
    analyst: str,
    curator: OpenCurator,
    epsilon: Number,
    delta: Number | None = None,
    request: str = "",
    dialect: str | None = None,
) -> Model:
    """A fitted copy of the estimator; or Refused, at no cost. The same fit again is the same model, and free."""
    study, claim = release_fit(estimator, text, target, analyst, curator, epsilon, delta, request, dialect)
    return cast("Model", study.model(claim))  # a copy of the estimator


def release_fit(
    estimator: PrivateLinearModel,
    text: str,
    target: str,
    analyst: str,
    curator: OpenCurator,
    epsilon: Number,
    delta: Number | None = None,
    request: str = "",
    dialect: str | None = None,
    limits: FitLimits = UNLIMITED,
    hold: Hold | None = None,
) -> tuple[ChargedFit, Reservation]:
    """The plan of a fit, and the claim with its released weights; or Refused, at no cost.

    A server sets limits. A fit that the analyst has paid for is within them, whatever they are now. `hold` calls what
    reads data and returns its outcome, at once where it is None.
    """
    policy, price = curator.policy.asked_by(analyst), to_rational_between("epsilon", epsilon, MIN_EPSILON, MAX_EPSILON)
    if dialect is not None:
        policy = replace(policy, dialect=Question(text, epsilon, dialect=dialect).dialect_under(policy.dialect))
    study = ChargedFit.make(estimator, text, target, policy, whole(price), delta)
    if not is_whole(price):  # it may be known from before epsilons were rounded
        former = ChargedFit.make(estimator, text, target, policy, price, delta)
        study = former if curator.ledger.knows_only(former.key, study.key) else study
    if not hasattr(curator.engine, "rows"):
        fix = "ask the owner for a copy of the data in DuckDB or Parquet"
        raise Refused(ErrorCode.UNSUPPORTED, "models are fitted where DuckDB holds the data", fix=fix)
    if find_paid_answer(study, analyst, curator.ledger) is None:
        limits.check(len(study.features.names), study.plan)
    run = partial(study.release, curator)
    return study, settle(study, run if hold is None else partial(hold, run), analyst, curator, request)


@dataclass(frozen=True)
class ChargedFit:
    """All of a fit, decided by the estimator's parameters and the policy before any data is touched."""

    estimator: PrivateLinearModel
    plan: FitPlan
    features: FeatureEncoding
    node: OneRowPerUnit
    loss: Loss
    delta: Fraction
    key: str

    @classmethod
    def make(
        cls,
        estimator: PrivateLinearModel,
        text: str,
        target: str,
        policy: Policy,
        price: Fraction,
        delta: Number | None,
    ) -> ChargedFit:
        """The plan of a fit at an epsilon, or Refused."""
        lost = policy.question_delta if delta is None else to_rational("delta", delta)
        query = read_question(text, policy.today, policy.dialect)
        relation = _check_one_row_per_unit(Scope(policy).subquery(query), query, policy)
        ready = _clone_estimator(estimator, policy)
        wanted, others = _split_target(relation, target, query)
        ready.set_params(**_target_parameters(ready, wanted, query))
        nulls = ready.missing != "error"
        features = FeatureEncoding(tuple(bind_feature(field, nulls=nulls, at=query.at) for field in others))
        ready.set_params(bounds=features.bounds, **_reading_parameters(ready, features))
        with _check_parameters(estimator):
            plan, loss, room = calibrate_to_charge(ready, len(features.names), price, lost)
        where = _target_filter(ready, wanted)
        columns = (*(field.bound.scalar for field in others), wanted.bound.scalar)
        node = OneRowPerUnit(relation.rows, where, relation.unit, columns)
        read = columns if where is None else (where, *columns)
        ArithmeticCheck(policy, query.at).check_scalars(relation.rows, read)
        key = _fit_key(policy, node, features, plan, ready)
        salted = OneRowPerUnit(node.source, node.where, node.unit, node.columns, key[:16])
        return cls(ready, plan, features, salted, loss, room, key)

    @property
    def tables(self) -> frozenset[str]:
        """The tables that the engine reads, private and public ones."""
        return scanned_tables(self.node.source)

    def release(self, curator: OpenCurator) -> bytes:
        """The released weights, ready to be stored."""
        table = curator.engine.rows(self.node)  # type: ignore[attr-defined]  # `fit` saw it; rows, which stay here
        names = [feature.name for feature in self.features.all]
        columns = dict(zip(names, table.columns, strict=False))
        labels = self.estimator._encode(_to_labels(table.columns[-1]))
        return encode_weights(self.plan.weights(self.features.table(columns), labels, refresh_bits(curator.bits)))

    def model(self, claim: Reservation) -> PrivateLinearModel:
        """The estimator with the stored weights."""
        assert claim.stored is not None
        found = restore_model(self.estimator, self.plan, self.features, claim.stored)
        found.receipt_ = claim.receipt
        return found


@contextmanager
def _check_parameters(estimator: PrivateLinearModel) -> Iterator[None]:
    """Tell what parameters of a wrong type or size end in as an error of theirs. No row has been read by then."""
    try:
        yield
    except TacitError:
        raise
    except (TypeError, ValueError, ArithmeticError):
        what = f"a parameter of this {type(estimator).__name__} is of another type, or too large"
        raise ParameterError("estimator", what, fix="leave out what need not be other than the default") from None


def _to_labels(column: Any) -> Any:
    """The targets as an array; none of them is NULL."""
    import numpy as np

    return np.asarray(column.to_pylist())


def _check_one_row_per_unit(relation: Relation, query: Query, policy: Policy) -> Relation:
    """The relation, of which a unit can give one row; or Refused."""
    if policy.neighbors is not Neighbors.ADD_REMOVE:
        what = "models are fitted under add-remove: under replace a question may leave one row more or less"
        raise Refused(ErrorCode.UNSUPPORTED, what, fix='ask the owner for neighbors = "add-remove"')
    if relation.people is None:
        fix = "read public tables where they are, and fit without noise"
        raise Refused(ErrorCode.UNSUPPORTED, "public tables only need no private model", at=query.at, fix=fix)
    if relation.unit is None and (relation.each.groups, relation.each.rows) != (1, 1):
        fix = "leave UNION ALL out"
        raise Refused(ErrorCode.UNSUPPORTED, "a row that is its own unit occurs more than once", at=query.at, fix=fix)
    return relation


def _clone_estimator(estimator: PrivateLinearModel, policy: Policy) -> PrivateLinearModel:
    """A copy of the estimator, for the policy's relation. What the policy and the epsilon say is not its own to say."""
    from sklearn.base import clone

    from tacit.learn.fitted_kinds import FITTED_KINDS, NETWORKS, list_kinds

    if type(estimator) not in list_kinds().values():  # a class of the analyst's own could do anything with the rows
        what = f"a {type(estimator).__name__} is none that the curator knows to be private"
        names = ", ".join((*FITTED_KINDS, *NETWORKS))
        raise ParameterError("estimator", what, fix=f"use one of tacit.learn: {names}")
    if estimator.neighbors != policy.neighbors:
        what = f"is for {estimator.neighbors!s:.40}, and the policy protects under {policy.neighbors}"
        raise ParameterError("estimator", what, fix=f'neighbors="{policy.neighbors}"')
    said = {"bounds": "the policy's columns have them", "epsilon": "name it in fit", "delta": "name it in fit"}
    for name, instead in {**said, "bits": "they are the curator's"}.items():
        if getattr(estimator, name) is not None:
            raise ParameterError("estimator", f"{name} is not its own to say here: {instead}", fix=f"leave {name} out")
    found: PrivateLinearModel = clone(estimator)
    if not hasattr(estimator, "scaling"):  # trees have no scale
        return found
    if estimator.scaling not in ("auto", "bounds"):
        what = "scaling is by the bounds of the policy here, which the owner knows the columns by"
        raise ParameterError("estimator", what, fix='scaling="bounds"')
    found.set_params(scaling="bounds")
    return found


def _reading_parameters(estimator: PrivateLinearModel, features: FeatureEncoding) -> dict[str, Any]:
    """What the policy says of the columns beside their bounds: the norm of a row, or which are marks of keys."""
    if hasattr(estimator, "norm"):
        return {"norm": features.norm if estimator.norm is None else estimator.norm}
    if not hasattr(estimator, "categorical_features"):
        return {}
    if estimator.categorical_features is not None:
        what = "categorical_features is not its own to say here: the policy's columns have their keys"
        raise ParameterError("estimator", what, fix="leave categorical_features out")
    marks = [feature.values is not None for feature in features.all for _ in feature.names]
    return {"categorical_features": marks}


def _split_target(relation: Relation, target: str, query: Query) -> tuple[Field, list[Field]]:
    """The column that is predicted, and the others."""
    found = [field for field in relation.fields if field.name.lower() == str(target).lower()]
    others = [field for field in relation.fields if field not in found]
    if len(found) != 1 or not others:
        names = ", ".join(field.name for field in relation.fields)
        what = f"the target {target!r:.60} must be one of several columns that are selected"
        raise Refused(ErrorCode.UNKNOWN_COLUMN, what, at=query.at, fix=f"these are {names}")
    if len({field.name.lower() for field in others}) < len(others):
        raise Refused(ErrorCode.AMBIGUOUS, "two columns have one name", at=query.at, fix="name them apart, with AS")
    return found[0], others


def _target_parameters(estimator: PrivateLinearModel, target: Field, query: Query) -> dict[str, Any]:
    """What the policy says of the target, where the estimator does not."""
    bound = target.bound
    if hasattr(estimator, "classes"):
        if bound.type not in {Type.INT, Type.TEXT, Type.BOOL}:
            what = f"{target.name} is {bound.type or 'NULL'}, and a class is an integer, a text or a boolean"
            raise Refused(ErrorCode.TYPE, what, at=query.at, fix="CASE WHEN cost > 100 THEN 1 ELSE 0 END, say")
        classes = target.values if estimator.classes is None else estimator.classes
        if classes is None:
            what = f"the keys of {target.name} are not declared"
            raise Refused(ErrorCode.PRIVATE_KEY, what, at=query.at, fix="name the classes: classes=[0, 1]")
        return {"classes": list(classes)}
    if bound.type not in NUMERIC_TYPES or bound.lower is None or bound.upper is None or not bound.is_bounded:
        what = f"{target.name} has no declared bounds, so it cannot be predicted"
        raise Refused(ErrorCode.UNBOUNDED, what, at=query.at, fix="clamp it, or ask the owner for bounds")
    if getattr(estimator, "target_bounds", None) is not None:
        return {}
    return {"target_bounds": (float(bound.lower), float(bound.upper))}


def _target_filter(estimator: PrivateLinearModel, target: Field) -> Scalar:
    """The condition on a row's target: one of the classes, or a number."""
    value = target.bound.scalar
    if not hasattr(estimator, "classes"):
        return Call(Function.NOT, (Call(Function.IS_NULL, (value,)),))
    assert target.bound.type is not None
    labels = estimator._classes().tolist()
    if any(type(label) is not _KINDS[target.bound.type] for label in labels):
        what = f"{labels!r:.60} are not of the target's type, {target.bound.type}"
        raise ParameterError("classes", what, fix="name them as they stand in the data")
    return Call(Function.IN, (value, *(Literal(label) for label in labels)))


def _fit_key(
    policy: Policy, node: OneRowPerUnit, features: FeatureEncoding, plan: FitPlan, estimator: PrivateLinearModel
) -> str:
    """The name of a fit: equal for equal rows, readings, methods and epsilons."""
    from tacit.curator.fit_key import FITS
    from tacit.learn.tree_estimator import TreePlan

    facts = plan.facts
    read = (facts.lower.tolist(), facts.upper.tolist(), facts.inner, facts.constant, facts.missing, facts.rows)
    aimed = list(estimator._classes().tolist()) if hasattr(estimator, "classes") else estimator._target()
    price = (facts.epsilon, facts.delta, str(facts.neighbors))
    values = (policy.digest, "fit", node, features, read, aimed, price, plan.loss, plan.name, plan.method)
    if isinstance(plan, TreePlan):
        values = (*values, plan.bins.counts, plan.bins.categorical)
    return hashlib.sha256(canonical_text(values, FITS).encode()).hexdigest()
