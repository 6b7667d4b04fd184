"""Verifying many proofs at a time."""
