"""What Prometheus can read: every metric is declared in this package and nowhere else."""
