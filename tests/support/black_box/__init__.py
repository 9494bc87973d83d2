"""What detects a faulty mechanism: replay, an audit of outputs, and impossible outputs."""
