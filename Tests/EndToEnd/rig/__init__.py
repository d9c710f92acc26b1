"""What the end-to-end tests stand on: the real broker, real servers, and a server that records every byte."""
