"""What is found out about agents: evaluation, comparison, tuning, data sets, formats, speed."""
