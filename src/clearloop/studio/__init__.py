"""The studio: a web page on this machine to drive plants and learn controllers. See `docs/studio.md`."""
