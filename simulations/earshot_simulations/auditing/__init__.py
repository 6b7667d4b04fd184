"""Cost of every mechanism, as it is claimed, as it is proven and as it is measured."""
