"""The phone: hears, keeps embeddings under encryption, and takes part in learning phases."""
