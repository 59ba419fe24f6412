"""One short script for each number or figure of the paper: `make reproduce` runs them all."""
