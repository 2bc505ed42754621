"""End-to-end: the local cluster, the demo and the tests that need real pods."""
