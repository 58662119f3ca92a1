"""The dashboard: pages and what they show, read only; the one place that knows templates."""
