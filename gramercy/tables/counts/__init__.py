"""Exact histograms of cells and of row lengths."""
