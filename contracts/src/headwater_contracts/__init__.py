"""The words that Headwater's processes share. Standard library only; no input or output."""
