"""The tags of query nodes: how they are written where keys are hashed. A written name never changes."""

from __future__ import annotations

from tacit.canonical import Table, tag
from tacit.privacy.sensitivity import Contribution
from tacit.privacy.unit import Neighbors
from tacit.query import nodes
from tacit.query.functions import Fn

NODES: Table = {
    Contribution: tag("Contribution", "groups rows", later="total"),
    Fn: tag("Fn"),
    Neighbors: tag("Neighbors"),
    nodes.Aggregation: tag("Aggregation", "source where unit keys keep measures salt"),
    nodes.Call: tag("Call", "function arguments"),
    nodes.Case: tag("Case", "branches otherwise"),
    nodes.Clamp: tag("Clamp", "operand lower upper whole"),
    nodes.Column: tag("Column", "name table"),
    nodes.Fold: tag("Fold", "source keys measures"),
    nodes.GroupKey: tag("GroupKey", "scalar values"),
    nodes.Literal: tag("Literal", "value"),
    nodes.Match: tag("Match", "left right on outer"),
    nodes.Measure: tag("Measure", "function argument"),
    nodes.Quantize: tag("Quantize", "operand step lower upper"),
    nodes.Scan: tag("Scan", "table columns"),
    nodes.Select: tag("Select", "source columns where"),
    nodes.Stack: tag("Stack", "parts"),
    nodes.ToFloat: tag("ToFloat", "operand"),
}
