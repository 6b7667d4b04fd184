"""The sum by two operators: every phone sends one message (docs/decisions/0056).

A phone splits its input in two: a share for the leader, and the seed of the other share, sealed to
the helper. Neither operator alone learns anything, and each adds the whole noise of the sum.
"""
