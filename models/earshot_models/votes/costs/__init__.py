"""Cost of outcomes that a curator publishes, including bounds that depend on the votes.

These bounds hold only against observers of the published outcomes alone, not against the server of
a secure sum, which sees noisy counts. Costs that depend on votes are private themselves.
"""
