"""A survey whose answers are randomized where they are given.

>>> from tacit.local.survey.load import parse_survey
>>> from tacit.local.survey.results import SupportCounts, estimate_survey
>>> from tacit.sampling.bits import ReplayBits
>>> survey = parse_survey({"id": "coins", "questions": [
...     {"name": "cheated", "text": "Have you ever cheated?", "kind": "yes-no", "epsilon": "ln 3"}]})
>>> bits, counts = ReplayBits(b"a survey"), SupportCounts.empty(survey)
>>> for person in range(2000):
...     sent = survey.respond([int(person < 500)], bits)  # each on its own machine: a quarter did
...     counts = counts.add([survey.support(survey.accept(sent.to_json()))])
>>> _, yes = estimate_survey(survey, counts)[0].rows
>>> yes.low < 0.25 < yes.high
True
"""
