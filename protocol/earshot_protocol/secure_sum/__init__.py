"""Bell et al. (CCS 2020): one server learns the sum of the phones' vectors and nothing else."""
