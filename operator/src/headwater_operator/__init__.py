"""The Headwater operator: InferencePool → ReplicaGroup → Pods."""
