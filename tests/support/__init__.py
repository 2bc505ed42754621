"""Helpers shared by test tiers."""
