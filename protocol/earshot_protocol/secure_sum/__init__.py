"""The secure sum of Bell et al. (CCS 2020): a server learns the sum of the phones' vectors only."""
