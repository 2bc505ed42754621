"""The Headwater gateway. Not built yet: this release serves through the pool's Service."""
