"""Shared protocol of phone and server: messages, parameters, the secure sum, private mechanisms."""
