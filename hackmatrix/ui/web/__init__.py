"""What the servers of the page and of the monitor share: who may talk to them."""
