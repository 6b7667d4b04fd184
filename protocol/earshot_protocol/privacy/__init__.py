"""Noise with the right law, mechanisms that declare what they cost, and the ledger."""
