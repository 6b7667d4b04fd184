"""Verification of many proofs at a time."""
