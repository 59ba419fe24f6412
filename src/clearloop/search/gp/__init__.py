"""Typed genetic programming (Koza 1992; Montana 1995; sec. 3.7 of the paper)."""
