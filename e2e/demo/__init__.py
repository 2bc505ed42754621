"""``make demo``: from nothing to the streamed tokens of a model."""
