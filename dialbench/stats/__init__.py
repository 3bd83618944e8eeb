"""Is the difference real?"""
