"""From a request to finished jobs."""
