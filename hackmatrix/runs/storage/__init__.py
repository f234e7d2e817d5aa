"""Google Cloud Storage: addresses, and objects to read and write."""
