"""Checks that detect a faulty mechanism: replay, an audit of outputs, impossible outputs."""
