"""From a question and a policy to a plan: bounds, sensitivity, mechanisms and price. No data is touched."""
