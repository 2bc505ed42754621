"""Command-line declarations: options in, exit codes out."""
