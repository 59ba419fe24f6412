"""Speed, as ratios: `make bench` runs the same job through the engine and its peers, in one process."""
