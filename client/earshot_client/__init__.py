"""The phone: hears, keeps embeddings under encryption, and takes part in learning phases."""

from earshot_client.phone import Phone

__all__ = ["Phone"]
