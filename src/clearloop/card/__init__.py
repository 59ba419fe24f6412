"""The sign-off sheet of one controller: one content, as a page for a browser and as a PDF."""
