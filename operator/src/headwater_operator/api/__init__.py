"""Models of the two custom resources, their defaults and rules, and parsing with field paths."""
