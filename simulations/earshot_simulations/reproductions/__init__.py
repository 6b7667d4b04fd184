"""Tables and figures of the papers, made anew on data that one has."""
