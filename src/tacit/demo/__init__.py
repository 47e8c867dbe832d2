"""The bundled data: a clinic that never was, and the policy that guards it."""
