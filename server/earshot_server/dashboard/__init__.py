"""Operators' dashboard: pages rendered on the server, which load nothing from other origins."""
