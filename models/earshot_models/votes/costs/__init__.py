"""Cost of an ensemble's votes to a curator who holds them: bounds that look at the votes.

None of these bounds hold against anybody who sees more than the published outcomes, as the server
of a secure sum does. Costs that depend on votes are private themselves.
"""
