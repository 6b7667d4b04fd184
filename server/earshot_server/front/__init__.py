"""Front door: connections that are slow, silent or endless hold nothing but themselves."""
