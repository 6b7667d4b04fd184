"""The server: coordinates learning phases and finds environments in what phones publish."""
