"""The tags of query nodes: how they are written where keys are hashed. A written name never changes."""

from __future__ import annotations

from tacit.canonical import Table, tag
from tacit.privacy.sensitivity import ContributionBounds
from tacit.privacy.unit import Neighbors
from tacit.query import nodes
from tacit.query.functions import Function
from tacit.query.types import Type

NODES: Table = {
    ContributionBounds: tag("Contribution", "groups rows", later="total"),
    Function: tag("Fn"),
    Neighbors: tag("Neighbors"),
    Type: tag("Type"),
    nodes.Aggregation: tag("Aggregation", "source where unit keys keep measures salt", later="excluded"),
    nodes.Constants: tag("Constants", "columns rows"),
    nodes.Call: tag("Call", "function arguments"),
    nodes.Case: tag("Case", "branches otherwise"),
    nodes.Clamp: tag("Clamp", "operand lower upper whole", kept=True),
    nodes.ColumnReference: tag("Column", "name table", later="without"),
    nodes.PerUnitAggregation: tag("Fold", "source keys measures"),
    nodes.GroupKey: tag("GroupKey", "scalar values"),
    nodes.Literal: tag("Literal", "value"),
    nodes.EquiJoin: tag("Match", "left right on outer"),
    nodes.ExactStatistic: tag("Measure", "function argument", kept=True),
    nodes.Placeholder: tag("Placeholder", "name type"),
    nodes.Quantize: tag("Quantize", "operand step lower upper", kept=True),
    nodes.Scan: tag("Scan", "table columns"),
    nodes.Projection: tag("Select", "source columns where"),
    nodes.RowUnion: tag("Stack", "parts"),
    nodes.ToFloat: tag("ToFloat", "operand"),
    nodes.UnitWindow: tag("UnitWindow", "source partition order columns"),
    nodes.WindowStatistic: tag("WindowStatistic", "function argument number otherwise start end peers"),
}
