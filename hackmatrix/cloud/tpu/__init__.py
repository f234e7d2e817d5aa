"""Cloud TPUs: what one is asked for, the gcloud lines that work on it, and who decides the next."""
