"""Pure parts of the client: records, percentiles, chunk parsing, terminal text."""
