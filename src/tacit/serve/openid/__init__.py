"""Sign-in with OpenID Connect: the authorization code flow with PKCE, and nothing else of the standard."""
