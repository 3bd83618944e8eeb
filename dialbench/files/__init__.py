"""Files: written whole or not at all, read with file and line in every error."""
