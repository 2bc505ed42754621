"""``python -m headwater_client`` is the ``headwater`` command."""

from headwater_client.main import main

main()
