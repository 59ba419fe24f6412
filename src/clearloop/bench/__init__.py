"""The paper's table: every method, many experiments, on one machine or many."""
