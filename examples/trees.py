"""Trees
=====

What a sum of columns cannot say: a risk that two columns carry together. Boosted trees find it at epsilon 1, and the
released tree can be read.
"""

import numpy as np

from tacit.learn import AdditiveClassifier, HistGradientBoostingClassifier

rng = np.random.default_rng(1)
rows = 20_000
age, dose = rng.uniform(20, 80, rows), rng.uniform(0, 10, rows)
ward = rng.integers(0, 6, rows)
# The old are harmed by a high dose and the young by a low one; two wards are better than the others.
risk = 0.1 + 0.7 * ((age > 50) == (dose > 6)) - 0.1 * np.isin(ward, [1, 4])
harmed = rng.random(rows) < np.clip(risk, 0, 1)
people = np.column_stack([age, dose, ward])

public = {"epsilon": 1, "classes": [False, True], "bounds": ([20, 0, 0], [80, 10, 5]), "rows": rows}
train, test = slice(0, 15_000), slice(15_000, None)
sums = AdditiveClassifier(knots=[8, 8, 6], **public).fit(people[train], harmed[train], public=True)
trees = HistGradientBoostingClassifier(categorical_features=[2], **public)
trees.fit(people[train], harmed[train], public=True)  # made-up people need no budget

print(f"sums of columns: {sums.score(people[test], harmed[test]):.1%} right")
print(f"boosted trees:   {trees.score(people[test], harmed[test]):.1%} right")
names = ["age", "dose", "ward"]
print("what the trees split by:", dict(zip(names, trees.feature_importances_.round(2).tolist(), strict=True)))
print(trees.export_text(0, feature_names=names))
print("its privacy loss:", trees.guarantee_)
