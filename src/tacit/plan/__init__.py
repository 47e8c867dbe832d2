"""From a question and a policy to a plan: bounds, sensitivity, mechanisms and privacy loss. No data is touched."""
