"""The Headwater engine: the streaming server in each pod of a replica group."""
