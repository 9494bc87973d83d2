"""The whole pipeline: flows, servers, processes and the command line."""
