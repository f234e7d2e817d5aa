"""Google Cloud Storage: addresses, and the objects of a bucket."""
