"""Ask/tell searches over vectors and over programs, which know nothing of plants."""
