"""Cloud TPUs through gcloud: description, observation and the next action."""
