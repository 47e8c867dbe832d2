"""What `tacit survey init` writes: a survey with a question of each kind, and what each line is for."""

from __future__ import annotations

TEMPLATE = """\
# A survey whose answers are randomized where they are given: on each person's own machine.
# Nobody else ever sees a true answer, you neither. Try it:
#   tacit survey check survey.toml --people 200  what it reveals about each, and about all 200
#   tacit survey respond survey.toml             answer it here
#   tacit survey collect survey.toml --serve     put it on a page
#   tacit survey report survey.toml              the results
# Changing anything below, be it one letter, makes it another survey: reports to the old one no longer fit, and whoever
# answered it and answers again loses its epsilon a second time. So check it first. If you must change it, keep its id:
# by it, those who answered before are warned.

id = "habits"
title = "Habits nobody talks about"
about = "Your answers are randomized in your browser, before anything is sent."

# What all answers of one person reveal together is bounded by the sum of the epsilons: whoever sees them can become at
# most e^epsilon times surer of anything. Less is more private, and takes more people; from 3 on, an answer is hardly
# hidden. A question may have its own: a number, or the logarithm of one, such as "ln 3". Or write a total here, which
# is split over the questions:
# epsilon = 4

# Yes or no. At ln 3 the true answer is sent with probability 3/4, the opposite with 1/4.
[[questions]]
name = "cheated"
text = "Have you ever cheated in an exam?"
kind = "yes-no"
epsilon = "ln 3"

# One of several options.
[[questions]]
name = "party"
text = "Whom would you vote for today?"
kind = "choice"
options = ["Conservatives", "Greens", "Liberals", "Social democrats", "Rather not say"]
epsilon = 1

# Any of several options, `most` of them at most. Two people's answers differ in twice `most` boxes then, or in all of
# them if that is less: below half the number of options, a smaller `most` is more accurate.
[[questions]]
name = "taken"
text = "Which of these have you taken in the last month?"
kind = "several"
options = ["Painkillers", "Sleeping pills", "Cannabis", "Cocaine", "Ecstasy", "Amphetamines"]
most = 2
epsilon = 2

# A number in a range, in steps; its mean is estimated.
[[questions]]
name = "hours"
text = "How many hours did you work last week?"
kind = "number"
lower = 0
upper = 80
step = 0.5
unit = "hours"
epsilon = 1
"""
