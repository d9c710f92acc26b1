"""The rig of the end-to-end tests: the real broker, real servers, and a server that records every byte."""
