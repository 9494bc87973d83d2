"""Errors of second moments, and of what follows from them, due to noise and to sampling."""
