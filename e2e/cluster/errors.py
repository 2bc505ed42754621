"""The one error that callers of this package see."""


class ClusterError(Exception):
    """Something the caller can act on; the text says what is wrong and what to do."""
