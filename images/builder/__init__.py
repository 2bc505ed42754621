"""Building the images with Docker where an engine answers, else with buildah from a base made here."""
