"""Ask/tell searches over vectors and over programs. They know nothing of plants."""
