"""A bench makes the paper's table: many experiments of every method, on one machine or on many."""
