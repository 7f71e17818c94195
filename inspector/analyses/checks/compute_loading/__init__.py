"""Whether a loader makes the model of these files that they were saved from, by headers and small files alone."""
