"""The guard as a service of the site, under an account of its own: users submit, it judges, the controller holds it."""
