"""The trusted curator: policy, engine and ledger wired together, and the story of a question."""
