"""What time may be doing: one small file for each family of models, and the compiled bank of
them."""
