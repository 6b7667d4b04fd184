"""Audits of every mechanism: its cost as claimed, as proven and as measured."""
