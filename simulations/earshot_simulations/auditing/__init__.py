"""What every mechanism is said to cost, is proven to cost, and is measured to cost."""
