"""Speed and memory of the environment and of training, as `hackmatrix bench` measures them."""
