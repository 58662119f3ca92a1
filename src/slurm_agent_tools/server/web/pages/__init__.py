"""One page of the dashboard a module: where it lies, and what of it is gathered. Each is listed in `dashboard_app`."""
