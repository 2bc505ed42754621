"""What touches the machine: wall clock, logs, termination message."""
