"""Joins gate, requests, approvals and dispatch: the only caller of what sends."""
