from app.cluster import submit

submit("next.sh")
