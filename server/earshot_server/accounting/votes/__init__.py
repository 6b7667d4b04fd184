"""What the votes of an ensemble cost a curator who holds them: bounds that look at the votes.

None of it holds against whoever sees more than the published outcomes, as the server of a secure
sum does. Costs that depend on votes are private themselves.
"""
