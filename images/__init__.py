"""Container images of Headwater's pieces."""
