"""`make mutants`: does a test fail for every mistake in what protects people?"""
