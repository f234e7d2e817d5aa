"""Cloud TPUs through gcloud: their description, what is observed, and what to do next."""
