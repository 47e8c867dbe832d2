"""A policy on trial: made-up data, audited and attacked through the real curator."""
