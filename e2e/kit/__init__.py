"""Tools that the demo and the end-to-end tests share: kubectl, waiting, streams, installing."""
