"""The benchmark `earshot bench api`: a whole learning phase over HTTP, against PostgreSQL."""
