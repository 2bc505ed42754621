"""A real local Kubernetes cluster: kind where a Docker engine answers, else one made of plain processes."""
