"""From released integers to an answer: values, error bars, post-processing, and every form it is read in."""
