"""The phone's page for browsers: its files, assembled for a folder or served for a trial."""
