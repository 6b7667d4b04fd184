"""The page of a phone for browsers: its files, put together for a folder or for a trial."""
