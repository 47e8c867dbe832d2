"""From released integers to an answer: values, error bars, finishing, and every form it is read in."""
