"""Words: how text becomes tokens, tokens numbers, and numbers vectors."""
