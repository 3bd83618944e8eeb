"""What every trained system shares."""
