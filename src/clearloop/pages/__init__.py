"""Pages for people: the report of a run, and the card of a controller, as HTML and PDF."""
