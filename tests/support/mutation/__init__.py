"""`make mutants`: does a test fail for every mistake that could be put into what protects people?"""
