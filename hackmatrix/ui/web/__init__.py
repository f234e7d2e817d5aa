"""What the servers of the page and of the monitor share."""
