"""Workflow definitions: the model, how one is read from YAML, and what its references mean. Pure, as the rules are."""
