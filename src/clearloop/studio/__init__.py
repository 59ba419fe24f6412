"""The studio: a web page on this machine, to play, learn, watch and read reports. See `docs/studio.md`."""
