"""Adds credentials, sends a request once, and shapes the answer."""
