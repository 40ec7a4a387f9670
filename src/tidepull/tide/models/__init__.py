"""What time may be doing: one small file for each family of hypotheses, and the compiled bank of
them."""
