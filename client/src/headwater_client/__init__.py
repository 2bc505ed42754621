"""The Headwater client: the ``headwater`` command."""
