"""The server: coordinates phases and finds environments in what phones publish."""
